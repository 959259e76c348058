"""What the store says at one moment, as a snapshot for the core.

Objects are kept from one snapshot to the next where nothing has changed, so that the core's memo
sees by identity what has. Must not know what is decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec
import sqlalchemy as sa

from bough.control.estate import Estate, node_sets, read_estate, uses
from bough.control.gangs import PLATFORM_LABEL, POOL_LABEL, gang_of, needed_gpus
from bough.control.site import Site
from bough.control.tree import Forest, derive
from bough.model.cluster import Node, Resources, Topology, TopologyLevel
from bough.model.gang import Gang
from bough.model.snapshot import Snapshot
from bough.model.subpool import Subpool, SubpoolState
from bough.model.workflow import Group, Task, TaskStatus, Workflow
from bough.store import settings as setting_store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store

Item = TypeVar("Item")
_YES = "yes"


class Entry(msgspec.Struct, frozen=True):
    """A group that is not over, with all that its gang is made of."""

    workflow: Workflow
    group: Group
    #: The latest attempts.
    tasks: tuple[Task, ...]
    #: The top-level pool, and the leaf.
    pool: str
    queue: str
    #: The topology of the pool, if it has one.
    topology: str | None = None
    #: It must not be planned yet: its user holds as much as one may.
    gated: bool = False


class Picture(msgspec.Struct, frozen=True):
    """A snapshot, and how to find in the store what it speaks of."""

    snapshot: Snapshot
    forest: Forest
    #: By the name of the gang.
    entries: dict[str, Entry]


class Photographer:
    """Takes snapshots, and remembers the last one."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._last = Snapshot()
        self._gangs: dict[str, tuple[Entry, Gang]] = {}
        self._needed: dict[str, int] = {}

    def take(self) -> Picture:
        """Take a snapshot of everything that is not over."""
        now_ms = self._site.clock.now_ms()
        with self._site.store.read() as connection:
            version = setting_store.counter(connection, setting_store.VERSION)
            estate = read_estate(connection)
            forest = derive(estate, self._site.namespace, self._site.prefix)
            entries = self._entries(connection, estate, forest)
        selectors, nodes = _nodes(estate, forest)
        gangs = self._make_gangs(entries, selectors)
        last = self._last
        snapshot = Snapshot(
            now_ms=now_ms,
            version=version,
            cohorts=_kept(last.cohorts, forest.cohorts),
            queues=_kept(last.queues, forest.queues),
            flavors=_kept(last.flavors, forest.flavors),
            nodes=_kept(last.nodes, nodes),
            topologies=_kept(last.topologies, self._topologies(estate)),
            gangs={
                queue: _same_objects(last.gangs.get(queue, ()), members)
                for queue, members in sorted(gangs.items())
            },
        )
        self._last = snapshot
        named = {self._gangs[each.group.uuid][1].name: each for each in entries}
        return Picture(snapshot, forest, named)

    def _topologies(self, estate: Estate) -> tuple[Topology, ...]:
        """One for each pool that has levels; subpools use their pool's."""
        return tuple(
            Topology(
                self._topology(pool.name),
                tuple(TopologyLevel(each.label, each.key) for each in pool.topology_keys),
            )
            for pool in estate.pools
            if pool.topology_keys
        )

    # Groups

    def _entries(self, connection: sa.Connection, estate: Estate, forest: Forest) -> list[Entry]:
        workflows = {each.uuid: each for each in workflow_store.alive(connection)}
        tasks: dict[str, dict[str, Task]] = {}
        for task in task_store.tasks_of_unfinished_groups(connection):
            # Later attempts come later.
            tasks.setdefault(task.group_uuid, {})[task.name] = task
        subpools = {each.name: each for each in estate.subpools}
        topologies = {pool.name for pool in estate.pools if pool.topology_keys}
        found: list[Entry] = []
        for group in task_store.unfinished_groups(connection):
            workflow = workflows.get(group.workflow_uuid)
            if workflow is None or group.status is TaskStatus.WAITING:
                continue
            latest = tuple(tasks.get(group.uuid, {}).values())
            subpool = subpools.get(workflow.pool)
            pool = workflow.pool if subpool is None else subpool.parent
            door = pool if _is_orphan(subpool, workflow, latest) else workflow.pool
            queue = forest.leaves.get(door, group.queue)
            topology = self._topology(pool) if pool in topologies else None
            found.append(Entry(workflow, group, latest, pool, queue, topology))
        limits = {
            pool.name: pool.user_gpu_limit
            for pool in estate.pools
            if pool.user_gpu_limit is not None
        }
        return self._gate(found, limits) if limits else found

    def _topology(self, pool: str) -> str:
        return f"{self._site.pool_queue(pool)}-topology"

    def _gate(self, entries: list[Entry], limits: dict[str, int]) -> list[Entry]:
        """Hold back what would give one user more than one may have, in the order of the line."""
        held: dict[tuple[str, str], int] = {}
        for entry in entries:
            if entry.pool in limits and not entry.workflow.priority.preemptible:
                key = (entry.pool, entry.workflow.submitted_by)
                gpus = sum(t.gpus for t in entry.tasks if t.status.holds_node and not t.growth)
                held[key] = held.get(key, 0) + gpus
        stopped: set[tuple[str, str]] = set()
        gated: dict[str, Entry] = {}
        for entry in sorted(entries, key=_place_in_line):
            key = (entry.pool, entry.workflow.submitted_by)
            if key not in held or any(task.status.holds_node for task in entry.tasks):
                continue
            if entry.workflow.priority.preemptible:
                continue
            needed = self._gpus_needed(entry.group)
            if key in stopped or held[key] + needed > limits[entry.pool]:
                stopped.add(key)
                gated[entry.group.uuid] = msgspec.structs.replace(entry, gated=True)
            else:
                held[key] += needed
        return [gated.get(entry.group.uuid, entry) for entry in entries]

    def _gpus_needed(self, group: Group) -> int:
        found = self._needed.get(group.uuid)
        if found is None:
            found = self._needed[group.uuid] = needed_gpus(group.spec)
        return found

    def _make_gangs(
        self, entries: Iterable[Entry], selectors: dict[str, dict[str, str]]
    ) -> dict[str, list[Gang]]:
        made: dict[str, tuple[Entry, Gang]] = {}
        gangs: dict[str, list[Gang]] = {}
        for entry in entries:
            uuid = entry.group.uuid
            known = self._gangs.get(uuid)
            selector = selectors.get(entry.pool, {})
            if known is not None and _same_gang(known[0], entry):
                gang = known[1]
                if gang.pods and gang.pods[0].node_selector != selector:
                    gang = _make(entry, selector)
            else:
                gang = _make(entry, selector)
            made[uuid] = (entry, gang)
            gangs.setdefault(entry.queue, []).append(gang)
        self._gangs = made
        self._needed = {uuid: gpus for uuid, gpus in self._needed.items() if uuid in made}
        return gangs


