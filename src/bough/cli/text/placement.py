"""Where pods go, as a picture of racks and nodes; or why they have no place."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from string import ascii_uppercase
from typing import TYPE_CHECKING

from bough.cli.output import count, printable
from bough.cli.tables import tree_stems

if TYPE_CHECKING:
    from bough.api.file_answers import (
        PlacedGang,
        PlacementAnswer,
        PlaceNode,
        PlaceRefusal,
        UnplacedPods,
        UnresolvedTopology,
    )
    from bough.api.why import NodeCauseCount

RUNS, ENDS, FREE = "#", "~", "."
#: How many causes and domains a sentence names; JSON has them all.
MAXIMUM_NAMES = 4

_CAUSES = {
    "outside_topology": "outside the topology",
    "cordoned": "take no new pods",
    "selector": "are not selected",
    "taint": "have a taint that is not tolerated",
    "fits": "would take one, but not enough of them",
}
_RESOURCES = {"gpus": "GPUs", "cpu": "CPU", "memory": "memory", "pods": "pod slots"}


def render_placement(answer: PlacementAnswer, *, everything: bool = False) -> str:
    """The picture, then a line for each gang, then what the signs mean."""
    letters = {
        gang.name: ascii_uppercase[number % len(ascii_uppercase)]
        for number, gang in enumerate(gang for gang in answer.gangs if gang.started)
    }
    lines = _picture(answer, letters, everything=everything)
    lines.append("")
    for gang in answer.gangs:
        lines += _gang_lines(gang, letters.get(gang.name, " "))
    if not answer.gangs:
        lines.append("no gangs")
    lines += ["", _legend(answer)]
    return "\n".join(lines)


def _picture(answer: PlacementAnswer, letters: dict[str, str], *, everything: bool) -> list[str]:
    levels = answer.topology.levels if answer.topology else []
    rows: list[tuple[int, str]] = [(0, _title(answer))]
    inside = [node for node in answer.nodes if node.domain or not levels]
    outside = [node for node in answer.nodes if levels and not node.domain]
    rows += _domain_rows(inside, levels, 0, letters, everything)
    if outside:
        rows.append((1, f"outside the topology: {_summary(outside)}"))
        rows += ((depth + 2, text) for depth, text in _node_rows(outside, letters, everything))
    stems = tree_stems([depth for depth, _ in rows])
    return [stem + text for (_, text), (stem, _) in zip(rows, stems, strict=True)]


def _title(answer: PlacementAnswer) -> str:
    nodes = answer.nodes
    topology = answer.topology
    name = f"{printable(topology.name)}: " if topology else ""
    return f"{name}{_summary(nodes)}"


def _domain_rows(
    nodes: list[PlaceNode], levels: list[str], depth: int, letters: dict[str, str], everything: bool
) -> Iterator[tuple[int, str]]:
    """Domains that get something in full, the others in one line."""
    if depth == len(levels):
        for row, text in _node_rows(nodes, letters, everything):
            yield depth + 1 + row, text
        return
    untouched: list[PlaceNode] = []
    shown = others = 0
    for name, members in groupby(nodes, key=lambda node: node.domain[depth]):
        inside = list(members)
        if everything or any(_is_new(node) for node in inside):
            shown += 1
            yield depth + 1, f"{printable(name)}: {_summary(inside)}"
            yield from _domain_rows(inside, levels, depth + 1, letters, everything)
        else:
            untouched += inside
            others += 1
    if untouched:
        level = ("more " if shown else "") + printable(levels[depth].rpartition("/")[2])
        yield depth + 1, f"{count(others, level)}: {_summary(untouched)}"


def _node_rows(
    nodes: list[PlaceNode], letters: dict[str, str], everything: bool
) -> Iterator[tuple[int, str]]:
    shown = [node for node in nodes if everything or _is_new(node)]
    width = max((len(printable(node.name)) for node in shown), default=0)
    for node in shown:
        note = "  takes no new pods" if node.cordoned else ""
        small = sum(1 for pod in node.pods if pod.state in _NEW and not pod.gpus)
        if small:
            note += f"  {count(small, 'pod')} without GPUs"
        yield 0, f"{printable(node.name):<{width}}  {_bar(node, letters)}{note}"
    rest = [node for node in nodes if node not in shown]
    if rest and shown:
        yield 0, f"{count(len(rest), 'more node')}: {_free(rest)}"


_NEW = ("starts", "waits")


def _is_new(node: PlaceNode) -> bool:
    return any(pod.state in _NEW for pod in node.pods)


def _bar(node: PlaceNode, letters: dict[str, str]) -> str:
    """One sign for each GPU."""
    signs = ""
    ending = 0
    for pod in node.pods:
        if pod.state == "ends":
            ending += pod.gpus
        elif pod.state == "runs":
            signs += RUNS * pod.gpus
        else:
            letter = letters[pod.gang]
            signs += (letter.lower() if pod.state == "waits" else letter) * pod.gpus
    # Pods that wait stand on the GPUs of those that end.
    signs += ENDS * min(ending, max(0, node.gpus - len(signs)))
    return signs + FREE * max(0, node.gpus - len(signs))


def _summary(nodes: list[PlaceNode]) -> str:
    return f"{count(len(nodes), 'node')}, {_free(nodes)}"


def _free(nodes: list[PlaceNode]) -> str:
    free, total = sum(node.free_gpus for node in nodes), sum(node.gpus for node in nodes)
    return f"{free} of {total} GPUs free"


def _legend(answer: PlacementAnswer) -> str:
    states = {pod.state for node in answer.nodes for pod in node.pods}
    signs: list[str] = []
    if "starts" in states:
        signs.append("a letter is a GPU of a gang that starts")
    if "waits" in states:
        signs.append("a small letter is a GPU of a gang that starts when others have ended")
    if "runs" in states:
        signs.append(f"{RUNS} in use")
    if "ends" in states:
        signs.append(f"{ENDS} ending")
    return ", ".join([*signs, f"{FREE} free"])


def _gang_lines(gang: PlacedGang, letter: str) -> list[str]:
    name = printable(gang.name)
    refusal = gang.refusal
    if refusal is not None:
        return [f"  {name}: has no place", *(f"    {line}" for line in _reasons(refusal))]
    started = gang.started
    optional = sum(each.optional for each in started)
    waiting = sum(each.waits for each in started)
    parts = [f"{count(len(started), 'pod')} placed" if started else "nothing to place"]
    if optional:
        parts.append(f"{optional} beyond the minimum")
    if waiting:
        parts.append(f"{waiting} wait for others to end")
    if gang.running:
        parts.append(f"{len(gang.running)} running")
    if gang.left:
        parts.append(f"{len(gang.left)} left waiting")
    return [f"{letter} {name}: {', '.join(parts)}"]


def _reasons(refusal: PlaceRefusal) -> Iterator[str]:
    for each in refusal.lacks_pods:
        what = f"{printable(each.subgroup)} needs {each.needed}"
        yield f"{what}, but only {each.available} can be had from the pods that there are"
    for each in refusal.unresolved:
        yield _unresolved(each)
    for each in refusal.short:
        yield (
            f"{printable(each.subgroup)} needs {each.needed} more of "
            f"{each.candidates} subgroups, {each.found} can be placed"
        )
    for lack in refusal.lacks:
        yield from _lack(lack)
    if refusal.gave_up:
        yield "the search was given up for its length: there may be a place"


def _unresolved(each: UnresolvedTopology) -> str:
    known = ", ".join(printable(name) for name in each.known) or "none"
    subgroup = printable(each.subgroup)
    if each.unknown is None:
        return f"{subgroup} names no topology, and there is not just one; known are {known}"
    return f"{subgroup} names {printable(each.unknown)}, which there is not; known are {known}"


def _lack(lack: UnplacedPods) -> Iterator[str]:
    yield (
        f"{printable(lack.subgroup)}: {lack.missing} of {count(lack.needed, 'pod')} "
        f"({_requests(lack.requests)} each) have no place"
    )
    if lack.unsupported:
        yield f"  they ask for {printable(lack.unsupported)}, which cannot be planned"
        return
    if lack.absent:
        yield f"  no node has {', '.join(printable(name) for name in lack.absent)}"
    together = lack.together
    if together is not None:
        level = printable(together.level)
        why = "pods that run allow only" if together.pinned else "must be in one"
        best = ", ".join(
            f"{printable(each.domain)} holds {each.pods}" for each in together.best[:MAXIMUM_NAMES]
        )
        more = together.domains - len(together.best[:MAXIMUM_NAMES])
        others = f", {more} others no more" if more > 0 else ""
        pods = count(together.needed, "pod")
        yield f"  {pods} {why} {level}: {best or 'there is none'}{others}"
    causes = [f"{each.nodes} {_cause(each)}" for each in lack.nodes]
    if causes:
        yield f"  of the nodes: {', '.join(causes)}"


def _cause(each: NodeCauseCount) -> str:
    if each.cause == "resource":
        resource = str(each.resource)
        return f"lack {printable(_RESOURCES.get(resource, resource))}"
    return _CAUSES[each.cause]


def _requests(requests: dict[str, int]) -> str:
    parts: list[str] = []
    for name, amount in requests.items():
        if not amount:
            continue
        if name == "gpus":
            parts.append(count(amount, "GPU"))
        elif name == "cpu_milli":
            parts.append(f"{amount / 1000:g} CPU")
        elif name == "memory_bytes":
            parts.append(f"{amount / (1 << 30):.4g} GiB")
        else:
            parts.append(f"{amount} {printable(name)}")
    return ", ".join(parts) or "nothing"
