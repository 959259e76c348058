"""Records decisions about gangs in ConfigMaps beside the Lease, for the next leader to read.

All gangs that one plan starts are recorded with one write, before the first of their pods is bound.
There are a few slots, each a ConfigMap. Decisions that are not carried out yet stay in a slot that
is written again. Users have no rights in the namespace of the Lease, so they cannot forge a record.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple

import msgspec

from bough.errors import BoughError, NotLeading
from bough.kube.back_off import BackOff
from bough.kube.client import KubeClient
from bough.kube.failures import AlreadyExists, KubeConflict, KubeNotFound, is_final
from bough.kube.objects import Kind, Meta
from bough.pod_scheduler.decisions import (
    Batch,
    Decisions,
    PlacedPod,
    read_decisions,
    write_decisions,
)
from bough.pod_scheduler.lease import LeaseHolder

LOG = logging.getLogger(__name__)
#: While one slot is being carried out, the next plans are recorded in others.
SLOTS = 4
#: The longest text of a record: a ConfigMap has 1 MiB at most.
LONGEST_TEXT = 700_000
#: The fields of a record. The term is that of the leader that wrote it, which counts its records.
DECISIONS, HOLDER, TERM, NUMBER = "decisions", "holder", "term", "number"
_LABELS = {"app.kubernetes.io/managed-by": "bough", "app.kubernetes.io/component": "decisions"}

Pause = Callable[[float], bool]


class Course(Enum):
    """What became of a decision."""

    #: Some of its pods are being bound, or some wait while others have a node.
    UNFINISHED = 1
    #: Some of its pods wait, and none has a node.
    NOT_BEGUN = 2
    #: None of its pods waits: no leader would act on it.
    OVER = 3


#: Tells what became of what was decided about a gang.
Judge = Callable[[str, tuple[PlacedPod, ...]], Course]


class _ConfigMap(msgspec.Struct, frozen=True):
    metadata: Meta = Meta()
    data: dict[str, str] | None = None


CONFIG_MAPS: Kind[_ConfigMap] = Kind("api/v1", "configmaps", _ConfigMap)


def slot_names(scheduler: str) -> list[str]:
    """The names of all slots of a scheduler, which is named as its Lease."""
    return [f"{scheduler}-decisions-{number}" for number in range(SLOTS)]


class Stamp(NamedTuple):
    """Which of two records is newer."""

    term: int
    number: int


class RecordWrite(NamedTuple):
    """A slot that must be written before the pods of these batches are bound."""

    slot: int
    name: str
    namespace: str
    #: The version that is replaced; empty if there is none.
    version: str
    data: dict[str, str]
    batches: tuple[Batch, ...]


class RecordResult(NamedTuple):
    """The result of one write."""

    #: The version of the slot now; empty if it was not written.
    version: str
    #: Why it was not written.
    message: str = ""
    #: Whether an immediate retry would be refused again.
    lasting: bool = False


class _Slot:
    """One ConfigMap, as far as this leader knows it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.version = ""
        self.stamp = Stamp(0, 0)
        self.decisions: Decisions = {}
        #: What it has until a write that was sent is answered.
        self.before: tuple[Stamp, Decisions] | None = None

    def read(self, kept: _ConfigMap) -> None:
        self.version = kept.metadata.resource_version
        data = kept.data or {}
        stamp = _read_stamp(data)
        found = read_decisions(data.get(DECISIONS, ""))
        if stamp is None or found is None:
            LOG.warning("ConfigMap %s: ignoring a record that no scheduler wrote", self.name)
            return
        self.stamp, self.decisions = stamp, found


