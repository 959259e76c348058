"""Cohorts, and the queues below them, as drawn trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.cli.output import count, printable
from bough.cli.tables import NOTHING, draw_tree, render_fields, render_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bough.api.pools import CohortAnswer, CohortConfig, QueueUsage, TreeEffects

NO_LIMIT = -1


def render_cohorts(cohorts: Sequence[CohortConfig]) -> str:
    """The tree of cohorts, a line for each."""
    if not cohorts:
        return "There are no cohorts."
    rows = [
        (
            stem + each.name,
            each.quota,
            _limit(each.borrowing_limit),
            _limit(each.lending_limit),
            each.weight,
            each.description or NOTHING,
        )
        for stem, each in draw_tree(cohorts, _identify)
    ]
    header = ("Cohort", "Quota", "Borrows", "Lends", "Weight", "Description")
    return render_table(header, rows, numbers=(1, 2, 3, 4), cut=5)


def render_cohort(each: CohortConfig) -> str:
    """One cohort, field by field."""
    return render_fields(
        [
            ("Cohort", each.name),
            ("Parent", each.parent),
            ("Quota", each.quota),
            ("Borrows", _limit(each.borrowing_limit)),
            ("Lends", _limit(each.lending_limit)),
            ("Weight", each.weight),
            ("Description", each.description or NOTHING),
        ]
    )


def render_cohort_change(answer: CohortAnswer, name: str, what: str) -> str:
    """A cohort that was changed, or would be, and what that does to the tree."""
    verb = "would be" if answer.planned else "is"
    return "\n".join([f"Cohort {printable(name)} {verb} {what}.", *_effects(answer.effects)])


def render_queues(queues: Sequence[QueueUsage]) -> str:
    """The tree of queues, a line for each."""
    rows = [
        (
            stem + each.name,
            "leaf" if each.leaf else NOTHING,
            "no limit" if each.quota is None else each.quota,
            each.used,
            each.used_guaranteed,
            each.weight,
            each.share,
            each.fair,
            each.pool,
            each.state,
        )
        for stem, each in draw_tree(queues, _identify)
    ]
    header = (
        *("Queue", "Kind", "Quota", "Used", "Guaranteed"),
        *("Weight", "Share", "Fair Now", "Pool", "State"),
    )
    return render_table(header, rows, numbers=(2, 3, 4, 5, 6, 7), status=9, cut=8)


def _identify(node: CohortConfig | QueueUsage) -> tuple[str, str | None]:
    return node.name, node.parent


def _limit(value: int | None) -> int | str:
    return "no limit" if value in (None, NO_LIMIT) else value


def _effects(effects: TreeEffects) -> Iterator[str]:
    """A line for each consequence."""
    for each in effects.debts:
        owes = f"{_node(each.node)} owes {count(each.after, 'GPU')} more than it has"
        yield f"  {owes} (before: {each.before})"
    for each in effects.relieved:
        yield f"  {_node(each.node)} owes {count(each.after, 'GPU')} (before: {each.before})"
    for each in effects.tangled:
        yield f"  {_node(each)} stops: its cohorts form a cycle"
    for each in effects.untangled:
        yield f"  {_node(each)} is free of the cycle"


def _node(node: tuple[str, str]) -> str:
    """A node of the tree, which is its kind and its name."""
    return printable(" ".join(node))
