"""What the store says at one moment, as a snapshot for the core.

Objects that did not change are kept from one snapshot to the next, so that the core's memo finds
changes by identity.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from bough.control.config.policy import PolicyReader
from bough.control.gangs_of_groups import PLATFORM_LABEL, POOL_LABEL, anywhere, gang_of, nodes_of
from bough.control.pools.pod_placement import within
from bough.control.pools.pool_setup import PoolSetup, node_sets, read_pool_setup, uses
from bough.control.pools.quota_tree import QuotaForest, derive
from bough.control.pools.stand_in_nodes import with_stand_ins
from bough.control.scheduling.gave_way import GroupsThatGaveWay
from bough.control.scheduling.live_workflows import LiveGroup, LiveWorkflows
from bough.control.scheduling.other_pods import OtherPods, Others
from bough.control.scheduling.wait_causes import WaitCauses
from bough.control.site import Site
from bough.model.cluster import Node, Resources, Topology, TopologyLevel
from bough.model.gang import Gang
from bough.model.names import NodeId, NodeNames
from bough.model.pod_placement import NOTHING_SAID, PoolPlacement
from bough.model.policy import OSMO, Policy
from bough.model.quota import Cohort, Queue
from bough.model.snapshot import Progress, Snapshot
from bough.model.subpool import Subpool
from bough.model.workflow import Group, Task, Workflow
from bough.model.workload import Flavor
from bough.store import settings as setting_store
from bough.store import tasks as task_store

Item = TypeVar("Item")
_YES = "yes"
#: How often everything is read again, in case a change was missed.
REREAD_MS = 600_000


class GroupEntry(msgspec.Struct, frozen=True):
    """An unfinished group, with all that its gang is made of."""

    workflow: Workflow
    group: Group
    #: The latest attempts.
    tasks: tuple[Task, ...]
    #: The top-level pool, and the leaf.
    pool: str
    queue: str
    #: The topology of the pool, if it has one.
    topology: str | None = None
    #: What the snapshot calls the nodes that it is on, and those that it excludes.
    nodes: tuple[str, ...] = ()
    #: What its pods select and tolerate.
    placement: PoolPlacement = NOTHING_SAID
    #: Whether a scheduler of its cluster decides where they run.
    elsewhere: bool = False


class SnapshotView(msgspec.Struct, frozen=True):
    """A snapshot, and how to find in the store what it speaks of."""

    snapshot: Snapshot
    #: The policy to plan by.
    policy: Policy
    forest: QuotaForest
    #: By the name of the gang.
    entries: dict[str, GroupEntry]
    #: The same with the gangs, by the group's uuid.
    groups: Mapping[str, tuple[GroupEntry, Gang]]
    #: Why each group waits, as it is stored.
    waits: WaitCauses
    #: The groups, by uuid, for which room is being made, and where, by task, as it is stored. A
    #: writer of something else notes it here.
    nominated: dict[str, dict[str, str]]
    #: By the name that the snapshot has for them.
    nodes: dict[str, NodeId]
    #: By pool in which nothing can start: why.
    offline: dict[str, str]


class _Frame(msgspec.Struct, frozen=True):
    """What a snapshot has beside gangs, and what they are made with; all from the config."""

    forest: QuotaForest
    cohorts: tuple[Cohort, ...]
    queues: tuple[Queue, ...]
    flavors: tuple[Flavor, ...]
    nodes: tuple[Node, ...]
    topologies: tuple[Topology, ...]
    #: By canonical name.
    subpools: dict[str, Subpool]
    #: By top-level pool: what its pods select and tolerate, the topology.
    placements: dict[str, PoolPlacement]
    topology_of: dict[str, str]
    #: By cohort: how many GPUs one user may hold.
    limits: dict[str, int]
    #: How nodes are named, and which one each name means.
    names: NodeNames
    nodes_named: dict[str, NodeId]
    #: By pool on whose backend nothing can start: why.
    offline: dict[str, str]
    #: Pools whose tasks are placed by a scheduler of their cluster.
    elsewhere: frozenset[str] = frozenset()


class _QueueGangs:
    """The gangs of a queue, in the order of their groups' uuids."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self._gangs: dict[str, Gang] = {}

    def put(self, uuid: str, gang: Gang) -> None:
        if uuid not in self._gangs:
            insort(self.order, uuid)
        self._gangs[uuid] = gang

    def remove(self, uuid: str) -> None:
        del self._gangs[uuid]
        del self.order[bisect_left(self.order, uuid)]

    def gangs(self) -> tuple[Gang, ...]:
        return tuple(map(self._gangs.__getitem__, self.order))