class DecisionRecords:
    """The slots of one scheduler, and what waits to be recorded; used by the loop alone."""

    def __init__(
        self, client: KubeClient, namespace: str, scheduler: str, holder: LeaseHolder
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._holder = holder
        self._slots = [_Slot(name) for name in slot_names(scheduler)]
        self._term = self._number = 0
        #: Batches in the order of their plans, which no write covers yet.
        self._waiting: deque[Batch] = deque()
        #: Why records cannot be read or written; empty if nothing is wrong.
        self.failure = ""

    # Reading

    def read(self, pause: Pause) -> bool:
        """Read all slots; return whether that worked before `pause` said to give up."""
        back_off = BackOff()
        while True:
            try:
                for slot in self._slots:
                    kept = _find(self._client, slot.name, self._namespace)
                    if kept is not None:
                        slot.read(kept)
            except BoughError as error:
                self._fail(f"decisions cannot be read: {error.message}")
                if pause(back_off.wait_s()):
                    return False
            else:
                self.failure = ""
                # A Lease that was deleted counts from the start again.
                last = max(slot.stamp.term for slot in self._slots)
                self._term = max(self._holder.term, last + 1)
                return True

    def newest(self) -> Decisions:
        """What was last recorded about each gang."""
        found: dict[str, tuple[PlacedPod, ...]] = {}
        for slot in sorted(self._slots, key=lambda each: each.stamp):
            found.update(slot.decisions)
        return found

    def of(self, group: str) -> tuple[PlacedPod, ...]:
        """What was last recorded about a gang, as far as it may still be carried out."""
        holding = [each for each in self._slots if group in each.decisions]
        if not holding:
            return ()
        return max(holding, key=lambda each: each.stamp).decisions[group]

    # Writing

    def add(self, batches: Iterable[Batch]) -> None:
        """Add what one plan binds; some of it needs a record."""
        self._waiting.extend(batches)

    def next_write(self, judge: Judge) -> RecordWrite | Batch | None:
        """The next write, if something waits for one and a slot can be written.

        A batch that is too large to be recorded is returned by itself.
        """
        idle = [each for each in self._slots if each.before is None]
        if not self._waiting or not idle:
            return None
        kept = {slot.name: self._kept(slot, judge) for slot in idle}
        slot = min(idle, key=lambda each: sum(map(len, kept[each.name].values())))
        return self._filled(slot, kept[slot.name])

    def _kept(self, slot: _Slot, judge: Judge) -> dict[str, tuple[PlacedPod, ...]]:
        """What must stay in a slot that is written again."""
        courses = {group: judge(group, each) for group, each in slot.decisions.items()}
        # What is over is judged once.
        slot.decisions = {
            group: each
            for group, each in slot.decisions.items()
            if courses[group] is not Course.OVER
        }
        return {
            group: each
            for group, each in slot.decisions.items()
            if courses[group] is Course.UNFINISHED and self.of(group) is each
        }

    def _filled(
        self, slot: _Slot, kept: dict[str, tuple[PlacedPod, ...]]
    ) -> RecordWrite | Batch | None:
        """As many of the waiting batches as have room beside what is kept."""
        count = len(self._waiting)
        while count:
            batches = tuple(self._waiting)[:count]
            decisions = {**kept, **{each.group: each.decision for each in batches if each.decision}}
            text = write_decisions(decisions)
            if len(text) <= LONGEST_TEXT:
                for _ in batches:
                    self._waiting.popleft()
                return self._write(slot, decisions, text, batches)
            count //= 2
        # What is kept goes in time, and leaves its room.
        return None if kept else self._waiting.popleft()

    def _write(
        self, slot: _Slot, decisions: Decisions, text: str, batches: tuple[Batch, ...]
    ) -> RecordWrite:
        self._number += 1
        stamp = Stamp(self._term, self._number)
        slot.before = (slot.stamp, slot.decisions)
        slot.stamp, slot.decisions = stamp, decisions
        data = {
            DECISIONS: text,
            HOLDER: self._holder.identity,
            TERM: str(stamp.term),
            NUMBER: str(stamp.number),
        }
        at = self._slots.index(slot)
        return RecordWrite(at, slot.name, self._namespace, slot.version, data, batches)

    def take_result(self, write: RecordWrite, result: RecordResult) -> None:
        """A write was answered."""
        slot = self._slots[write.slot]
        if not result.message:
            slot.version, self.failure = result.version, ""
        else:
            if slot.before is not None:
                slot.stamp, slot.decisions = slot.before
            self._fail(f"decisions cannot be recorded: {result.message}")
        slot.before = None

    def _fail(self, message: str) -> None:
        if message != self.failure:
            LOG.warning("%s", message)
        self.failure = message


def send_record(client: KubeClient, write: RecordWrite, pause: Pause) -> RecordResult:
    """Write a slot, until it is certain whether it was written.

    A write without an answer may have been carried out. So it is repeated; if it meets another
    version then, a look at the slot tells.
    """
    version: str | None = write.version
    back_off = BackOff()
    while True:
        try:
            if version is None:
                kept = _find(client, write.name, write.namespace)
                if kept is not None and kept.data == write.data:
                    return RecordResult(kept.metadata.resource_version)
                if kept is not None and _is_newer(kept.data or {}, write.data):
                    return RecordResult("", f"ConfigMap {write.name} is that of a later leader")
                version = "" if kept is None else kept.metadata.resource_version
            return RecordResult(_put(client, write, version))
        except (KubeConflict, AlreadyExists) as error:
            version, failure, final = None, error, False
        except KubeNotFound as error:
            # Where it was to be created, its namespace is what is missing.
            version, failure, final = "", error, not version
        except NotLeading as lost:
            return RecordResult("", lost.message)
        except BoughError as error:
            failure, final = error, is_final(error)
        if final or pause(back_off.wait_s()):
            return RecordResult("", failure.message, lasting=True)


def _put(client: KubeClient, write: RecordWrite, version: str) -> str:
    metadata = {"name": write.name, "namespace": write.namespace, "labels": _LABELS}
    if version:
        metadata["resourceVersion"] = version
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": write.data}
    if version:
        kept = client.replace(CONFIG_MAPS, write.name, body, write.namespace)
    else:
        kept = client.create(CONFIG_MAPS, body, write.namespace)
    return kept.metadata.resource_version


def _find(client: KubeClient, name: str, namespace: str) -> _ConfigMap | None:
    try:
        return client.get(CONFIG_MAPS, name, namespace)
    except KubeNotFound:
        return None


def _read_stamp(data: dict[str, str]) -> Stamp | None:
    try:
        return Stamp(int(data[TERM]), int(data[NUMBER]))
    except (KeyError, ValueError):
        return None


def _is_newer(kept: dict[str, str], written: dict[str, str]) -> bool:
    """Whether what is kept is by a later leader than what we want to write."""
    there, own = _read_stamp(kept), _read_stamp(written)
    return there is not None and own is not None and there.term > own.term
