"""The quota tree and the answer to a request as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bough.cli.output import printable
from bough.cli.tables import render_plain, tree_stems

if TYPE_CHECKING:
    from bough.api.quota_answers import (
        AdmitAnswer,
        AdmitGroup,
        OverQuotaRefusal,
        QuotaNode,
        QuotaPortion,
        QuotaRow,
        QuotaTreeAnswer,
        TriedFlavor,
    )

#: How an amount of a resource is written: resource, amount.
Writer = Callable[[str, int], str]

_HEADER = ("NODE", "FLAVOR", "RESOURCE", "OWNS", "SUBTREE", "USED", "LENDS", "BORROWS", "CAN ADMIT")
_NUMBERS = range(3, 9)
#: How many queues, and workloads of each, are listed; JSON has them all.
MAXIMUM_HOLDERS = 10
_LEGEND = """\
LENDS: what it offers the rest of the tree now. 4/8: 4 now, 8 at most, by its limit.
SUBTREE and USED of a cohort leave out what nodes below it keep to themselves."""


_SHARE_HEADER = ("NODE", "WEIGHT", "SHARE", "RESOURCE", "DESERVES", "USES", "ASKS FOR", "FAIR NOW")
_DESERVES_LEGEND = """\
DESERVES: its own quota, of a cohort with all below it. ASKS FOR: what it uses and what waits in it.
"""
_SHARE_LEGEND = f"""\
SHARE: what it uses beyond its own quota, of all that its parent could lend, for its weight; the
resource marked * counts.
{_DESERVES_LEGEND}FAIR NOW: what it could have if idle capacity were divided by weight."""
#: By what a policy compares.
_SHARE_LEGENDS = {
    "fair_share": f"""\
SHARE: what it uses of what it may have, the larger of DESERVES and FAIR NOW; the resource marked *
counts.
{_DESERVES_LEGEND}FAIR NOW: what it could have, as the policy divides it when a cycle begins.""",
    "dominant_share": f"""\
