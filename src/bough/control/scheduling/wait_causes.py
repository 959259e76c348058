"""Why groups wait, as it is stored: once for each cause, and only what a plan changes is written.

Of groups of one queue and shape a plan says the same, unless it names one of them by itself. So
they have one cause, and another sentence for ten thousand of them is one row. What a plan says is
compared by shapes; looked at one by one are only the groups that are new, those that the plan
names, and those that the plan before named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import NamedTuple

import msgspec
import sqlalchemy as sa

from bough.core.cycle.claim import shape_of
from bough.core.cycle.waits import Waits
from bough.core.explain.sentences import name_some
from bough.model.gang import Gang
from bough.model.plan import Plan, Wait
from bough.model.policy import Policy
from bough.model.reason import WaitReason
from bough.model.snapshot import Snapshot
from bough.model.words import Words
from bough.model.workflow import Group
from bough.store import wait_causes as wait_store

#: The reason as a short word, and the sentence.
Told = tuple[str, str]
#: A queue and a shape.
_Alike = tuple[str, bytes]


class PlanSaid(NamedTuple):
    """A plan, what it was made of, and the words for it."""

    snapshot: Snapshot
    policy: Policy
    plan: Plan
    #: By pool in which nothing can start: why.
    offline: Mapping[str, str]
    words: Words


class WaitNews(msgspec.Struct, frozen=True):
    """What a plan says that is not stored yet."""

    #: By uuid, with its new cause; and the causes that are new, or say something else now.
    groups: dict[str, str]
    causes: dict[str, Told]
    #: Groups that wait for something of another kind than before: for what.
    kinds: dict[str, Told]
    #: Causes for which nothing waits any more.
    unused: tuple[str, ...]
    #: Whether there may be more of these, of which this server does not know.
    sweep: bool
    #: What is remembered once this is written: the cause of each shape, and the groups that the
    #: plan names by themselves.
    shapes: dict[_Alike, str]
    apart: frozenset[str]

    def __bool__(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.groups or self.causes)

    def write(self, connection: sa.Connection) -> None:
        """Store it; the workflows of the groups are locked."""
        wait_store.set_causes(connection, self.groups.items())
        wait_store.put_causes(connection, self.causes)
        wait_store.remove_causes(connection, self.unused)
        if self.sweep:
            wait_store.remove_unused(connection)


class _Waiting(msgspec.Struct):
    """A group in the line of a queue."""

    pool: str
    gang: Gang
    #: As it is stored.
    cause: str | None
    #: `None` where more than queue and shape matters, or it is not known yet.
    alike: _Alike | None = None


class WaitCauses:
    """Why each group waits, as it is stored. A writer of something else notes it here."""

    def __init__(self) -> None:
        self._groups: dict[str, _Waiting] = {}
        #: By the name of the gang.
        self._uuids: dict[str, str] = {}
        self._causes: dict[str, Told] = {}
        #: How many groups wait for each cause, and causes that were left by the last one.
        self._number: Counter[str] = Counter()
        self._left: set[str] = set()
        self._members: dict[_Alike, set[str]] = {}
        #: As the last plan said it.
        self._shapes: dict[_Alike, str] = {}
        self._apart: frozenset[str] = frozenset()
        #: Groups that are new or not what they were; and those of which nothing is said by shape.
        self._fresh: set[str] = set()
        self._odd: set[str] = set()
        self._swept = False

    # In step with the store

    def clear(self) -> None:
        """Forget everything."""
        self.__init__()

    def enter(self, group: Group, gang: Gang, pool: str, *, read: bool) -> None:
        """A group came, or may not be what it was; `read`: its record was read from the store."""
        known = self._groups.get(group.uuid)
        cause = group.wait_cause if read or known is None else known.cause
        self.leave(group.uuid)
        self._groups[group.uuid] = _Waiting(pool, gang, cause)
        self._uuids[gang.name] = group.uuid
        self._fresh.add(group.uuid)
        if cause is not None:
            self._number[cause] += 1
            # What was written since is known better here.
            self._causes.setdefault(cause, (group.wait_reason or "", group.wait_message or ""))

    def leave(self, uuid: str) -> None:
        """A group is no longer there."""
        known = self._groups.pop(uuid, None)
        if known is None:
            return
        self._part(uuid, known)
        self._let_go(known.cause)
        self._fresh.discard(uuid)
        if self._uuids.get(known.gang.name) == uuid:
            del self._uuids[known.gang.name]

    def told(self) -> dict[str, Told | None]:
        """Why each group waits, as it is stored, by uuid."""
        return {
            uuid: None if each.cause is None else self._causes.get(each.cause)
            for uuid, each in self._groups.items()
        }

    # What a plan says

    def compare(self, said: PlanSaid) -> WaitNews:
        """What of a plan is not stored yet."""
        reader = _PlanReader(said)
        self._find_shapes(reader)
        look = {*self._fresh, *self._odd, *self._apart}
        apart = reader.apart(self._uuids)
        look |= apart.keys()
        shapes: dict[_Alike, str] = {}
        causes: dict[str, Told] = {}
        by_shape: dict[_Alike, tuple[str, Told]] = {}
        for alike, members in self._members.items():
            pool = self._groups[next(iter(members))].pool
            cause, told = by_shape[alike] = reader.of_shape(alike, pool)
            shapes[alike] = cause
            if self._shapes.get(alike) != cause:
                look |= members
            elif self._number[cause] and self._causes.get(cause) != told:
                causes[cause] = told
        groups: dict[str, str] = {}
        kinds: dict[str, Told] = {}
        for uuid in sorted(look & self._groups.keys()):
            each = self._groups[uuid]
            shape = None if each.alike is None else by_shape[each.alike]
            found = reader.of_group(uuid, each.gang, each.pool, apart.get(uuid), shape)
            if found is None:
                continue
            cause, told = found
            before = None if each.cause is None else self._causes.get(each.cause)
            if each.cause != cause:
                groups[uuid] = cause
            if self._causes.get(cause) != told:
                causes[cause] = told
            if before is None or before[0] != told[0]:
                kinds[uuid] = told
        unused = self._unused(groups, causes)
        return WaitNews(
            groups, causes, kinds, unused, not self._swept, shapes, frozenset(apart.keys())
        )

    def note(self, news: WaitNews) -> None:
        """Remember what was just written, if there was anything to write."""
        for uuid, cause in news.groups.items():
            each = self._groups[uuid]
            self._let_go(each.cause)
            each.cause = cause
            self._number[cause] += 1
        self._causes.update(news.causes)
        self._shapes, self._apart = news.shapes, news.apart
        self._fresh.clear()
        if not news:
            return
        for cause in news.unused:
            self._causes.pop(cause, None)
            self._left.discard(cause)
        self._swept = True

    def _find_shapes(self, reader: _PlanReader) -> None:
        """Put what is new to others of its shape."""
        for uuid in self._fresh:
            each = self._groups[uuid]
            self._part(uuid, each)
            each.alike = reader.alike(each.gang)
            if each.alike is not None:
                self._members.setdefault(each.alike, set()).add(uuid)
            elif reader.may_wait(each.gang):
                self._odd.add(uuid)

    def _part(self, uuid: str, each: _Waiting) -> None:
        self._odd.discard(uuid)
        if each.alike is None:
            return
        members = self._members[each.alike]
        members.discard(uuid)
        if not members:
            del self._members[each.alike]
        each.alike = None

    def _let_go(self, cause: str | None) -> None:
        if cause is None:
            return
        self._number[cause] -= 1
        if not self._number[cause]:
            del self._number[cause]
            self._left.add(cause)

    def _unused(self, groups: Mapping[str, str], causes: Iterable[str]) -> tuple[str, ...]:
        left = Counter(self._groups[uuid].cause for uuid in groups)
        emptied = {
            cause
            for cause, number in left.items()
            if cause is not None and self._number[cause] == number
        }
        found = {each for each in self._left if each not in self._number} | emptied
        return tuple(sorted(found - set(groups.values()) - set(causes)))


class _PlanReader:
    """Reads a plan: which cause each group or shape has, and what it says."""

    def __init__(self, said: PlanSaid) -> None:
        self._said = said
        self._waits = Waits(said.snapshot, said.policy, said.plan)

    def alike(self, gang: Gang) -> _Alike | None:
        """What gangs have in common of which the same is said."""
        if not self._waits.goes_by_shape(gang):
            return None
        return gang.queue, shape_of(gang, self._said.policy)

    def may_wait(self, gang: Gang) -> bool:
        """Whether a plan may say something about a gang that does not go by its shape."""
        return self._waits.of(gang) is not None or any(pod.node is None for pod in gang.pods)

    def apart(self, uuids: Mapping[str, str]) -> dict[str, Told | None]:
        """The groups that the plan names by themselves; of those with room being made, that."""
        found: dict[str, Told | None] = {
            uuids[name]: None for name in self._waits.apart if name in uuids
        }
        for each in self._said.plan.nominations:
            if each.workload in uuids:
                told = (WaitReason.NOMINATED.value, _say_nominated(each.waits_for))
                found[uuids[each.workload]] = told
        return found

    def of_shape(self, alike: _Alike, pool: str) -> tuple[str, Told]:
        """The cause of all of a shape, and what it says."""
        queue, shape = alike
        if pool in self._said.offline:
            told = (WaitReason.BACKEND.value, self._said.offline[pool])
            return _name(told[0], pool), told
        wait = self._waits.of_shape("", queue, shape)
        told = (wait.reason, wait.say(self._said.words))
        if wait.reason == WaitReason.BEHIND:
            return _name(told[0], queue), told
        return _name(told[0], queue, shape), told

    def of_group(
        self,
        uuid: str,
        gang: Gang,
        pool: str,
        nominated: Told | None,
        shape: tuple[str, Told] | None,
    ) -> tuple[str, Told] | None:
        """The cause of one group, and what it says; `None`: the plan says nothing about it."""
        told = nominated
        if told is None:
            wait = self._waits.of(gang)
            if wait is None:
                return None
            told = self._told(wait, pool)
        return shape if shape is not None and shape[1] == told else (uuid, told)

    def _told(self, wait: Wait, pool: str) -> Told:
        if pool in self._said.offline:
            return WaitReason.BACKEND.value, self._said.offline[pool]
        return wait.reason, wait.say(self._said.words)


def _say_nominated(waits_for: tuple[str, ...]) -> str:
    made = name_some(waits_for) if waits_for else "those that were told to end"
    return f"it starts as soon as {made} made room for it"


def _name(kind: str, queue: str, shape: bytes = b"") -> str:
    """The name of a cause; the same after a restart."""
    text = b"\0".join((kind.encode(), queue.encode(), shape))
    return blake2b(text, digest_size=16).hexdigest()
