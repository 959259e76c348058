"""What the watches report, as a snapshot that is kept in step.

Every event touches only the gang that it is about. Gangs, rows of gangs and nodes that did not
change stay the same objects from one snapshot to the next, so the core sees at once what changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import msgspec

from bough.core.gang.from_pod_group import gang_of_one
from bough.core.gang.topology import check_topology
from bough.formats.live.kai import live_priority_class, live_topology
from bough.formats.live.objects import (
    LiveClaim,
    LiveNativePodGroup,
    LivePod,
    LivePodGroup,
    LivePriorityClass,
    LiveTopology,
)
from bough.kube.decoding import WatchEvent, WatchEventKind
from bough.kube.objects import Kind
from bough.kube.watching import Relisted
from bough.model.cluster import Topology
from bough.model.gang import Gang, PodState
from bough.model.pod_group import (
    NATIVE,
    MemberPod,
    PodGroup,
    PriorityClass,
    group_key,
    is_native,
    qualified,
)
from bough.model.problem import Severity
from bough.model.snapshot import Progress, Snapshot
from bough.pod_scheduler import kinds
from bough.pod_scheduler.gang_maker import (
    Declared,
    SeenGroup,
    gang_of_group,
    read_group,
    why_broken,
)
from bough.pod_scheduler.kueue_tree import DEFAULT_DOOR, KueueTree
from bough.pod_scheduler.pod_view import PodView, SeenPod, holds_room
from bough.pod_scheduler.pods_without_gang import OTHERS, Strangers
from bough.pod_scheduler.snapshot_parts import GangRow, NodeRow, QueueTree

Heard = Relisted[Any] | WatchEvent[Any]


class GangKey(NamedTuple):
    """Identifies a gang by its PodGroup or single pod; PodGroups sort first, then by name."""

    alone: bool
    name: str


class _Reader(NamedTuple):
    """How events of one kind are taken in."""

    put: Callable[[Any], object]
    remove: Callable[[str], object]
    #: The names that are known; for PodGroups, those of KAI and of Kubernetes together.
    known: Collection[str]
    native: bool = False


class ClusterView:
    """Everything that the watches reported, and the snapshot made from it."""

    def __init__(
        self,
        scheduler_name: str,
        grace_ms: int | None = 60_000,
        *,
        grouped: bool = False,
        kueue: bool = False,
    ) -> None:
        """grouped:  PodGroups are made from the owners of pods.

        kueue:  Kueue's objects set the quota, not KAI's.
        """
        self.pods = PodView(scheduler_name, grouped=grouped)
        self.groups: dict[str, SeenGroup] = {}
        self.nodes = NodeRow()
        #: Set if Kueue's objects set the quota; otherwise KAI's Queues do.
        self.kueue = KueueTree(self._touch_all) if kueue else None
        self.queues = self.kueue or QueueTree()
        self._topologies: dict[str, Topology] = {}
        self._classes: dict[str, PriorityClass] = {}
        self._declared = Declared(grace_ms=grace_ms)
        self._grace_ms = grace_ms
        #: For each PodGroup, existing or not: the pods that name it.
        self._members: dict[str, dict[str, None]] = {}
        #: For each PodGroup that makes no gang: why not.
        self.broken: dict[str, str] = {}
        self._checked: dict[str, tuple[PodGroup, tuple[Topology, ...], str]] = {}
        #: For each PodGroup whose gang runs with less than it needs: since when.
        self.stale_since_ms: dict[str, int] = {}
        self.gangs: dict[GangKey, Gang] = {}
        #: Gangs by the names that plans use.
        self.by_name: dict[str, GangKey] = {}
        self._rows: dict[str, GangRow] = {}
        self._strangers = Strangers()
        self._touched: set[GangKey] = set()
        #: Gangs that came, changed or went, or whose PodGroup was written; the reader clears it.
        self.news: set[GangKey] = set()
        self._version = 0
        self._last: Snapshot | None = None
        put_group, remove_group = self._put_group, self._remove_group
        self._readers: dict[Kind[Any], _Reader] = {
            kinds.PODS: _Reader(self._put_pod, self._remove_pod, self.pods.seen),
            kinds.CLAIMS: _Reader(self._put_claim, self._remove_claim, self.pods.claims),
            kinds.NODES: _Reader(self.nodes.put, self.nodes.remove, self.nodes.names),
            kinds.POD_GROUPS: _Reader(put_group, remove_group, self.groups),
            kinds.NATIVE_POD_GROUPS: _Reader(put_group, remove_group, self.groups, native=True),
            kinds.TOPOLOGIES: _Reader(self._put_topology, self._remove_topology, self._topologies),
            kinds.PRIORITY_CLASSES: _Reader(self._put_class, self._remove_class, self._classes),
        }
        if isinstance(self.queues, QueueTree):
            reader = _Reader(self.queues.put, self.queues.remove, self.queues.queues)
            self._readers[kinds.QUEUES] = reader
        else:
            self._readers |= self._kueue_readers(self.queues)

    def _kueue_readers(self, tree: KueueTree) -> dict[Kind[Any], _Reader]:
        put, remove = tree.put_namespace, tree.remove_namespace
        found: dict[Kind[Any], _Reader] = {
            kind: _Reader(
                partial(tree.put, kind=name), partial(tree.remove, kind=name), tree.written[name]
            )
            for name, kind in kinds.KUEUES.items()
        }
        return {**found, kinds.NAMESPACES: _Reader(put, remove, tree.known_namespaces)}

    # Taking in events

    def hear(self, kind: Kind[Any], heard: Heard) -> None:
        """Take in an event or a list of one kind."""
        reader = self._readers[kind]
        if isinstance(heard, Relisted):
            there = {_key(each, reader) for each in heard.items}
            gone = [name for name in reader.known if name not in there]
            for name in gone:
                if is_native(name) == reader.native:
                    reader.remove(name)
            for each in heard.items:
                reader.put(each)
        elif heard.kind is WatchEventKind.DELETED:
            reader.remove(_key(heard.object, reader))
        elif heard.kind is not WatchEventKind.BOOKMARK:
            reader.put(heard.object)

    # Decisions

    def bind(self, pod: str, uid: str, node: str) -> None:
        """Count a pod as bound to a node, until a watch confirms it."""
        self.pods.bind(pod, uid, node)
        self._touch_pod(self.pods.seen.get(pod))

    def unbind(self, pod: str, uid: str) -> bool:
        """The bind of a pod failed; return whether the pod waits for a node again."""
        if not self.pods.unbind(pod, uid):
            return False
        self._touch_pod(self.pods.seen.get(pod))
        return True

    def end(self, pod: str, uid: str) -> None:
        """Count a pod as told to end, until a watch confirms it."""
        self.pods.end(pod, uid)
        self._touch_pod(self.pods.seen.get(pod))

    def stay(self, pod: str, uid: str) -> None:
        """A pod was not told to end after all."""
        if self.pods.stay(pod, uid):
            self._touch_pod(self.pods.seen.get(pod))

    def leave_ungrouped(self, pod: str, uid: str, waits: str) -> None:
        """A pod gets no PodGroup: it is a gang of one, or waits for the reason in `waits`."""
        if self.pods.leave_ungrouped(pod, uid, waits):
            self._touch_pod(self.pods.seen.get(pod))

    # The snapshot

    def take(self, now_ms: int, progress: dict[str, Progress] | None = None) -> Snapshot:
        """The current snapshot."""
        self.queues.refresh(self.nodes.capacity)
        dirty = {queue for key in sorted(self._touched) for queue in self._remake(key, now_ms)}
        self._touched.clear()
        others = self._strangers.gangs()
        last = self._last
        rows = {queue: self._rows[queue] for queue in sorted(self._rows)}
        gangs = {queue: row.gangs() for queue, row in rows.items()}
        if others:
            gangs[OTHERS] = others
        if last is not None and not dirty and last.gangs.get(OTHERS, ()) == others:
            gangs = last.gangs
        self._version += 1
        self._last = Snapshot(
            now_ms=now_ms,
            version=self._version,
            cohorts=self.queues.tree.cohorts,
            queues=self.queues.tree.queues,
            flavors=self.queues.flavors,
            nodes=self.queues.on_nodes(self.nodes.row()),
            topologies=self._declared.topologies,
            local_queues=self.queues.local_queues,
            namespaces=self.queues.namespaces,
            closed=self.queues.closed,
            gangs=gangs,
            progress=progress or {},
        )
        return self._last

    def promised(self) -> dict[str, Progress]:
        """For each gang: the nodes where an earlier scheduler was freeing room for it."""
        found: dict[str, dict[str, str]] = {}
        for name in sorted(self.pods.nominated):
            pod = self.pods.seen[name]
            group = pod.member.group
            gang = self.gangs.get(GangKey(group is None, name if group is None else group))
            if pod.ours and gang is not None and pod.expected_at in self.nodes.names:
                found.setdefault(gang.name, {})[name] = pod.expected_at
        return {gang: Progress(nominated=True, places=pods) for gang, pods in found.items()}

    def without_group(self) -> Iterator[GangKey]:
        """PodGroups that pods name but that do not exist."""
        return (GangKey(False, name) for name in self._members if name not in self.groups)

    def members_of(self, key: GangKey) -> Iterator[SeenPod]:
        """The pods in a gang that are ours to schedule."""
        names = (key.name,) if key.alone else self._members.get(key.name, ())
        for name in names:
            seen = self.pods.seen.get(name)
            if seen is not None and seen.ours:
                yield seen

    # Pods

    def _put_pod(self, written: LivePod) -> None:
        pod = self.pods.read(written)
        before, changed = self.pods.put(pod)
        if not changed:
            return
        if before is not None:
            self._leave_group(before)
        if pod.member.group is not None:
            self._members.setdefault(pod.member.group, {})[pod.name] = None
        for each in (before, pod):
            self._touch_pod(each)

    def _remove_pod(self, name: str) -> None:
        before = self.pods.remove(name)
        if before is not None:
            self._leave_group(before)
            self._touch_pod(before)

    def _put_claim(self, written: LiveClaim) -> None:
        name = _name(written)
        if written.status.phase != "Bound":
            self._remove_claim(name)
        elif name not in self.pods.claims:
            self.pods.claims.add(name)
            self._touch_users(name)

    def _remove_claim(self, name: str) -> None:
        if name in self.pods.claims:
            self.pods.claims.remove(name)
            self._touch_users(name)

    def _touch_users(self, claim: str) -> None:
        """Look again at the pods that mount the volume of a claim; claims seldom change."""
        for pod in self.pods.seen.values():
            if claim in pod.claims:
                self._touch_pod(pod)

    def _leave_group(self, pod: SeenPod) -> None:
        group = pod.member.group
        if group is None:
            return
        members = self._members.get(group, {})
        members.pop(pod.name, None)
        if not members:
            self._members.pop(group, None)

    def _touch_pod(self, pod: SeenPod | None) -> None:
        if pod is None:
            return
        group = pod.member.group
        self._touched.add(GangKey(group is None, pod.name if group is None else group))
        self._place_stranger(pod.name)

    def _place_stranger(self, name: str) -> None:
        """Count a pod on its node if it belongs to no gang; otherwise stop counting it."""
        pod = self.pods.seen.get(name)
        if pod is None or self._is_planned(pod):
            self._strangers.remove(name)
            return
        member = self.pods.member(pod)
        if holds_room(member.pod):
            self._strangers.put(name, member.pod.node or "", member.pod.requests)
        elif pod.expected_at and not pod.ours:
            # Another scheduler evicts pods for it: the room that this frees is not ours to give.
            self._strangers.put(name, pod.expected_at, member.pod.requests)
        else:
            self._strangers.remove(name)

    def _is_planned(self, pod: SeenPod) -> bool:
        group = pod.member.group
        return pod.ours and (group is None or (group in self.groups and group not in self.broken))

    # PodGroups, and the objects that they refer to

    def _put_group(self, written: LivePodGroup | LiveNativePodGroup) -> None:
        seen = read_group(written)
        name = seen.group.key
        before = self.groups.get(name)
        same = before is not None and before.group == seen.group
        if before is not None and same:
            seen = seen._replace(group=before.group)
            same = (before.problems, before.door) == (seen.problems, seen.door)
        self.groups[name] = seen
        self.news.add(GangKey(False, name))
        if not same:
            self._touch_group(name)

    def _remove_group(self, name: str) -> None:
        if self.groups.pop(name, None) is not None:
            self._touch_group(name)

    def _touch_group(self, name: str) -> None:
        full_name = name.removesuffix(NATIVE)
        self._touched.add(GangKey(False, name))
        # A single pod or a native PodGroup of the same name may have to change its gang's name.
        self._touched.add(GangKey(True, full_name))
        self._touched.add(GangKey(False, group_key(full_name, native=True)))

    def _put_topology(self, written: LiveTopology) -> None:
        topology = live_topology(written)
        if self._topologies.get(topology.name) != topology:
            self._topologies[topology.name] = topology
            self._declare()

    def _remove_topology(self, name: str) -> None:
        if self._topologies.pop(name, None) is not None:
            self._declare()

    def _put_class(self, written: LivePriorityClass) -> None:
        found = live_priority_class(written)
        if self._classes.get(found.name) != found:
            self._classes[found.name] = found
            self._declare()

    def _remove_class(self, name: str) -> None:
        if self._classes.pop(name, None) is not None:
            self._declare()

    def _declare(self) -> None:
        """Rebuild what gangs refer to, such as topologies: any gang may mean something else now."""
        sound = (
            topology
            for _, topology in sorted(self._topologies.items())
            if all(each.severity is not Severity.ERROR for each in check_topology(topology))
        )
        classes = tuple(each for _, each in sorted(self._classes.items()))
        self._declared = Declared(tuple(sound), classes, self._grace_ms)
        self._touch_all()

    def _touch_all(self) -> None:
        self._touched.update(self.gangs)
        self._touched.update(GangKey(False, name) for name in self.groups)

    # Gangs

    def _remake(self, key: GangKey, now_ms: int) -> Iterator[str]:
        """Make a gang anew; yield the queues whose rows changed."""
        before = self.gangs.get(key)
        after = self._make_alone(key) if key.alone else self._make_group(key, now_ms)
        if after == before:
            return
        self.news.add(key)
        if before is not None:
            del self.gangs[key]
            if self.by_name.get(before.name) == key:
                del self.by_name[before.name]
            self._rows[before.queue].remove(key)
            if not self._rows[before.queue].keys:
                del self._rows[before.queue]
            yield before.queue
        if after is not None:
            self.gangs[key] = after
            self.by_name[after.name] = key
            self._rows.setdefault(after.queue, GangRow()).put(key, after)
            yield after.queue

    def _make_alone(self, key: GangKey) -> Gang | None:
        pod = self.pods.seen.get(key.name)
        if pod is None or not pod.ours or pod.member.group is not None:
            return None
        member = self.pods.member(pod)
        if member.pod.state in (PodState.SUCCEEDED, PodState.FAILED):
            return None
        taken = any(group_key(key.name, native=each) in self.groups for each in (False, True))
        gang = gang_of_one(member, self._declared.priority_classes, taken=taken)
        return self._through_door(gang, pod.door)

    def _make_group(self, key: GangKey, now_ms: int) -> Gang | None:
        seen = self.groups.get(key.name)
        why = self._check(key.name, seen)
        names = self._members.get(key.name, {})
        for name in names:
            self._place_stranger(name)
        members = list(self._own_members(names))
        if seen is None or why or (names and not members):
            # A PodGroup without any pod of ours belongs to another scheduler.
            self.stale_since_ms.pop(key.name, None)
            return None
        since_ms = self.stale_since_ms.get(key.name)
        if since_ms is None:
            # The time written on the PodGroup counts only when its gang is first made: later
            # on it may be left over from an earlier stale period.
            first = key not in self.gangs and seen.stale_since_ms is not None
            since_ms = seen.stale_since_ms if first else now_ms
        taken = seen.group.native and seen.group.full_name in self.groups
        gang = gang_of_group(seen, members, self._declared, since_ms or 0, taken=taken)
        if gang.stale_since_ms is None:
            self.stale_since_ms.pop(key.name, None)
        else:
            self.stale_since_ms[key.name] = since_ms or 0
        doors = (self.pods.seen[name].door for name in names)
        return self._through_door(gang, seen.door or next(filter(None, doors), ""))

    def _through_door(self, gang: Gang, door: str) -> Gang:
        """The gang in the ClusterQueue that its LocalQueue leads to, if Kueue sets the quota."""
        if self.kueue is None:
            return gang
        door = door or DEFAULT_DOOR
        queue = self.kueue.queue_of(gang.namespace, door)
        return msgspec.structs.replace(gang, queue=queue, local_queue=door, owner=gang.namespace)

    def _check(self, name: str, seen: SeenGroup | None) -> str:
        """Why a PodGroup makes no gang; checked again only when it or a topology changed."""
        if seen is None:
            self._checked.pop(name, None)
            self.broken.pop(name, None)
            return ""
        topologies = self._declared.topologies
        known = self._checked.get(name)
        if known is None or known[0] is not seen.group or known[1] is not topologies:
            known = (seen.group, topologies, why_broken(seen, topologies))
            self._checked[name] = known
        if known[2]:
            self.broken[name] = known[2]
        else:
            self.broken.pop(name, None)
        return known[2]

    def _own_members(self, names: Iterable[str]) -> Iterator[MemberPod]:
        for name in names:
            pod = self.pods.seen[name]
            if pod.ours:
                yield self.pods.member(pod)


def _name(written: Any) -> str:
    metadata = written.metadata
    return qualified(metadata.namespace, metadata.name)


def _key(written: Any, reader: _Reader) -> str:
    return group_key(_name(written), native=reader.native)