class SnapshotBuilder:
    """Takes snapshots, and remembers the last one; only what has changed is read and made again."""

    def __init__(self, site: Site, others: Others = dict) -> None:
        """others:  what others hold of the nodes of each backend, by the names of both."""
        self._site = site
        self._others = OtherPods(others)
        self._live = LiveWorkflows()
        self._policies = PolicyReader()
        self._policy = OSMO
        self._version: int | None = None
        #: When everything was read.
        self._read_ms = site.clock.now_ms()
        self._last = Snapshot()
        self._frame = _frame(site, PoolSetup(), self._last)
        #: By the group's uuid; and the gangs of each queue in the same way.
        self._gangs: dict[str, tuple[GroupEntry, Gang]] = {}
        self._lines: dict[str, _QueueGangs] = {}
        self._named: dict[str, GroupEntry] = {}
        self._waits = WaitCauses()
        self._nominated: dict[str, dict[str, str]] = {}
        self._gave_way = GroupsThatGaveWay()
        #: What was read and is in no view yet; `None`: everything.
        self._touched: set[str] | None = None

    def look(self) -> bool:
        """See what is new in the store; whether a view would be another one than the last."""
        if self._site.clock.now_ms() - self._read_ms >= REREAD_MS:
            self._forget_all()
        with self._site.store.read() as connection:
            version = setting_store.counter(connection, setting_store.VERSION)
            touched = self._live.refresh(connection)
            config = None if version == self._version else read_pool_setup(connection)
            if config is not None:
                self._policy = self._policies.read(connection)
            every = touched is None or config is not None
            about = None if every else touched
            self._gave_way.refresh(connection, self._policy, self._live.groups, about)
        if config is not None:
            self._frame = _frame(self._site, config, self._last)
            self._version = version
            touched = None
        if touched is None:
            self._touched = None
        elif self._touched is not None:
            self._touched |= touched
        others = self._others.look(self._frame.names)
        return self._touched is None or bool(self._touched) or others

    def expect(self, version: int) -> None:
        """The next version is the builder's own plan, and nothing in it is news."""
        self._version = version

    def reread_nominated(self) -> None:
        """Read for which groups room is being made; for readers that do not apply plans.

        No event says so: the server that writes it knows.
        """
        with self._site.store.read() as connection:
            found = task_store.nominated_groups(connection)
        self._nominated.clear()
        self._nominated.update(found)

    def take(self) -> SnapshotView:
        """Take a snapshot of everything unfinished."""
        now_ms = self._site.clock.now_ms()
        self.look()
        dirty = self._develop()
        frame, last = self._frame, self._last
        self._last = Snapshot(
            now_ms=now_ms,
            version=self._version or 0,
            cohorts=frame.cohorts,
            queues=frame.queues,
            flavors=frame.flavors,
            nodes=frame.nodes,
            topologies=frame.topologies,
            gangs={
                **self._others.gangs,
                **{
                    queue: line.gangs() if queue in dirty else last.gangs[queue]
                    for queue, line in sorted(self._lines.items())
                },
            },
            progress=self._progress(),
            owner_gpu_limits=frame.limits,
        )
        return SnapshotView(
            self._last,
            self._policy,
            frame.forest,
            dict(self._named),
            self._gangs,
            self._waits,
            self._nominated,
            frame.nodes_named,
            frame.offline,
        )

    def _progress(self) -> dict[str, Progress]:
        """What earlier plans leave to the next one."""
        found = {
            self._gangs[uuid][1].name: Progress(nominated=True, places=places)
            for uuid, places in sorted(self._nominated.items())
            if uuid in self._gangs
        }
        for gang, others in self._gave_way.known.items():
            before = found.get(gang, Progress())
            found[gang] = msgspec.structs.replace(before, gave_way_to=others)
        return found

    def _forget_all(self) -> None:
        self._live, self._version = LiveWorkflows(), None
        self._read_ms = self._site.clock.now_ms()
        kept = (self._gangs, self._lines, self._named, self._waits, self._nominated)
        for each in kept:
            each.clear()

    def _develop(self) -> set[str]:
        """Make the gangs of what was touched; the queues whose gangs are not what they were."""
        touched, self._touched = self._touched, set()
        groups = self._live.groups
        dirty: set[str] = set()
        entries: dict[str, tuple[GroupEntry, bool]] = {}
        for uuid in sorted({*groups, *self._gangs} if touched is None else touched):
            live_group = groups.get(uuid)
            if live_group is None:
                self._forget(uuid, dirty)
            else:
                group, known = live_group.group, self._gangs.get(uuid)
                # Of a group that was not read again, what was written since is known better here.
                read = known is None or known[0].group is not group
                if read:
                    self._nominated.pop(uuid, None)
                    if group.nominated:
                        self._nominated[uuid] = group.nominated_places or {}
                entries[uuid] = self._entry(live_group), read
        for uuid, (entry, read) in entries.items():
            gang = self._put(uuid, entry, dirty)
            self._waits.enter(entry.group, gang, entry.pool, read=read)
        return dirty

    def _entry(self, live_group: LiveGroup) -> GroupEntry:
        workflow, group, tasks = live_group.workflow, live_group.group, live_group.tasks
        frame = self._frame
        subpool = frame.subpools.get(workflow.pool)
        pool = workflow.pool if subpool is None else subpool.parent
        queue = frame.forest.leaves.get(workflow.pool, group.queue)
        topology = frame.topology_of.get(pool)
        nodes = nodes_of(group, tasks, frame.names)
        return GroupEntry(
            workflow,
            group,
            tasks,
            pool,
            queue,
            topology,
            nodes,
            frame.placements.get(pool, NOTHING_SAID),
            pool in frame.elsewhere,
        )

    def _put(self, uuid: str, entry: GroupEntry, dirty: set[str]) -> Gang:
        known = self._gangs.get(uuid)
        if known is not None and _same_gang(known[0], entry):
            gang = known[1]
        else:
            if known is not None:
                self._forget(uuid, dirty, waits=False)
            gang = _make(entry, self._frame.names)
            self._lines.setdefault(entry.queue, _QueueGangs()).put(uuid, gang)
            dirty.add(entry.queue)
        self._gangs[uuid] = (entry, gang)
        self._named[gang.name] = entry
        return gang

    def _forget(self, uuid: str, dirty: set[str], *, waits: bool = True) -> None:
        known = self._gangs.pop(uuid, None)
        if waits:
            self._waits.leave(uuid)
            self._nominated.pop(uuid, None)
        if known is None:
            return
        entry, gang = known
        self._named.pop(gang.name, None)
        line = self._lines[entry.queue]
        line.remove(uuid)
        dirty.add(entry.queue)
        if not line.order:
            del self._lines[entry.queue]


