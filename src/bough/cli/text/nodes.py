"""Nodes as text.

Amounts are of Kubernetes' kind: plain numbers, or bytes with Ki, Mi, Gi, Ti. Memory and storage are
shown in Gi: what is used is rounded up, what there is down.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bough.cli.output import count
from bough.cli.tables import NOTHING, cell_text, render_fields, render_table

_COLUMNS = (
    ("Storage [Gi]", "storage"),
    ("CPU [#]", "cpu"),
    ("Memory [Gi]", "memory"),
    ("GPU [#]", "gpu"),
)
_GIBI = 1 << 30
_SUFFIXES = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": _GIBI, "Ti": 1 << 40}
_BYTES = ("storage", "memory")


def render_resources(answer: Any, pools: Sequence[str], mode: str) -> str:
    """A line for each node and pool; the sums count every node once."""
    rows: list[list[str]] = []
    sums = [[0, 0] for _ in _COLUMNS]
    for node in answer["resources"]:
        lines = list(_node_lines(node, pools))
        for number, (pool, platform, pairs) in enumerate(lines):
            name = cell_text(node["exposed_fields"].get("node")) if number == 0 else ""
            kind = cell_text(node["resource_type"]) if number == 0 else ""
            rows.append([name, pool, platform, kind, *(_pair(pair, mode) for pair in pairs)])
        if lines:
            for total, pair in zip(sums, lines[0][2], strict=True):
                total[0] += pair[0]
                total[1] += pair[1]
    if not rows:
        return "There are no resources to view."
    header = ("Node", "Pool", "Platform", "Type", *(title for title, _ in _COLUMNS))
    totals = ["", "", "", "", *(_pair((used, size), mode) for used, size in sums)]
    return render_table(header, rows, totals=totals, numbers=range(4, 8))


def render_node(answer: Any, only_pool: str | None, only_platform: str | None) -> str:
    """One node, field by field; in all its pools and platforms, or as one of some."""
    found = answer.get("resources", [answer]) if isinstance(answer, dict) else answer
    parts: list[str] = []
    for node in found:
        fields: list[tuple[str, Any]] = [
            ("Node", node["exposed_fields"].get("node")),
            ("Type", node["resource_type"]),
        ]
        for pool, platform, pairs in _node_lines(node, (only_pool,) if only_pool else ()):
            if only_platform not in (None, platform):
                continue
            amounts = ", ".join(
                f"{title.partition(' ')[0]} {_pair(pair, 'used')}"
                for (title, _), pair in zip(_COLUMNS, pairs, strict=True)
            )
            fields.append((f"{pool}/{platform}", amounts))
        fields.append(("Labels", node.get("label_fields") or node.get("labels") or NOTHING))
        parts.append(render_fields(fields))
    return "\n\n".join(parts) or "There are no resources to view."


def render_nodes(nodes: Any) -> str:
    """A line for each node."""
    if not nodes:
        return "There are no nodes."
    rows = [
        (
            each["name"],
            each["status"],
            each["tasks"],
            f"{each['used_gpu']}/{each['gpu']}",
            f"{_number(each['used_cpu'])}/{_number(each['cpu'])}",
            _memory(each),
            each["pools"] or NOTHING,
            each["backend"],
        )
        for each in nodes
    ]
    header = ("Node", "Status", "Tasks", "GPU [#]", "CPU [#]", "Memory [Gi]", "Pools", "Backend")
    return render_table(header, rows, numbers=range(2, 6), status=1, cut=6)


def render_drain(answer: Any) -> str:
    """What was done to empty a node."""
    text = f"Node {answer['node']['name']} takes nothing new; "
    told, left = answer["told"], answer["left"]
    parts = [
        f"{count(told, 'task')} told to end" if told else "",
        f"{count(left, 'task')} left to run to the end" if left else "",
    ]
    return text + (", ".join(part for part in parts if part) or "nothing runs on it") + "."


def _whole(value: Any, key: str, *, up: bool) -> int:
    """A whole number of cores, GPUs or Gi; what cannot be read is 0."""
    text = str(value if value is not None else 0)
    factor = _SUFFIXES.get(text[-2:], 1)
    try:
        number = float(text.removesuffix(text[-2:]) if factor > 1 else text) * factor
    except ValueError:
        return 0
    divisor = _GIBI if key in _BYTES else 1
    return int(-(-number // divisor)) if up else int(number // divisor)


def _node_lines(
    node: Any, pools: Sequence[str]
) -> Iterator[tuple[str, str, list[tuple[int, int]]]]:
    """Pool, platform, and used and there is for every column."""
    for where in node["exposed_fields"].get("pool/platform") or ():
        pool, _, platform = where.partition("/")
        if pools and pool not in pools and not _parent_of_one(pool, pools):
            continue
        by_pool = node.get("platform_allocatable_fields") or {}
        size = (by_pool.get(pool) or {}).get(platform) or node.get("allocatable_fields") or {}
        used = node.get("usage_fields") or {}
        yield (
            pool,
            platform,
            [
                (
                    _whole(used.get(key), key, up=True),
                    _whole(size.get(key), key, up=False),
                )
                for _, key in _COLUMNS
            ],
        )


def _parent_of_one(pool: str, pools: Sequence[str]) -> bool:
    """A subpool has the nodes of its pool."""
    return any(each.startswith(f"{pool}--") for each in pools)


def _pair(pair: Sequence[int], mode: str) -> str:
    used, size = pair
    return f"{used}/{size}" if mode == "used" else str(size - used)


def _memory(node: Any) -> str:
    used = _whole(node["used_memory"], "memory", up=True)
    return f"{used}/{_whole(node['memory'], 'memory', up=False)}"


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
