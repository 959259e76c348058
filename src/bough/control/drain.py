"""CheckSubpoolDrain: a subpool that is being deleted is archived when nothing is left in it.

It is looked at when a workflow in it ends, and every so often in case that was missed; what is to
be looked at, and when, is in the store, so nothing is lost with the server and nothing is looked at
twice. Must not know why a workflow ended.
"""

from __future__ import annotations

import msgspec
import sqlalchemy as sa

from bough.control.recording import SYSTEM_ACTOR, subpool_changed
from bough.control.settings import read_workflow_settings
from bough.control.site import Site
from bough.model.subpool import Subpool, SubpoolState, SubpoolStep, next_state
from bough.store import pools as pool_store
from bough.store import settings as setting_store
from bough.store import workflows as workflow_store


def arm(site: Site, connection: sa.Connection, subpool: Subpool) -> None:
    """Look at a subpool again after the interval."""
    settings = read_workflow_settings(connection)
    due_ms = site.clock.now_ms() + settings.subpool_drain_check_interval_s * 1_000
    pool_store.arm_monitor(connection, subpool.name, due_ms)


def check_drain(site: Site, name: str) -> bool:
    """Archive a subpool that is being deleted and empty; say whether it was. Twice is no harm."""
    with site.store.read() as connection:
        found = pool_store.find(connection, name)
    if not isinstance(found, Subpool) or found.state is not SubpoolState.DELETING:
        return False
    with site.store.write() as connection:
        pool_store.lock(connection, found.parent)
        subpool = pool_store.find_subpool(connection, found.parent, found.subpool)
        archived = subpool is not None and _archive(site, connection, subpool)
        if subpool is not None and not archived and subpool.state is SubpoolState.DELETING:
            arm(site, connection, subpool)
    if archived:
        site.wake()
    return archived


def check_due_drains(site: Site) -> list[str]:
    """Look at everything that is due; the names of what was archived."""
    now_ms = site.clock.now_ms()
    with site.store.read() as connection:
        monitors = pool_store.list_monitors(connection)
    due = [name for name, due_ms in monitors.items() if due_ms <= now_ms]
    archived = [name for name in due if check_drain(site, name)]
    _disarm_others(site, due)
    return archived


def rearm_drains(site: Site) -> list[str]:
    """At the start: look at every subpool that is being deleted; the names of what was archived."""
    with site.store.write() as connection:
        armed = pool_store.list_monitors(connection)
        draining = [
            each
            for each in pool_store.list_subpools(connection)
            if each.state is SubpoolState.DELETING
        ]
        for subpool in draining:
            if subpool.name not in armed:
                arm(site, connection, subpool)
    return [each.name for each in draining if check_drain(site, each.name)]


def _archive(site: Site, connection: sa.Connection, subpool: Subpool) -> bool:
    state = next_state(subpool.state, SubpoolStep.DRAINED)
    if state is None or workflow_store.count_alive(connection, subpool.name):
        return False
    archived = msgspec.structs.replace(subpool, state=state)
    pool_store.update_subpool(connection, archived)
    pool_store.disarm_monitor(connection, subpool.name)
    subpool_changed(connection, site, SYSTEM_ACTOR, "subpool:Drained", subpool, archived)
    setting_store.raise_counter(connection, setting_store.VERSION)
    return True


def _disarm_others(site: Site, due: list[str]) -> None:
    """Forget monitors of what is not being deleted any more, by whatever way that came about."""
    if not due:
        return
    with site.store.write() as connection:
        for name in due:
            found = pool_store.find(connection, name)
            if not isinstance(found, Subpool) or found.state is not SubpoolState.DELETING:
                pool_store.disarm_monitor(connection, name)
