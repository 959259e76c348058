"""The quota tree and the answer to a request as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bough.cli.output import printable
from bough.cli.tables import render_plain, tree_stems

#: How an amount of a resource is written: resource, amount.
Writer = Callable[[str, int], str]

_HEADER = ("NODE", "FLAVOR", "RESOURCE", "OWNS", "SUBTREE", "USED", "LENDS", "BORROWS", "CAN ADMIT")
_NUMBERS = range(3, 9)
#: How many queues, and workloads of each, are listed; JSON has them all.
MAXIMUM_HOLDERS = 10
_LEGEND = """\
LENDS: what it offers the rest of the tree now. 4/8: 4 now, 8 at most, by its limit.
SUBTREE and USED of a cohort leave out what nodes below it keep to themselves."""


def render_tree(answer: Any, write: Writer) -> str:
    """A line for each node and resource, the nodes as a drawn tree."""
    nodes = answer["nodes"]
    if not nodes:
        return "no cohorts and no queues"
    rows: list[list[str]] = []
    for node, stems in zip(nodes, tree_stems([node["depth"] for node in nodes]), strict=True):
        rows.extend(_node_rows(node, stems, write))
    header = [*_HEADER, "NOTE"] if any(row[-1] for row in rows) else list(_HEADER)
    width = len(header)
    return render_plain(header, [row[:width] for row in rows], numbers=_NUMBERS) + f"\n\n{_LEGEND}"


def _node_rows(node: Any, stems: tuple[str, str], write: Writer) -> list[list[str]]:
    first, following = stems
    name = first + printable(node["name"])
    if not node["resources"]:
        return [[name, *[""] * (len(_HEADER) - 1), _node_note(node)]]
    rows: list[list[str]] = []
    for index, each in enumerate(node["resources"]):
        cells = _resource_cells(each, write)
        note = _node_note(node) if index == 0 and node["cycle"] else _resource_note(each, write)
        rows.append([name if index == 0 else following, *cells, note])
    return rows


def _resource_cells(each: Any, write: Writer) -> list[str]:
    def amount(name: str) -> str:
        return "-" if each[name] is None else write(each["resource"], each[name])

    def limited(name: str, limit: str) -> str:
        now = amount(name)
        return now if each[limit] is None or now == "-" else f"{now}/{amount(limit)}"

    return [
        printable(each["flavor"]),
        printable(each["resource"]),
        amount("nominal"),
        amount("subtree_quota"),
        amount("used"),
        limited("lends", "lending_limit"),
        limited("borrows", "borrowing_limit"),
        amount("available"),
    ]


def _node_note(node: Any) -> str:
    if node["cycle"]:
        return "cycle: " + " → ".join(
            printable(name) for name in [*node["cycle"], node["cycle"][0]]
        )
    return ""


def _resource_note(each: Any, write: Writer) -> str:
    return f"over by {write(each['resource'], each['debt'])}" if each["debt"] else ""


def render_admit(answer: Any, write: Writer) -> str:
    """Yes with the flavors, or no with what stands against each flavor."""
    queue = printable(answer["queue"])
    if answer["admitted"]:
        parts = [f"{_requests(group, write)} on {group['flavor']}" for group in answer["groups"]]
        return f"yes: queue {queue} can take {' and '.join(parts)}"
    lines: list[str] = []
    if "held" in answer:
        lines.append(f"no: queue {queue} is stopped (stopPolicy {answer['held']})")
    for group in answer["groups"]:
        if group["flavor"] is None:
            lines.append(f"no: queue {queue} cannot take {_requests(group, write)}")
            for tried in group["tried"]:
                lines.extend(_refusal_lines(tried, write))
    return "\n".join(lines)


def _requests(group: Any, write: Writer) -> str:
    return ", ".join(
        f"{write(resource, amount)} {printable(resource)}"
        for resource, amount in group["requests"].items()
    )


def _refusal_lines(tried: Any, write: Writer) -> list[str]:
    refusal = tried["refusal"]
    if refusal["kind"] != "over_quota":
        return ["", f"  {printable(refusal['sentence'])}"]
    resource = refusal["resource"]

    def amount(name: str) -> str:
        return write(resource, refusal[name])

    node = f"{refusal['node']['kind']} {printable(refusal['node']['name'])}"
    after = write(resource, refusal["balance"] - refusal["passed"])
    fits = f"{amount('available')} would fit, {amount('deficit')} too many"
    never = "; it would not fit even if nothing ran" if refusal["never"] else ""
    limit = f"-{amount('borrowing_limit')}" if refusal["borrowing_limit"] else "0"
    numbers = f"{amount('balance')} - {amount('passed')} = {after} < {limit}"
    lines = [
        "",
        f"  on {printable(tried['flavor'])}: {fits}{never}",
        f"  T(x) - n >= -borrowingLimit fails at {node}: {numbers}",
    ]
    if refusal["passed"] != refusal["requested"]:
        served = write(resource, refusal["requested"] - refusal["passed"])
        lines.append(f"  (n is the request without the {served} that nodes below serve themselves)")
    if refusal["holders"]:
        lines.extend(("", *_indent(_holder_table(refusal, write), 4)))
    return lines


def _holder_table(refusal: Any, write: Writer) -> str:
    resource = refusal["resource"]
    rows: list[list[str]] = []
    for holder in refusal["holders"][:MAXIMUM_HOLDERS]:
        amounts = [write(resource, holder[name]) for name in ("used", "nominal", "borrows")]
        first = [printable(holder["queue"]), *amounts]
        for workload in holder["workloads"][:MAXIMUM_HOLDERS] or [None]:
            cells = ["", "", ""]
            if workload is not None:
                amount = write(resource, workload["amount"])
                cells = [printable(workload["name"]), amount, str(workload["priority"])]
            rows.append([*first, *cells])
            first = ["", "", "", ""]
    left_out = len(refusal["holders"]) - MAXIMUM_HOLDERS
    header = ("QUEUE", "USED", "OWNS", "BORROWS", "WORKLOAD", "USES", "PRIORITY")
    table = render_plain(header, rows, numbers=(1, 2, 3, 5, 6))
    return table + (f"\n... and {left_out} more queues" if left_out > 0 else "")


def _indent(text: str, width: int) -> list[str]:
    return [" " * width + line for line in text.splitlines()]
