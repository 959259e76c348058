"""After a restore: what servers know is out of date, and tasks may run that no record has."""

from __future__ import annotations

from collections.abc import Sequence

from bough.control.config.settings import read_workflow_settings
from bough.control.site import Site
from bough.model.backend import Observation, Sight, Stop
from bough.store import settings as setting_store
from bough.store import tasks as task_store
from bough.store.dump import RESTORED

_ALIVE = (Sight.STARTING, Sight.STUCK, Sight.RUNNING)


def last_restore(site: Site) -> str:
    """The identity of the last restore; empty: there was none."""
    with site.store.read() as connection:
        return str(setting_store.get(connection, RESTORED) or "")


def unattended(site: Site, backend: str) -> str:
    """The last restore, if a backend still has to end the attempts that it did not bring back."""
    with site.store.read() as connection:
        restore = str(setting_store.get(connection, RESTORED) or "")
        return "" if restore == setting_store.get(connection, _attended(backend)) else restore


def stop_unknown(site: Site, seen: Sequence[Observation]) -> Stop | None:
    """End attempts that run and are in no record."""
    alive = [each.attempt for each in seen if each.sight in _ALIVE]
    with site.store.read() as connection:
        known = {task.attempt for task in task_store.attempts(connection, alive)}
        grace_s = read_workflow_settings(connection).termination_grace_s
    unknown = tuple(each for each in alive if each not in known)
    return Stop(unknown, "restore", grace_s) if unknown else None


def stop_strays(site: Site, seen: Sequence[Observation]) -> Stop | None:
    """End what runs and holds nothing: its end is written down, or it was never known."""
    alive = [each.attempt for each in seen if each.sight in _ALIVE]
    if not alive:
        return None
    with site.store.read() as connection:
        tasks = task_store.attempts(connection, alive)
        grace_s = read_workflow_settings(connection).termination_grace_s
    holding = {task.attempt for task in tasks if task.status.holds_node}
    strays = tuple(each for each in alive if each not in holding)
    return Stop(strays, "stray", grace_s) if strays else None


def note_attended(site: Site, backend: str, restore: str) -> None:
    """Record that this restore is dealt with."""
    with site.store.write() as connection:
        setting_store.put(connection, _attended(backend), restore)


def _attended(backend: str) -> str:
    return f"{RESTORED}/{backend}"