def _make(entry: GroupEntry, names: NodeNames) -> Gang:
    gang = gang_of(
        entry.workflow,
        entry.group,
        entry.tasks,
        entry.queue,
        entry.placement,
        names,
        topology=entry.topology,
    )
    return anywhere(gang) if entry.elsewhere else gang


def _same_gang(one: GroupEntry, other: GroupEntry) -> bool:
    """Whether two readings of a group make the same gang; why it waits is no part of it."""
    return (
        one.tasks == other.tasks
        and one.queue == other.queue
        and one.topology == other.topology
        and one.nodes == other.nodes
        and one.placement == other.placement
        and one.elsewhere == other.elsewhere
        and one.workflow.workflow_id == other.workflow.workflow_id
        and one.workflow.priority == other.workflow.priority
    )


# The config


def _frame(site: Site, config: PoolSetup, last: Snapshot) -> _Frame:
    """Where nothing has changed, what the last snapshot had."""
    elsewhere = frozenset(
        pool.name for pool in config.pools if site.is_placed_elsewhere(pool.backend)
    )
    config = with_stand_ins(config, site.is_placed_elsewhere)
    forest = derive(config, site.namespace, site.prefix)
    names = config.node_names()
    selectors, nodes = _nodes(config, forest, names)
    said = {
        pool.name: config.placements[pool.name]
        for pool in config.pools
        if pool.name in config.placements
        and pool.name not in elsewhere
        and site.abilities_of(pool.backend).makes_pods
    }
    topologies = {
        pool.name: Topology(
            f"{site.pool_queue(pool.name)}-topology",
            tuple(TopologyLevel(each.label, each.key) for each in pool.topology_keys),
        )
        for pool in config.pools
        if pool.topology_keys
    }
    return _Frame(
        forest=forest,
        cohorts=_kept(last.cohorts, forest.cohorts),
        queues=_kept(last.queues, forest.queues),
        flavors=_kept(last.flavors, forest.flavors),
        nodes=_kept(last.nodes, nodes),
        topologies=_kept(last.topologies, tuple(topologies.values())),
        subpools={each.name: each for each in config.subpools},
        # Subpools use the topology of their pool.
        topology_of={name: topology.name for name, topology in topologies.items()},
        placements={
            pool.name: within(selectors.get(pool.name, {}), said.get(pool.name, NOTHING_SAID))
            for pool in config.pools
            if pool.name in selectors or pool.name in said
        },
        limits={
            site.pool_queue(pool.name): pool.user_gpu_limit
            for pool in config.pools
            if pool.user_gpu_limit is not None
        },
        names=names,
        nodes_named={
            names.of(each.id): NodeId(each.backend, "")
            if site.is_placed_elsewhere(each.backend)
            else each.id
            for each in config.nodes
        },
        offline={
            pool.name: config.faults[pool.backend]
            for pool in config.pools
            if pool.backend in config.faults
        },
        elsewhere=elsewhere,
    )