SHARE: the largest of what it uses beyond its own part of GPUs, CPU and memory, for its weight; the
resource marked * counts.
{_DESERVES_LEGEND}FAIR NOW: the policy divides nothing beforehand.""",
}

#: The node above all queues of KAI.
_CLUSTER = "(cluster)"
_KAI_LEGEND = f"""\
Below {_CLUSTER}, of queues of KAI: SHARE is what it uses of what it may have, the larger of
DESERVES and FAIR NOW; WEIGHT its overQuotaWeight for GPUs; FAIR NOW as kai-fair divides."""


def render_tree(answer: QuotaTreeAnswer, write: Writer) -> str:
    """A line for each node and resource, the nodes as a drawn tree."""
    nodes = answer.nodes
    if not nodes:
        return "no cohorts and no queues"
    rows: list[list[str]] = []
    for node, stems in zip(nodes, tree_stems([node.depth for node in nodes]), strict=True):
        rows.extend(_node_rows(node, stems, write))
    header = [*_HEADER, "NOTE"] if any(row[-1] for row in rows) else list(_HEADER)
    width = len(header)
    return render_plain(header, [row[:width] for row in rows], numbers=_NUMBERS) + f"\n\n{_LEGEND}"


def render_shares(answer: QuotaTreeAnswer, write: Writer) -> str:
    """A line for each node and resource: what counts where nodes share by weight."""
    nodes = answer.nodes
    if not nodes:
        return "no cohorts and no queues"
    rows: list[list[str]] = []
    for node, stems in zip(nodes, tree_stems([node.depth for node in nodes]), strict=True):
        rows.extend(_share_rows(node, stems, write))
    legend = _SHARE_LEGENDS.get(answer.compares or "", _SHARE_LEGEND)
    if answer.compares is None and any(node.name == _CLUSTER for node in nodes):
        legend += f"\n{_KAI_LEGEND}"
    return render_plain(_SHARE_HEADER, rows, numbers=(1, 2, 4, 5, 6, 7)) + f"\n\n{legend}"


def _share_rows(node: QuotaNode, stems: tuple[str, str], write: Writer) -> list[list[str]]:
    first, following = stems
    share = node.share
    if share is None:
        return [[first + printable(node.name), node.weight, "-", _node_note(node), *[""] * 4]]
    head = [first + printable(node.name), node.weight, "-" if node.depth == 0 else share.share]
    rows: list[list[str]] = []
    for each in share.portions:
        mark = "*" if each.resource == share.resource else ""
        amounts = (each.deserved, each.used, each.asked)
        rows.append(
            [
                *head,
                printable(each.resource) + mark,
                *(write(each.resource, amount) for amount in amounts),
                _fair(each, write),
            ]
        )
        head = [following, "", ""]
    return rows or [[*head, *[""] * 5]]


def _fair(portion: QuotaPortion, write: Writer) -> str:
    """What can be had only whole is told with its parts."""
    if portion.fair is None:
        return "-"
    if portion.resource in ("cpu", "memory"):
        return write(portion.resource, int(portion.fair))
    return str(portion.fair)


def _node_rows(node: QuotaNode, stems: tuple[str, str], write: Writer) -> list[list[str]]:
    first, following = stems
    name = first + printable(node.name)
    if not node.resources:
        return [[name, *[""] * (len(_HEADER) - 1), _node_note(node)]]
    rows: list[list[str]] = []
    for index, each in enumerate(node.resources):
        cells = _resource_cells(each, write)
        note = _node_note(node) if index == 0 and node.cycle else _resource_note(each, write)
        rows.append([name if index == 0 else following, *cells, note])
    return rows


def _resource_cells(each: QuotaRow, write: Writer) -> list[str]:
    def amount(number: int | None) -> str:
        return "-" if number is None else write(each.resource, number)

    def limited(number: int | None, limit: int | None) -> str:
        now = amount(number)
        return now if limit is None or number is None else f"{now}/{amount(limit)}"

    return [
        printable(each.flavor),
        printable(each.resource),
        amount(each.nominal),
        amount(each.subtree_quota),
        amount(each.used),
        limited(each.lends, each.lending_limit),
        limited(each.borrows, each.borrowing_limit),
        amount(each.available),
    ]


def _node_note(node: QuotaNode) -> str:
    if node.cycle:
        return "cycle: " + " → ".join(printable(name) for name in [*node.cycle, node.cycle[0]])
    return ""


def _resource_note(each: QuotaRow, write: Writer) -> str:
    return f"over by {write(each.resource, each.debt)}" if each.debt else ""


def render_admit(answer: AdmitAnswer, write: Writer) -> str:
    """Yes with the flavors, or no with the reason for each flavor."""
    queue = printable(answer.queue)
    if answer.admitted:
        parts = [f"{_requests(group, write)} on {group.flavor}" for group in answer.groups]
        return f"yes: queue {queue} can take {' and '.join(parts)}"
    lines: list[str] = []
    if answer.held:
        lines.append(f"no: queue {queue} is stopped (stopPolicy {answer.held})")
    for group in answer.groups:
        if group.flavor is None:
            lines.append(f"no: queue {queue} cannot take {_requests(group, write)}")
            for tried in group.tried:
                lines.extend(_refusal_lines(tried, write))
    return "\n".join(lines)


def _requests(group: AdmitGroup, write: Writer) -> str:
    return ", ".join(
        f"{write(resource, amount)} {printable(resource)}"
        for resource, amount in group.requests.items()
    )


def _refusal_lines(tried: TriedFlavor, write: Writer) -> list[str]:
    from bough.api.quota_answers import OverQuotaRefusal  # noqa: PLC0415  help needs no types

    refusal = tried.refusal
    if not isinstance(refusal, OverQuotaRefusal):
        return [] if refusal is None else ["", f"  {printable(refusal.sentence)}"]
    resource = refusal.resource or ""

    def amount(number: int) -> str:
        return write(resource, number)

    node = f"{refusal.node.kind} {printable(refusal.node.name)}"
    after = write(resource, refusal.balance - refusal.passed)
    fits = f"{amount(refusal.available)} would fit, {amount(refusal.deficit)} too many"
    never = "; it would not fit even if nothing ran" if refusal.never else ""
    limit = f"-{amount(refusal.borrowing_limit)}" if refusal.borrowing_limit else "0"
    numbers = f"{amount(refusal.balance)} - {amount(refusal.passed)} = {after} < {limit}"
    lines = [
        "",
        f"  on {printable(tried.flavor or '')}: {fits}{never}",
        f"  T(x) - n >= -borrowingLimit fails at {node}: {numbers}",
    ]
    if refusal.passed != refusal.requested:
        served = write(resource, refusal.requested - refusal.passed)
        lines.append(f"  (n is the request without the {served} that nodes below serve themselves)")
    if refusal.holders:
        lines.extend(("", *_indent(_holder_table(refusal, write), 4)))
    return lines


def _holder_table(refusal: OverQuotaRefusal, write: Writer) -> str:
    resource = refusal.resource or ""
    rows: list[list[str]] = []
    for holder in refusal.holders[:MAXIMUM_HOLDERS]:
        amounts = [write(resource, each) for each in (holder.used, holder.nominal, holder.borrows)]
        first = [printable(holder.queue), *amounts]
        for workload in holder.workloads[:MAXIMUM_HOLDERS] or [None]:
            cells = ["", "", ""]
            if workload is not None:
                amount = write(resource, workload.amount)
                cells = [printable(workload.name), amount, str(workload.priority)]
            rows.append([*first, *cells])
            first = ["", "", "", ""]
    left_out = len(refusal.holders) - MAXIMUM_HOLDERS
    header = ("QUEUE", "USED", "OWNS", "BORROWS", "WORKLOAD", "USES", "PRIORITY")
    table = render_plain(header, rows, numbers=(1, 2, 3, 5, 6))
    return table + (f"\n... and {left_out} more queues" if left_out > 0 else "")


def _indent(text: str, width: int) -> list[str]:
    return [" " * width + line for line in text.splitlines()]
