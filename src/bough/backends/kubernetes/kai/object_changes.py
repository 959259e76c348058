"""The changes that give a cluster the wanted objects, and their order. Pure.

Quota shrinks before it grows: pools grow, leaves shrink or go, pools shrink or go, leaves grow or
are created. So the leaves of a pool never have more than the pool has, even if a server is killed
in between. Objects without our labels are never changed.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum, StrEnum
from typing import NamedTuple, TypeVar

import msgspec

from bough.backends.kubernetes.kai.kai_types import KaiQueue, KaiTopology, PriorityClass
from bough.backends.kubernetes.kai.wanted_objects import POOL, Owner, WantedObjects

#: The annotation with a digest of what we wrote: it shows whether others changed the object.
WRITTEN = "bough.written"
_QUEUE, _TOPOLOGY, _CLASS = "Queue", "Topology", "PriorityClass"

KaiObject = KaiQueue | KaiTopology | PriorityClass
Item = TypeVar("Item", KaiQueue, KaiTopology, PriorityClass)


class Verb(StrEnum):
    """How an object is changed."""

    CREATE = "create"
    UPDATE = "update"
    #: Deleted and created again, as it cannot be changed in place.
    REMAKE = "remake"
    DELETE = "delete"


class Phase(IntEnum):
    """In which phase an object is changed."""

    FRAME = 0
    POOLS_GROW = 1
    LEAVES_SHRINK = 2
    POOLS_SHRINK = 3
    LEAVES_GROW = 4


class Change(NamedTuple):
    """One object to change."""

    phase: Phase
    verb: Verb
    kind: str
    #: As it should be; for a deletion, as it is.
    item: KaiObject
    found: KaiObject | None = None
    #: What others had done to it, in a sentence; empty if nothing.
    drift: str = ""

    @property
    def subject(self) -> str:
        """The object, as people write it: KIND/NAME."""
        return f"{self.kind}/{self.item.metadata.name}"

    @property
    def branch(self) -> str:
        """What must stop where this change is refused: for a Queue, all Queues of its pool."""
        pool = (self.item.metadata.labels or {}).get(POOL)
        return self.subject if self.kind != _QUEUE or pool is None else f"{_QUEUE}s of {pool}"

    @property
    def carries_all(self) -> bool:
        """Whether nothing can be done without it, as with the Queue above those of all pools."""
        return self.kind == _QUEUE and self.phase is Phase.FRAME


class FoundObjects(NamedTuple):
    """All objects in a cluster by name, including those of others."""

    queues: Mapping[str, KaiQueue] = {}
    topologies: Mapping[str, KaiTopology] = {}
    classes: Mapping[str, PriorityClass] = {}


class Used(NamedTuple):
    """The names of queues and topologies that pods and PodGroups use."""

    queues: frozenset[str] = frozenset()
    topologies: frozenset[str] = frozenset()


NOTHING_USED = Used()


class ChangePlan(NamedTuple):
    """Changes in order, and what cannot be repaired."""

    changes: tuple[Change, ...] = ()
    troubles: tuple[str, ...] = ()


def candidates_to_go(wanted: WantedObjects, found: FoundObjects, owner: Owner) -> Used:
    """Objects that may have to be deleted; only for these it matters whether they are in use."""
    queues = _left(found.queues, wanted.queues, owner)
    topologies = {each.metadata.name for each in _left(found.topologies, wanted.topologies, owner)}
    topologies |= {
        name
        for name, item in wanted.topologies.items()
        if (there := found.topologies.get(name)) is not None
        and content_of(there) != content_of(item)
    }
    return Used(frozenset(each.metadata.name for each in queues), frozenset(topologies))


def plan_changes(
    wanted: WantedObjects,
    found: FoundObjects,
    owner: Owner,
    used: Used = NOTHING_USED,
    known: Iterable[str] = (),
) -> ChangePlan:
    """All changes needed.

    known:  what existed at the last look: if it is missing now, others deleted it.
    """
    planning = _Planning(wanted, found, owner, used, frozenset(known))
    planning.plan()
    return ChangePlan(tuple(sorted(planning.changes, key=_order)), tuple(sorted(planning.troubles)))


def content_of(item: KaiObject) -> object:
    """The content of an object, apart from its metadata."""
    if isinstance(item, PriorityClass):
        return item.value, item.global_default
    return item.spec


def digest_of(item: KaiObject) -> str:
    """A digest of the content of an object."""
    return hashlib.sha256(msgspec.json.encode(content_of(item))).hexdigest()[:16]


def quota_of(queue: KaiQueue) -> float:
    """The GPU quota of a Queue."""
    quota = queue.spec.resources.gpu.quota or 0.0
    return math.inf if quota < 0 else quota


class _Planning:
    """Shared state while changes are collected."""

    def __init__(
        self,
        wanted: WantedObjects,
        found: FoundObjects,
        owner: Owner,
        used: Used,
        known: frozenset[str],
    ) -> None:
        self._wanted = wanted
        self._found = found
        self._owner = owner
        self._used = used
        self._known = known
        self.changes: list[Change] = []
        self.troubles: list[str] = []

    def plan(self) -> None:
        for item in self._wanted.classes.values():
            self._have_class(item)
        self._drop(_CLASS, self._found.classes, self._wanted.classes, frozenset())
        for item in self._wanted.topologies.values():
            self._have_topology(item)
        self._drop(
            _TOPOLOGY, self._found.topologies, self._wanted.topologies, self._used.topologies
        )
        root = self._wanted.root
        if self._is_foreign(_QUEUE, root, self._found.queues):
            return
        self._have(_QUEUE, root, self._found.queues, Phase.FRAME)
        foreign = {
            name
            for name, item in self._wanted.pools.items()
            if self._is_foreign(_QUEUE, item, self._found.queues)
        }
        for name, item in self._wanted.pools.items():
            if name not in foreign:
                self._have(_QUEUE, item, self._found.queues, self._pool_phase(item))
        for item in self._wanted.leaves.values():
            if item.spec.parent_queue in foreign:
                # The pool's queue is not ours, so it may have less than its leaves would get.
                continue
            if not self._is_foreign(_QUEUE, item, self._found.queues):
                self._have(_QUEUE, item, self._found.queues, self._leaf_phase(item))
        self._drop_queues()

    def _pool_phase(self, item: KaiQueue) -> Phase:
        found = self._found.queues.get(item.metadata.name)
        shrinks = found is not None and quota_of(item) < quota_of(found)
        return Phase.POOLS_SHRINK if shrinks else Phase.POOLS_GROW

    def _leaf_phase(self, item: KaiQueue) -> Phase:
        found = self._found.queues.get(item.metadata.name)
        # A leaf that others moved does not count for its pool until it is moved back.
        moved = found is None or found.spec.parent_queue != item.spec.parent_queue
        grows = found is None or quota_of(item) > quota_of(found)
        return Phase.LEAVES_GROW if moved or grows else Phase.LEAVES_SHRINK

    # One object

    def _have(self, kind: str, item: Item, found: Mapping[str, Item], phase: Phase) -> None:
        """Create or change one of our objects."""
        there = found.get(item.metadata.name)
        if there is None:
            drift = "It was deleted." if f"{kind}/{item.metadata.name}" in self._known else ""
            self.changes.append(Change(phase, Verb.CREATE, kind, item, None, drift))
            return
        drift = drift_of(item, there)
        if drift or content_of(item) != content_of(there):
            self.changes.append(Change(phase, Verb.UPDATE, kind, item, there, drift))

    def _have_class(self, item: PriorityClass) -> None:
        there = self._found.classes.get(item.metadata.name)
        if there is not None and not self._owner.owns(there.metadata):
            if there.value != item.value:
                self._refuse(_CLASS, item, f" Its value is {there.value}, not {item.value}.")
            return
        self._have_fixed(_CLASS, item, there, self._found.classes)

    def _have_topology(self, item: KaiTopology) -> None:
        name = item.metadata.name
        there = self._found.topologies.get(name)
        if self._is_foreign(_TOPOLOGY, item, self._found.topologies):
            return
        differs = there is not None and content_of(there) != content_of(item)
        if differs and name in self._used.topologies:
            text = "has other levels than its pool, and is made again when no PodGroup uses it."
            self.troubles.append(f"Topology {name} {text}")
            return
        self._have_fixed(_TOPOLOGY, item, there, self._found.topologies)

    def _have_fixed(
        self, kind: str, item: Item, there: Item | None, found: Mapping[str, Item]
    ) -> None:
        """The same for objects that cannot be changed in place."""
        if there is None or content_of(there) == content_of(item):
            self._have(kind, item, found, Phase.FRAME)
            return
        if self._is_held(kind, there):
            return
        drift = drift_of(item, there)
        self.changes.append(Change(Phase.FRAME, Verb.REMAKE, kind, item, there, drift))

    # Objects that are no longer wanted

    def _drop(
        self,
        kind: str,
        found: Mapping[str, Item],
        wanted: Mapping[str, Item],
        used: frozenset[str],
    ) -> None:
        for each in _left(found, wanted, self._owner):
            name = each.metadata.name
            if name in used:
                self.troubles.append(f"{kind} {name} is not removed yet: it is still used.")
            elif not self._is_held(kind, each):
                self.changes.append(Change(Phase.FRAME, Verb.DELETE, kind, each, each))

    def _drop_queues(self) -> None:
        """Delete unused queues, leaves first; those still in use lose their quota until then."""
        found = self._found.queues
        left = _left(found, self._wanted.queues, self._owner)
        below = Counter(each.spec.parent_queue for each in found.values())
        parents = set(below)
        for each in sorted(left, key=lambda each: each.metadata.name in parents):
            name = each.metadata.name
            phase = Phase.POOLS_SHRINK if name in parents else Phase.LEAVES_SHRINK
            if not below[name] and name not in self._used.queues:
                if not self._is_held(_QUEUE, each):
                    below[each.spec.parent_queue] -= 1
                    self.changes.append(Change(phase, Verb.DELETE, _QUEUE, each, each))
                    continue
            else:
                why = "there are queues below it" if below[name] else "pods name it"
                self.troubles.append(f"Queue {name} is not removed yet: {why}.")
            if quota_of(each) > 0:
                empty = _without_quota(each)
                self.changes.append(Change(phase, Verb.UPDATE, _QUEUE, empty, each))

    def _is_held(self, kind: str, there: KaiObject) -> bool:
        """Whether an object was told to go already, and stays: to say so again is of no use."""
        if there.metadata.deletion_timestamp is None:
            return False
        holders = ", ".join(there.metadata.finalizers) or "none"
        text = f"is being deleted, and waits for its finalizers: {holders}."
        self.troubles.append(f"{kind} {there.metadata.name} {text}")
        return True

    # Objects that are not ours

    def _is_foreign(self, kind: str, item: Item, found: Mapping[str, Item]) -> bool:
        there = found.get(item.metadata.name)
        if there is None or self._owner.owns(there.metadata):
            return False
        self._refuse(kind, item)
        return True

    def _refuse(self, kind: str, item: KaiObject, more: str = "") -> None:
        self.troubles.append(
            f"{kind} {item.metadata.name} is not of this site, although it has its name, and is "
            f"left as it is.{more} Delete it, or run the server with another --namespace."
        )


def drift_of(wanted: KaiObject, found: KaiObject) -> str:
    """What others did to an object, in a sentence; empty if it is as we wrote it."""
    annotations = found.metadata.annotations or {}
    if annotations.get(WRITTEN) != digest_of(found):
        fields = sorted(_differences(content_of(wanted), content_of(found)))
        return f"It was changed: {'; '.join(fields) or 'as it should be, but not by Bough'}."
    labels = found.metadata.labels or {}
    for name, value in (wanted.metadata.labels or {}).items():
        if labels.get(name) != value:
            return f"It was changed: label {name} is {labels.get(name)!r}, not {value!r}."
    return ""


def _differences(wanted: object, found: object) -> Iterator[str]:
    one, other = msgspec.to_builtins(wanted), msgspec.to_builtins(found)
    yield from _compared(one, other, "")


def _compared(wanted: object, found: object, path: str) -> Iterator[str]:
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in wanted:
            yield from _compared(wanted[key], found.get(key), f"{path}.{key}" if path else key)
    elif wanted != found:
        yield f"{path or 'it'} is {found}, not {wanted}"


def _left(found: Mapping[str, Item], wanted: Mapping[str, Item], owner: Owner) -> list[Item]:
    """Our objects that are no longer wanted."""
    return [
        each
        for name, each in sorted(found.items())
        if name not in wanted and owner.owns(each.metadata)
    ]


def _without_quota(queue: KaiQueue) -> KaiQueue:
    replace = msgspec.structs.replace
    gpu = replace(queue.spec.resources.gpu, quota=0.0)
    resources = replace(queue.spec.resources, gpu=gpu)
    return replace(queue, spec=replace(queue.spec, resources=resources))


def _order(change: Change) -> tuple[int, bool, str]:
    """Within a phase, undo what others did first, as it may exceed what there is."""
    return change.phase, not change.drift, change.subject