def _nodes(
    config: PoolSetup, forest: QuotaForest, names: NodeNames
) -> tuple[dict[str, dict[str, str]], tuple[Node, ...]]:
    """The nodes, and what the pods of each pool must select where not all nodes are the pool's."""
    selectors: dict[str, dict[str, str]] = {}
    labels: dict[NodeId, dict[str, str]] = {}
    for members, offered in node_sets(config):
        for pool in members:
            usable = [each for each in offered if uses(pool, each)]
            if len(usable) < len(offered):
                selectors[pool.name] = {POOL_LABEL + pool.name: _YES}
                for each in usable:
                    labels.setdefault(each.id, {}).update(selectors[pool.name])
    nodes: list[Node] = []
    for each in config.nodes:
        own = {PLATFORM_LABEL: each.platform} if each.platform else {}
        nodes.append(
            Node(
                names.of(each.id),
                Resources(each.gpus, each.cpu_milli, each.memory_bytes, each.task_slots),
                {**each.labels, **own, **labels.get(each.id, {})},
                taints=each.taints,
                flavor=forest.flavor_of_node.get(each.id),
                cordoned=not config.takes_work(each),
            )
        )
    return selectors, tuple(nodes)


# Identity


def _kept(last: tuple[Item, ...], new: tuple[Item, ...]) -> tuple[Item, ...]:
    return last if last == new else new
