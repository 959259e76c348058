"""Nodes as text.

Amounts are of Kubernetes' kind: plain numbers, or bytes with Ki, Mi, Gi, Ti. Memory and storage are
shown in Gi: what is used is rounded up, what there is down.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bough.cli.output import count
from bough.cli.tables import NOTHING, Cell, render_fields, render_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bough.api.nodes import (
        NodeAmounts,
        NodeDrained,
        NodeLine,
        NodeLost,
        ResourceLine,
        ResourceList,
    )

_COLUMNS = ("Storage [Gi]", "CPU [#]", "Memory [Gi]", "GPU [#]")
_GIBI = 1 << 30
_SUFFIXES = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": _GIBI, "Ti": 1 << 40}


def render_resources(answer: ResourceList, pools: Sequence[str], mode: str) -> str:
    """A line for each node and pool; the sums count every node once."""
    rows: list[list[str]] = []
    sums = [[0, 0] for _ in _COLUMNS]
    for node in answer.resources:
        lines = list(_node_lines(node, pools))
        for number, (pool, platform, pairs) in enumerate(lines):
            name = node.exposed_fields.node if number == 0 else ""
            kind = node.resource_type if number == 0 else ""
            rows.append([name, pool, platform, kind, *(_pair(pair, mode) for pair in pairs)])
        if lines:
            for total, pair in zip(sums, lines[0][2], strict=True):
                total[0] += pair[0]
                total[1] += pair[1]
    if not rows:
        return "There are no resources to view."
    header = ("Node", "Pool", "Platform", "Type", *_COLUMNS)
    totals = ["", "", "", "", *(_pair((used, size), mode) for used, size in sums)]
    return render_table(header, rows, totals=totals, numbers=range(4, 8))


def render_node(answer: ResourceList, only_pool: str | None, only_platform: str | None) -> str:
    """One node, field by field; in all its pools and platforms, or as one of some."""
    parts: list[str] = []
    for node in answer.resources:
        fields: list[tuple[str, Cell]] = [
            ("Node", node.exposed_fields.node),
            ("Type", node.resource_type),
        ]
        for pool, platform, pairs in _node_lines(node, (only_pool,) if only_pool else ()):
            if only_platform not in (None, platform):
                continue
            amounts = ", ".join(
                f"{title.partition(' ')[0]} {_pair(pair, 'used')}"
                for title, pair in zip(_COLUMNS, pairs, strict=True)
            )
            fields.append((f"{pool}/{platform}", amounts))
        fields.append(("Labels", node.label_fields or NOTHING))
        parts.append(render_fields(fields))
    return "\n\n".join(parts) or "There are no resources to view."


def render_nodes(nodes: Sequence[NodeLine]) -> str:
    """A line for each node."""
    if not nodes:
        return "There are no nodes."
    rows = [
        (
            each.name,
            each.status,
            each.tasks,
            f"{each.used_gpu}/{each.gpu}",
            f"{_number(each.used_cpu)}/{_number(each.cpu)}",
            _memory(each),
            each.pools or NOTHING,
            each.backend,
        )
        for each in nodes
    ]
    header = ("Node", "Status", "Tasks", "GPU [#]", "CPU [#]", "Memory [Gi]", "Pools", "Backend")
    return render_table(header, rows, numbers=range(2, 6), status=1, cut=6)


def render_drain(answer: NodeDrained) -> str:
    """What was done to empty a node."""
    text = f"Node {answer.node.name} takes nothing new; "
    told, left = answer.told, answer.left
    parts = [
        f"{count(told, 'task')} told to end" if told else "",
        f"{count(left, 'task')} left to run to the end" if left else "",
    ]
    return text + (", ".join(part for part in parts if part) or "nothing runs on it") + "."


def render_lost(answer: NodeLost) -> str:
    """What was lost with a machine."""
    what = f"Node {answer.nodes[0]}" if answer.machine is None else f"Machine {answer.machine}"
    nodes = "" if answer.machine is None else f" with {count(len(answer.nodes), 'node')}"
    return f"{what}{nodes} counts as dead; {count(answer.tasks, 'task')} lost."


def _whole(number: float, *, up: bool) -> int:
    """A whole number of cores, GPUs or Gi: what is used is rounded up, what there is down."""
    return int(-(-number // 1)) if up else int(number // 1)


def _gibibytes(text: str) -> float:
    """Bytes as Kubernetes writes them, in Gi; what cannot be read is 0."""
    factor = _SUFFIXES.get(text[-2:], 1)
    try:
        return float(text.removesuffix(text[-2:]) if factor > 1 else text) * factor / _GIBI
    except ValueError:
        return 0


def _amounts(found: NodeAmounts, *, up: bool) -> list[int]:
    """In the order of the columns."""
    numbers = (_gibibytes(found.storage), found.cpu, _gibibytes(found.memory), found.gpu)
    return [_whole(number, up=up) for number in numbers]


def _node_lines(
    node: ResourceLine, pools: Sequence[str]
) -> Iterator[tuple[str, str, list[tuple[int, int]]]]:
    """Pool, platform, and used and there is for every column."""
    for where in node.exposed_fields.pool_platforms:
        pool, _, platform = where.partition("/")
        if pools and pool not in pools and not _parent_of_one(pool, pools):
            continue
        by_platform = node.platform_allocatable_fields.get(pool, {})
        size = _amounts(by_platform.get(platform, node.allocatable_fields), up=False)
        yield pool, platform, list(zip(_amounts(node.usage_fields, up=True), size, strict=True))


def _parent_of_one(pool: str, pools: Sequence[str]) -> bool:
    """A subpool has the nodes of its pool."""
    return any(each.startswith(f"{pool}--") for each in pools)


def _pair(pair: Sequence[int], mode: str) -> str:
    used, size = pair
    return f"{used}/{size}" if mode == "used" else str(size - used)


def _memory(node: NodeLine) -> str:
    used = _whole(_gibibytes(node.used_memory), up=True)
    return f"{used}/{_whole(_gibibytes(node.memory), up=False)}"


def _number(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
