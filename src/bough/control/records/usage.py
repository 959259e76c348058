"""GPU-hours since a time, by pool or by user."""

from __future__ import annotations

from enum import StrEnum

import msgspec
import sqlalchemy as sa

from bough.control.people.access import authorise
from bough.control.records.accounting import Amount, Quotas, account, merge_quotas
from bough.control.site import Site
from bough.errors import Invalid
from bough.model.access import Action, Actor
from bough.model.change_record import ConfigType, Revision
from bough.model.pool import Json
from bough.store import change_records as record_store
from bough.store import pools as pool_store
from bough.store import task_search

HOUR_MS = 60 * 60 * 1_000


class By(StrEnum):
    """What a row of a report is about."""

    #: A pool, or a subpool by its canonical name.
    POOL = "pool"
    USER = "user"


class GpuHours(msgspec.Struct, frozen=True):
    """GPU-milliseconds of a pool, of a user, or of all."""

    name: str
    #: Of HIGH and NORMAL, up to the minimum of each gang.
    guaranteed_ms: int = 0
    #: Of LOW, and of what gangs had beyond their minimum.
    preemptible_ms: int = 0
    #: The part of what is preemptible that was beyond the quota of its pool, or subpool.
    borrowed_ms: int = 0

    @property
    def total_ms(self) -> int:
        """All of it."""
        return self.guaranteed_ms + self.preemptible_ms

    @property
    def hours(self) -> tuple[float, float, float, float]:
        """All, guaranteed, preemptible and borrowed, in GPU-hours."""
        amounts = (self.total_ms, self.guaranteed_ms, self.preemptible_ms, self.borrowed_ms)
        total, guaranteed, preemptible, borrowed = (each / HOUR_MS for each in amounts)
        return total, guaranteed, preemptible, borrowed


class GpuHoursReport(msgspec.Struct, frozen=True):
    """What was used from one moment to another."""

    since_ms: int
    until_ms: int
    by: By
    #: By name.
    rows: tuple[GpuHours, ...]
    total: GpuHours


def get_usage(
    site: Site,
    actor: Actor,
    since_ms: int,
    until_ms: int | None = None,
    by: By = By.POOL,
) -> GpuHoursReport:
    """Add up what was held; what is still held counts up to now."""
    authorise(actor, Action.RESOURCE_LIST, names=site.role_names)
    now_ms = site.clock.now_ms()
    until_ms = now_ms if until_ms is None else min(until_ms, now_ms)
    if since_ms >= until_ms:
        raise Invalid("Usage: the time must begin in the past, and before it ends.")
    with site.store.read() as connection:
        stretches = task_search.list_stretches(connection, since_ms, until_ms)
        quotas = read_quotas(connection)
    amounts = account(stretches, quotas, since_ms, until_ms)
    return _report(amounts, since_ms, until_ms, by)


def read_quotas(connection: sa.Connection) -> dict[str, Quotas]:
    """The quota of every pool, after its subpools, and of every subpool, through its history."""
    types = (ConfigType.POOL, ConfigType.SUBPOOL)
    history: dict[tuple[ConfigType, str], list[Revision]] = {}
    for revision in record_store.list_revisions(connection, types=types):
        history.setdefault((revision.config_type, revision.name), []).append(revision)
    subpools = pool_store.list_subpools(connection)
    found: dict[str, Quotas] = {}
    for each in subpools:
        steps = history.get((ConfigType.SUBPOOL, each.name), ())
        found[each.name] = [(0, 0), *((step.created_ms, _counted(step.data)) for step in steps)]
    totals: dict[str, Quotas] = {
        pool.name: [(0, pool.gpu.guarantee)] for pool in pool_store.list_pools(connection)
    }
    for (kind, name), steps in history.items():
        known = [step for step in steps if step.data is not None]
        if kind is ConfigType.POOL and known:
            totals[name] = [(step.created_ms, _guarantee(step.data)) for step in known]
    for name, total in totals.items():
        parts = [found[each.name] for each in subpools if each.parent == name]
        found[name] = merge_quotas(total, parts)
    return found


def _report(
    amounts: dict[tuple[str, str], Amount], since_ms: int, until_ms: int, by: By
) -> GpuHoursReport:
    sums: dict[str, Amount] = {}
    for (pool, user), amount in amounts.items():
        name = pool if by is By.POOL else user
        sums[name] = sums.get(name, Amount()) + amount
    total = Amount()
    for amount in sums.values():
        total += amount
    rows = tuple(GpuHours(name, *sums[name]) for name in sorted(sums))
    return GpuHoursReport(since_ms, until_ms, by, rows, GpuHours("total", *total))


def _guarantee(data: Json) -> int | None:
    """The quota of a pool in its history, where -1 means no limit."""
    value: int | None = data["resources"]["gpu"]["guarantee"]
    return None if value == -1 else value


def _counted(data: Json) -> int:
    return 0 if data is None else int(data["counted"])
