"""Nodes that are to be empty, and nodes that are no longer there: what becomes of what they hold.

Must not know how a backend ends a task.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import sqlalchemy as sa

from bough.control.config.settings import read_workflow_settings
from bough.control.people.access import authorise
from bough.control.pools import subpool_drain
from bough.control.recording import audit, happen
from bough.control.scheduling import observations
from bough.control.site import Site
from bough.control.workflows.lifecycle import DRAIN, VANISHED
from bough.control.workflows.load_changes import open_cases, write_cases
from bough.errors import NotFound
from bough.model.access import Action, Actor
from bough.model.backend import Observation, Sight
from bough.model.pool import Machine
from bough.model.record import EventKind
from bough.model.settings import VanishedNode
from bough.store import nodes as machine_store
from bough.store import settings as setting_store
from bough.store import tasks as task_store


class Drained(msgspec.Struct, frozen=True):
    """A node that takes nothing new, and what was told to leave it."""

    machine: Machine
    #: How many attempts were told to end, and how many stay until they end by themselves.
    told: int
    left: int


def drain_node(site: Site, actor: Actor, name: str, *, leave: bool = False) -> Drained:
    """Let nothing new onto a node, and have what is on it end; by default it comes again elsewhere.

    `leave`: it stays until it ends by itself.
    """
    authorise(actor, Action.NODE_UPDATE, names=site.role_names)
    with site.store.write() as connection:
        known = {each.name: each for each in machine_store.list_all(connection)}
        if name not in known:
            raise NotFound(f"Node {name} not found.")
        # First, so that no plan that still counts on the node is applied.
        setting_store.raise_counter(connection, setting_store.VERSION)
        machine = msgspec.structs.replace(known[name], cordoned=True)
        machine_store.put(connection, (machine,))
        there = [
            task.attempt
            for task in task_store.holding(connection, (name,))
            if task.releasing is None
        ]
        told = 0 if leave else _release(site, connection, name)
        drained = Drained(machine, told, len(there) - told)
        audit(connection, site, actor, "node:Drain", f"node/{name}", known[name], drained)
        happen(connection, site, EventKind.NODE_CHANGED, name, message="drained")
    site.wake()
    return drained


def end_lost(site: Site, connection: sa.Connection, names: Sequence[str]) -> set[str]:
    """End what was on nodes that are gone, unless it is to be left; the pools of what has ended.

    Their backend is told, too, in case they are somewhere after all.
    """
    if not names or read_workflow_settings(connection).vanished_node is VanishedNode.LEAVE:
        return set()
    lost = task_store.holding(connection, names)
    news: dict[str, list[Observation]] = {}
    now_ms = site.clock.now_ms()
    for task in lost:
        seen = Observation(task.attempt, Sight.LOST, now_ms)
        news.setdefault(task.workflow_uuid, []).append(seen)
    cases = open_cases(site, connection, sorted(news))
    for case in cases:
        for each in news[case.workflow.uuid]:
            task = case.task(each.attempt)
            if task is not None and task.status.holds_node:
                case.release(task, VANISHED, at_once=True)
    return observations.note_all(site, connection, cases, news)


def check_drains(site: Site, pools: set[str]) -> None:
    """Workflows in these pools, or subpools, have ended: see whether one of them is empty."""
    for pool in sorted(pools):
        subpool_drain.check_drain(site, pool)


def _release(site: Site, connection: sa.Connection, node: str) -> int:
    there = task_store.holding(connection, (node,))
    cases = open_cases(site, connection, sorted({task.workflow_uuid for task in there}))
    told = 0
    for case in cases:
        for task in case.unfinished():
            if task.node == node and task.status.holds_node and task.releasing is None:
                case.release(task, DRAIN)
                told += 1
        case.settle()
    write_cases(connection, cases, site.clock.now_ms())
    return told
