"""Pools and subpools as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.cli.output import count, printable, some_of
from bough.cli.screen import screen
from bough.cli.tables import NOTHING, Cell, cell_text, render_fields, render_ruled, render_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bough.api.pools import (
        DrainReport,
        PoolAnswer,
        PoolDocument,
        PoolQuotas,
        PoolUsage,
        ResourceUsage,
        SubpoolAnswer,
    )

    #: What is drawn before a pool, the pool, and what it has with its subpools.
    Drawn = tuple[str, PoolUsage, str | None]

_HEADER = ("Pool", "Status", "Subpool State", "GPU Quota", "Used", "Available")
_LEAST = (14, 13, 13)
#: What the wire says for "no limit" within `resources`.
NO_LIMIT = -1
#: Whose workflows can be cancelled, by the setting of the pool.
_CANCEL = {
    "any": "All its users can cancel all its workflows.",
    "own": "Its users can cancel their own workflows, and its admins all of them.",
}
#: How many workflows a text names; JSON has more.
MAXIMUM_NAMED = 10


def render_pools(answer: PoolQuotas, *, verbose: bool = False) -> str:
    """Pools with their subpools as trees: what is left for the pool itself, and for each part.

    Verbose, it also says what can really start now, and what keeps a drain open.
    """
    tree = list(_tree(answer))
    if not tree:
        return "No pools available"
    table = (_osmo_tree if screen().osmo else _plain_tree)(tree, verbose=verbose)
    pools = [pool for _, pool, _ in tree]
    notes: list[str] = []
    if verbose:
        notes += [*_offline(pools), *(line for pool in pools for line in _notes(pool))]
    elif not screen().osmo:
        notes += [*_offline(pools), *_footnotes(pools)]
    return "\n".join([table, "", *notes]) if notes else table


def _offline(pools: Sequence[PoolUsage]) -> Iterator[str]:
    """Why pools are OFFLINE, once for all that share the reason."""
    reasons = dict.fromkeys(each.offline for each in pools if each.offline)
    for reason in reasons:
        named = ", ".join(each.name for each in pools if each.offline == reason)
        yield f"OFFLINE: {named}. {reason}"


def _footnotes(pools: Sequence[PoolUsage]) -> Iterator[str]:
    """Where less can start than the table says is available, once for all that share the reason."""
    short = [each for each in pools if each.can_start_note and not each.offline]
    for reason in dict.fromkeys(each.can_start_note for each in short):
        alike = [each for each in short if each.can_start_note == reason]
        names = some_of([each.name for each in alike], MAXIMUM_NAMED)
        much = alike[0].can_start if len(alike) == 1 else "less than is available"
        yield f"{names} can start {much} now: {reason}"


def _notes(pool: PoolUsage) -> Iterator[str]:
    """Why less can start than is left on paper, and what keeps a drain open."""
    if not pool.parent_pool and not screen().osmo:
        yield f"{pool.name}: {_CANCEL[pool.cancel or 'any']}"
    if pool.can_start_note:
        yield f"{pool.name} can start {pool.can_start}: {pool.can_start_note}"
    if pool.drain:
        first, *rest = drain_lines(pool.drain)
        yield f"{pool.name} is {first}"
        yield from rest


def render_usage(answer: PoolQuotas, mode: str) -> str:
    """Pools with what is used, or free, of quota and nodes, and the sums."""
    titles, columns = _MODES[mode]
    rows: list[list[str]] = []
    for node_set in answer.node_sets:
        for number, pool in enumerate(node_set.pools):
            cells = columns(pool.resource_usage)
            # Counted over all nodes that pools share, so the number stands there again.
            shared = " (shared)" if number else ""
            description = [pool.description] if screen().osmo else []
            cells = [*cells[:-1], f"{cells[-1]}{shared}"]
            rows.append([pool.name, *description, pool.status, *cells])
    if not rows:
        return "No pools available"
    totals = columns(answer.resource_sum)
    if not screen().osmo:
        header = ("Pool", "Status", *(title.removeprefix("Total ") for title in titles))
        return render_table(header, rows, totals=["", "", *totals], numbers=range(2, 6), status=1)
    first, *rest = titles
    header = ("Pool", "Description", "Status", f"GPU [#]\n{first}", *(f"\n{each}" for each in rest))
    return render_table(header, rows, totals=["", "", "", *totals])


def _used(usage: ResourceUsage) -> list[str]:
    return [usage.quota_used, usage.quota_limit, usage.total_usage, usage.total_capacity]


def _free(usage: ResourceUsage) -> list[str]:
    return [usage.quota_free, usage.total_free]


_MODES = {
    "used": (["Quota Used", "Quota Limit", "Total Usage", "Total Capacity"], _used),
    "free": (["Quota Free", "Total Free"], _free),
}


def render_subpools(answer: Sequence[PoolDocument]) -> str:
    """A line for each subpool."""
    if not answer:
        return "There are no subpools."
    rows = [(each.name, each.status, each.subpool_state, _quota(each)) for each in answer]
    return render_table(("Subpool", "Status", "State", "GPU Quota"), rows, numbers=(3,), status=1)


def render_pool(pool: PoolDocument) -> str:
    """One pool or subpool, field by field."""
    fields: list[tuple[str, Cell]] = [("Pool", pool.name)]
    if pool.subpool_name:
        fields += [("Parent", pool.parent_pool), ("State", pool.subpool_state)]
    fields += [
        ("Status", pool.status),
        *([("Offline", pool.offline)] if pool.offline else []),
        ("GPU Quota", _quota(pool)),
        *_limits(pool),
        ("Backend", pool.backend),
        ("Cohort", pool.cohort),
        *([] if screen().osmo else [("Cancel", pool.cancel or "any")]),
        ("Description", pool.description or NOTHING),
    ]
    shown = render_fields(fields)
    if pool.drain:
        first, *rest = drain_lines(pool.drain)
        return "\n".join([shown, "", f"It is {first}", *rest])
    return shown


def render_new_pool(pool: PoolDocument, name: str) -> str:
    """A pool that was created, and what may surprise about it."""
    first = f"Pool {printable(name)} is created."
    return first if screen().osmo else f"{first} {_CANCEL[pool.cancel or 'any']}"


def render_pool_change(answer: PoolAnswer, name: str) -> str:
    """A pool that was updated, or would be."""
    verb = "would be" if answer.planned else "is"
    return "\n".join([f"Pool {printable(name)} {verb} updated.", *_consequences(answer)])


def render_change(answer: SubpoolAnswer, what: str) -> str:
    """A subpool that was created or updated, or would be."""
    gpus = count(answer.quota or 0, "GPU")
    verb = "would be" if answer.planned else "is"
    first = f"Subpool {answer.name} {verb} {what}: {answer.subpool_state}, quota {gpus}."
    return "\n".join([first, *_consequences(answer)])


def render_deletion(answer: SubpoolAnswer) -> str:
    """A subpool that was deleted, or would be."""
    name, state = answer.name, answer.subpool_state
    verb = "would be" if answer.planned else "is"
    first = f"Subpool {name} {verb} {state}."
    if state == "DELETING":
        first = f"Subpool {name} {verb} {state}: it is archived when its workflows have ended."
    return "\n".join([first, *_consequences(answer)])


def drain_lines(drain: DrainReport) -> Iterator[str]:
    """What keeps a drain open."""
    number = drain.workflow_count
    yield f"kept open by {count(number, 'workflow')}:"
    shown = drain.workflows[:MAXIMUM_NAMED]
    for each in shown:
        amount = count(each.gpus, "GPU")
        yield printable(
            f"  {each.workflow_id} ({each.status}, {each.priority}, {amount}, "
            f"{each.submitted_by}) {each.message}"
        )
    yield from _rest(number - len(shown))


def _limits(pool: PoolDocument) -> Iterator[tuple[str, Cell]]:
    """The limits that are set."""
    gpu = pool.resources.gpu
    limits: tuple[tuple[str, Cell], ...] = (
        ("Maximum", None if gpu.maximum == NO_LIMIT else gpu.maximum),
        ("Weight", None if gpu.weight == 1 else gpu.weight),
        ("Borrows", pool.borrowing_limit),
        ("Lends", pool.lending_limit),
        ("GPUs per User", pool.user_gpu_limit),
        ("Exec Timeout", pool.default_exec_timeout),
        ("Maximum Exec Timeout", pool.max_exec_timeout),
        ("Queue Timeout", pool.default_queue_timeout),
        ("Maximum Queue Timeout", pool.max_queue_timeout),
        ("Exit Actions", pool.default_exit_actions),
    )
    for title, value in limits:
        if value not in (None, "", {}):
            yield title, value


def _tree(answer: PoolQuotas) -> Iterator[Drawn]:
    """Each pool followed by its subpools: its stem, itself, and what it has with its subpools."""
    pools = [pool for each in answer.node_sets for pool in each.pools]
    by_name = {pool.name: pool for pool in pools}
    children: dict[str, list[PoolUsage]] = {}
    for pool in pools:
        parent = pool.parent_pool
        if parent in by_name:
            children.setdefault(parent, []).append(pool)
    nested = {pool.name for each in children.values() for pool in each}
    for name in sorted(by_name.keys() - nested):
        pool, below = by_name[name], sorted(children.get(name, ()), key=lambda each: each.name)
        yield "", pool, _total(pool, below) if below else None
        for child in below:
            yield "└─ " if child is below[-1] else "├─ ", child, None


def _plain_tree(tree: list[Drawn], *, verbose: bool) -> str:
    rows = [
        [
            stem + pool.name,
            pool.status,
            pool.subpool_state,
            pool.resource_usage.quota_limit,
            total,
            pool.resource_usage.quota_used,
            pool.resource_usage.quota_free,
            *((pool.can_start,) if verbose else ()),
        ]
        for stem, pool, total in tree
    ]
    header = ["Pool", "Status", "State", "Quota", "Total", "Used", "Available"]
    header += ["Can Start"] if verbose else []
    return render_table(header, rows, numbers=range(3, 8), status=1)


def _osmo_tree(tree: list[Drawn], *, verbose: bool) -> str:
    rows = [
        [
            stem + pool.name,
            pool.status,
            cell_text(pool.subpool_state),
            str(pool.resource_usage.quota_limit)
            + (f" (Total: {total})" if total is not None else ""),
            str(pool.resource_usage.quota_used),
            str(pool.resource_usage.quota_free),
            *((cell_text(pool.can_start),) if verbose else ()),
        ]
        for stem, pool, total in tree
    ]
    header = (*_HEADER, "Can Start") if verbose else _HEADER
    return render_ruled(header, rows, rule="-", gap="  ", least=_LEAST)


def _total(pool: PoolUsage, below: list[PoolUsage]) -> str:
    if pool.quota_total is not None:
        return pool.quota_total
    return str(sum(int(each.resource_usage.quota_limit) for each in (pool, *below)))


def _quota(pool: PoolDocument) -> str:
    quota = pool.quota
    if quota is None:
        quota = pool.resources.gpu.guarantee
    return "no limit" if quota == NO_LIMIT else str(quota)


def _consequences(answer: PoolAnswer) -> Iterator[str]:
    for affected, number in (
        (answer.stranded, answer.stranded_count),
        (answer.delayed, answer.delayed_count),
    ):
        shown = affected[:MAXIMUM_NAMED]
        for each in shown:
            yield printable(
                f"  {each.workflow_id} ({each.priority}, {each.gpus} GPUs, in "
                f"{each.pool}) {each.message}"
            )
        yield from _rest(number - len(shown))


def _rest(number: int) -> Iterator[str]:
    if number > 0:
        yield f"  and {number} more"
