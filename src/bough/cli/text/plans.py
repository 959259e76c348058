"""A plan and a certificate as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bough.cli.output import count, printable
from bough.cli.tables import render_plain

#: How an amount of a resource is written: resource, amount.
Writer = Callable[[str, int], str]

#: How many nodes, pods or holders are listed; JSON has them all.
MAXIMUM_LISTED = 10
_CAUSES = {
    "outside_topology": "outside of the topology",
    "cordoned": "cordoned or not ready",
    "selector": "ruled out by the node selector",
    "taint": "tainted",
    "fits": "with room",
}


def render_plan(answer: Any) -> str:
    """What starts, what ends, what will start then, what waits."""
    sections = (
        ("starts", [_start_line(each) for each in answer["starts"]]),
        ("ends", [_eviction_line(each) for each in answer["evictions"]]),
        ("starts when others have ended", [_nominated(each) for each in answer["nominations"]]),
        ("waits", [_wait_line(each) for each in answer["waits"]]),
    )
    lines: list[str] = []
    for title, entries in sections:
        if entries:
            lines += [title, *(f"  {entry}" for entry in entries)]
    return "\n".join(lines) or "nothing waits and nothing changes"


def _start_line(each: Any) -> str:
    if each["assignments"]:
        parts = [_assignment(one) for one in each["assignments"]]
        return f"{_who(each)}: {'; '.join(parts)}"
    pods = each["pods"]
    optional = sum(pod["optional"] for pod in pods)
    extra = f", {optional} of them beyond its minimum" if optional else ""
    return f"{_who(each)}: {count(len(pods), 'pod')} on {_nodes(pods)}{extra}"


def _assignment(one: Any) -> str:
    flavors = ", ".join(printable(name) for name in dict.fromkeys(one["flavors"].values()))
    pods = count(one["count"] or 0, "pod")
    return f"{printable(one['pod_set'])}, {pods} on {flavors or 'no flavor'}"


def _nominated(each: Any) -> str:
    whom = ", ".join(printable(name) for name in each["waits_for"]) or "others"
    on = f" on {_nodes(each['pods'])}" if each["pods"] else ""
    return f"{_who(each)}: waits for {whom}{on}"


def _nodes(pods: Any) -> str:
    numbers: dict[str, int] = {}
    for pod in pods:
        numbers[pod["node"]] = numbers.get(pod["node"], 0) + 1
    listed = [f"{printable(node)} ({number})" for node, number in numbers.items()]
    more = len(listed) - MAXIMUM_LISTED
    return ", ".join(listed[:MAXIMUM_LISTED]) + (f" and {more} more nodes" if more > 0 else "")


def _eviction_line(each: Any) -> str:
    return f"{_who(each)}: {each['rule']}: {printable(each['sentence'])}"


def _wait_line(each: Any) -> str:
    return f"{_who(each)}: {printable(each['reason'])}: {printable(each['sentence'])}"


def _who(each: Any) -> str:
    return f"{printable(each['workload'])} (queue {printable(each['queue'])})"


def render_certificate(answer: Any, write: Writer, queue: str = "QUEUE") -> str:
    """One sentence, then what is behind it, then what would help."""
    found = answer["certificate"]
    name = printable(found["workload"])
    lines = [f"{name} {_verdict(found)}: {printable(found['sentence'])}"]
    for part in (
        list(_arithmetic_lines(found.get("refusal"), write)),
        list(_growth_lines(answer.get("growth"))),
        list(_shortage_lines(found)),
        list(_lack_lines(found)),
        list(_option_lines(found)),
        _holder_lines(found, write, queue),
        list(_eviction_lines(answer["eviction"])),
        list(_remedy_lines(answer["remedies"])) if found["verdict"] == "waits" else [],
    ):
        if part:
            lines += ["", *part]
    return "\n".join(lines)


def _verdict(found: Any) -> str:
    words = {"waits": "waits", "nominated": "is nominated", "starts": "starts", "runs": "runs"}
    return words[found["verdict"]] + (f" ({found['reason']})" if found["reason"] else "")


def _arithmetic_lines(refusal: Any, write: Writer) -> Iterator[str]:
    """The violated inequality of an amount that is too large, with its numbers."""
    if refusal is None or refusal["kind"] != "over_quota" or not refusal["node"]:
        return
    what = refusal["flavor_resource"]
    # A named tuple is a list where it comes from a server.
    resource = what["resource"] if isinstance(what, dict) else what[1]
    balance, passed, limit = refusal["balance"], refusal["passed"], refusal["borrowing_limit"]
    before, taken = write(resource, balance), write(resource, passed)
    floor = write(resource, -limit) if limit else "0"
    after = write(resource, balance - passed)
    yield f"  T = {before}, {before} - {taken} = {after} < {floor}"


def _growth_lines(growth: Any) -> Iterator[str]:
    if growth is not None:
        yield f"  {printable(growth['sentence'])}"


def _shortage_lines(found: Any) -> Iterator[str]:
    for each in found["shortages"]:
        what = "pods" if each["leaf"] else "subgroups"
        has = f"there are {each['available']}: {each['missing']} short"
        yield f"  {printable(each['subgroup'])} needs {each['needed']} {what}, {has}"


def _lack_lines(found: Any) -> Iterator[str]:
    for lack in found["lacks"]:
        pods = f"{lack['found']} of {count(lack['needed'], 'pod')}"
        yield f"  {printable(lack['subgroup'])}: {pods} can be placed"
        together = lack["together"]
        if together is not None:
            rooms = ", ".join(
                f"{printable(each['domain'])} has room for {each['pods']}"
                for each in together["best"]
            )
            level = printable(together["level"])
            yield f"    {count(together['needed'], 'pod')} in one {level}: {rooms or 'none'}"
        for each in lack["nodes"]:
            yield f"    {count(each['nodes'], 'node')} {_cause(each)}"


def _cause(each: Any) -> str:
    if each["cause"] == "resource":
        return f"without enough {printable(each['resource'])}"
    return _CAUSES[each["cause"]]


def _option_lines(found: Any) -> Iterator[str]:
    if len(found["options"]) < 2:
        return
    for each in found["options"]:
        reason = each["unsuitable"] or (each["refusal"] and each["refusal"]["sentence"])
        yield f"  on {printable(each['flavor'])}: {printable(reason or 'could be had')}"


def _holder_lines(found: Any, write: Writer, queue: str) -> list[str]:
    holders, missing = found["holders"], found["missing"]
    if not holders or missing is None:
        return []
    resource = missing["resource"]
    owners = any(each["owner"] for each in holders)
    rows = [
        [
            printable(each["workload"]),
            printable(each["queue"]),
            *([printable(each["owner"])] if owners else []),
            *(
                write(resource, each[name]) if each[name] else "-"
                for name in ("amount", "guaranteed", "borrowed", "evictable")
            ),
        ]
        for each in holders[:MAXIMUM_LISTED]
    ]
    owner = ["OWNER"] if owners else []
    header = ["WORKLOAD", queue, *owner, "HAS", "GUARANTEED", "BORROWED", "EVICTABLE"]
    table = render_plain(header, rows, numbers=range(2 + owners, 6 + owners))
    of = f"{printable(missing['flavor'])}/" if missing["flavor"] else ""
    lines = [f"who has {of}{printable(resource)}"]
    lines += [f"  {line}" for line in table.splitlines()]
    more = len(holders) - MAXIMUM_LISTED
    return [*lines, f"  ... and {more} more"] if more > 0 else lines


def _eviction_lines(eviction: Any) -> Iterator[str]:
    if eviction is not None:
        yield f"evicted ({eviction['rule']}): {printable(eviction['sentence'])}"


def _remedy_lines(remedies: Any) -> Iterator[str]:
    if remedies is None:
        return
    plans = count(remedies["plans"], "plan")
    if not remedies["found"]:
        yield f"nothing was found that would help ({plans})"
    else:
        yield f"what would help, the cheapest first ({plans})"
    for number, each in enumerate(remedies["found"], 1):
        rough = "" if each["exact"] else "; perhaps less would do"
        yield f"  {number}. {printable(each['sentence'])}{rough}"
    if remedies["given_up"]:
        kinds = ", ".join(kind.replace("_", " ") for kind in remedies["given_up"])
        yield f"  the search was cut short for: {kinds}"
