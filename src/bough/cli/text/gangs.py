"""Gangs as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.cli.output import count, printable
from bough.cli.tables import render_plain, tree_stems

if TYPE_CHECKING:
    from bough.api.file_answers import (
        GangConstraint,
        GangNodeLine,
        GangsAnswer,
        GangTreeAnswer,
        ReleaseUnit,
    )

_HEADER = ("NODE", "NEEDS", "HAS", "WAITING", "TO START", "SURPLUS", "TOGETHER", "NOTE")
_NUMBERS = range(2, 6)
#: How many pods a sentence names; JSON has them all.
MAXIMUM_NAMES = 6


def render_gangs(answer: GangsAnswer) -> str:
    """For each gang: how it stands in a sentence or two, then its tree."""
    if not answer.gangs:
        return "no gangs"
    return "\n\n".join(_render_gang(gang) for gang in answer.gangs)


def _render_gang(gang: GangTreeAnswer) -> str:
    nodes = gang.nodes
    stems = tree_stems([node.depth for node in nodes])
    rows = [_row(node, stem) for node, (stem, _) in zip(nodes, stems, strict=True)]
    used = [index for index in range(len(_HEADER)) if index < 6 or any(row[index] for row in rows)]
    table = render_plain(
        [_HEADER[index] for index in used],
        [[row[index] for index in used] for row in rows],
        numbers=_NUMBERS,
    )
    return "\n".join([*_sentences(gang), table])


def _row(node: GangNodeLine, stem: str) -> list[str]:
    return [
        stem + printable(node.name),
        _needs(node),
        str(node.reached),
        str(node.waiting),
        str(node.to_start),
        str(node.surplus),
        "; ".join(_together(each) for each in node.topology),
        _note(node),
    ]


def _needs(node: GangNodeLine) -> str:
    if node.leaf:
        return count(node.minimum, "pod")
    return f"{node.minimum} of {count(node.members, 'subgroup')}"


def _together(constraint: GangConstraint) -> str:
    parts = [
        f"{level}{mark}"
        for level, mark in ((constraint.required, ""), (constraint.preferred, " if possible"))
        if level
    ]
    text = printable(" and ".join(parts))
    if constraint.leaves is None:
        return text
    return f"{printable(' + '.join(constraint.leaves))}: {text}"


def _note(node: GangNodeLine) -> str:
    if node.satisfied:
        return "surplus" if node.surplus and node.surplus == node.held else ""
    if not node.can_be:
        return "lacks pods"
    return "" if node.to_start else "optional"


def _sentences(gang: GangTreeAnswer) -> list[str]:
    where = f", queue {printable(gang.queue)}" if gang.queue else ""
    lines = [f"{printable(gang.name)}{where}: {_state(gang)}"]
    pods = count(gang.not_preemptible, "pod")
    lines.append(
        f"  not preemptible: {pods}; holds {gang.held}, of which {len(gang.surplus)} surplus;"
        f" {gang.waiting} waiting"
    )
    if gang.queue_obstacle:
        lines.append(f"  waits, whatever room there is: {printable(gang.queue_obstacle)}")
    if gang.next_unit:
        lines.append(f"  gives back next: {_unit(gang.next_unit)}")
    if gang.growth:
        units = [f"{printable(unit.node)} (+{count(unit.pods, 'pod')})" for unit in gang.growth]
        lines.append(f"  grows next: {_list(units)}")
    if gang.strays:
        lines.append(f"  in no leaf, never placed: {_list(gang.strays)}")
    return lines


def _state(gang: GangTreeAnswer) -> str:
    if gang.complete:
        return "complete"
    state = "stale, it runs with less than it needs; " if gang.stale else ""
    if gang.can_start:
        verb = "can be completed" if gang.held else "can start"
        return f"{state}{verb} with {count(len(gang.first_choice), 'pod')}"
    return f"{state}lacks pods: " + ", ".join(
        f"{printable(short.node)} has {short.available} of {short.needed}"
        for short in gang.shortages
    )


def _unit(unit: ReleaseUnit) -> str:
    names = _list(unit.pods)
    if unit.kind == "pod":
        return f"pod {names} of {printable(unit.node)}"
    return f"the whole {unit.kind} {printable(unit.node)} ({names})"


def _list(names: list[str]) -> str:
    shown = [printable(name) for name in names[:MAXIMUM_NAMES]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