def _make(entry: Entry, selector: dict[str, str]) -> Gang:
    return gang_of(
        entry.workflow,
        entry.group,
        entry.tasks,
        entry.queue,
        selector,
        topology=entry.topology,
        gated=entry.gated,
    )


def _is_orphan(subpool: Subpool | None, workflow: Workflow, tasks: tuple[Task, ...]) -> bool:
    """Whether a group waits in a subpool that is being deleted, and so has no quota of its own.

    What was accepted must be able to run, or the subpool would never be empty. So what is
    guaranteed waits for the pool's shared part, which has had the subpool's quota since.
    """
    if subpool is None or subpool.state is SubpoolState.ACTIVE or workflow.priority.preemptible:
        return False
    return not any(task.status.holds_node for task in tasks)


def _same_gang(one: Entry, other: Entry) -> bool:
    """Whether two readings of a group make the same gang; why it waits is no part of it."""
    return (
        one.tasks == other.tasks
        and one.queue == other.queue
        and one.gated == other.gated
        and one.topology == other.topology
        and one.workflow.workflow_id == other.workflow.workflow_id
    )


def _place_in_line(entry: Entry) -> tuple[int, int, str]:
    workflow = entry.workflow
    return (-workflow.priority.rank, workflow.submitted_ms, entry.group.uuid)


# Nodes


def _nodes(estate: Estate, forest: Forest) -> tuple[dict[str, dict[str, str]], tuple[Node, ...]]:
    """The nodes, and what the pods of each pool must select where not all nodes are the pool's."""
    selectors: dict[str, dict[str, str]] = {}
    labels: dict[str, dict[str, str]] = {}
    for members, machines in node_sets(estate):
        for pool in members:
            usable = [machine for machine in machines if uses(pool, machine)]
            if len(usable) < len(machines):
                selectors[pool.name] = {POOL_LABEL + pool.name: _YES}
                for machine in usable:
                    labels.setdefault(machine.name, {}).update(selectors[pool.name])
    nodes: list[Node] = []
    for machine in estate.machines:
        own = {PLATFORM_LABEL: machine.platform} if machine.platform else {}
        nodes.append(
            Node(
                machine.name,
                Resources(
                    machine.gpus, machine.cpu_milli, machine.memory_bytes, machine.task_slots
                ),
                {**machine.labels, **own, **labels.get(machine.name, {})},
                flavor=forest.flavor_of_node.get(machine.name),
                cordoned=machine.cordoned,
            )
        )
    return selectors, tuple(nodes)


# Identity


def _kept(last: tuple[Item, ...], new: tuple[Item, ...]) -> tuple[Item, ...]:
    return last if last == new else new


def _same_objects(last: tuple[Gang, ...], new: Sequence[Gang]) -> tuple[Gang, ...]:
    if len(last) == len(new) and all(one is other for one, other in zip(last, new, strict=True)):
        return last
    return tuple(new)
