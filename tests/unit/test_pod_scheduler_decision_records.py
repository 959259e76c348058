"""What schedulers record before they bind: in which slot, for how long, whatever is answered."""

from __future__ import annotations

import random
import string
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from bough.kube.client import KubeClient
from bough.pod_scheduler.binder import Binder, BindResult
from bough.pod_scheduler.decision_records import (
    SLOTS,
    Course,
    DecisionRecords,
    RecordResult,
    RecordWrite,
    send_record,
    slot_names,
)
from bough.pod_scheduler.decisions import Batch, PlacedPod
from bough.pod_scheduler.lease import LeaseHolder
from tests.scripted_apiserver import (
    Exchange,
    ScriptedApiserver,
    client_of,
    close_connections,
    wait_for,
)


@pytest.fixture(autouse=True)
def _close_connections() -> Iterator[None]:
    yield
    close_connections()


class Slots:
    """ConfigMaps of an apiserver, with their versions."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, Any]] = {}
        self.bound: list[str] = []
        self.version = 0
        #: What to do with the next writes instead of answering them.
        self.failures: list[Callable[[Exchange], object]] = []

    def answer(self, exchange: Exchange) -> None:
        body = exchange.read_body()
        name = exchange.path.rpartition("/")[2]
        if exchange.path.endswith("/binding"):
            self.bound.append(exchange.path.split("/")[-2])
            exchange.answer({})
        elif exchange.command == "GET":
            if name in self.kept:
                exchange.answer(self.kept[name])
            else:
                exchange.refuse(404, "NotFound", f"configmaps {name} not found")
        else:
            self._write(exchange, msgspec.json.decode(body))

    def _write(self, exchange: Exchange, sent: dict[str, Any]) -> None:
        if self.failures:
            fail = self.failures.pop(0)
            if fail is not lose_answer:
                fail(exchange)
                return
            self.put(sent)
            exchange.hang_up()
            return
        name = sent["metadata"]["name"]
        before = self.kept.get(name, {}).get("metadata", {}).get("resourceVersion")
        given = sent["metadata"].get("resourceVersion")
        if exchange.command == "POST" and before is not None:
            exchange.refuse(409, "AlreadyExists", "it is there")
        elif exchange.command == "PUT" and before is None:
            exchange.refuse(404, "NotFound", "it is gone")
        elif given != before:
            exchange.refuse(409, "Conflict", "it was changed")
        else:
            exchange.answer(self.put(sent))

    def put(self, sent: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        metadata = {**sent["metadata"], "resourceVersion": str(self.version)}
        self.kept[metadata["name"]] = {**sent, "metadata": metadata}
        return self.kept[metadata["name"]]

    def decisions(self) -> dict[str, set[str]]:
        """By slot that has any: the PodGroups in it."""
        return {
            name: set(msgspec.json.decode(each["data"]["decisions"]))
            for name, each in self.kept.items()
        }


def lose_answer(_exchange: Exchange) -> None:
    """Carry it out, and say nothing of it."""


def records_of(client: KubeClient, term: int = 1, identity: str = "one") -> DecisionRecords:
    holder = cast(LeaseHolder, SimpleNamespace(identity=identity, term=term))
    found = DecisionRecords(client, "system", "bough-scheduler-bough", holder)
    assert found.read(lambda _: True)
    return found


def batch(group: str, *pods: str, node: str = "n") -> Batch:
    placed = tuple(PlacedPod(f"ml/{pod}", pod, node) for pod in pods or ("a", "b"))
    return Batch(group, placed, group, placed)


def next_write(records: DecisionRecords, course: Course = Course.OVER) -> RecordWrite:
    found = records.next_write(lambda *_: course)
    assert isinstance(found, RecordWrite)
    return found


def carry(records: DecisionRecords, client: KubeClient, write: RecordWrite) -> RecordResult:
    result = send_record(client, write, lambda _: False)
    records.take_result(write, result)
    return result


SLOT = slot_names("bough-scheduler-bough")


def test_all_that_a_plan_starts_is_one_write_and_the_next_leader_reads_it(tmp_path: Path) -> None:
    slots = Slots()
    with ScriptedApiserver(tmp_path, slots.answer) as server:
        client = client_of(server)
        records = records_of(client)
        server.asked.clear()
        records.add([batch("ml/g"), Batch("alone", batch("x").pods), batch("ml/h", "c", "d")])
        assert "" == carry(records, client, next_write(records)).message
        assert ["POST"] == [method for method, _ in server.asked]
        assert {SLOT[0]: {"ml/g", "ml/h"}} == slots.decisions()
        found = records_of(client, 2).newest()
        assert {"ml/g": batch("ml/g").decision, "ml/h": batch("ml/h", "c", "d").decision} == found


def test_a_slot_is_written_over_once_what_it_has_is_over(tmp_path: Path) -> None:
    slots = Slots()
    with ScriptedApiserver(tmp_path, slots.answer) as server:
        client = client_of(server)
        records = records_of(client)
        for number in range(3):
            records.add([batch(f"ml/{number}")])
            carry(records, client, next_write(records, Course.OVER))
        assert {SLOT[0]: {"ml/2"}} == slots.decisions()


def test_what_is_not_finished_stays_recorded_whatever_is_decided_after_it(tmp_path: Path) -> None:
    slots = Slots()
    with ScriptedApiserver(tmp_path, slots.answer) as server:
        client = client_of(server)
        records = records_of(client)
        for number in range(3 * SLOTS):
            records.add([batch(f"ml/{number}")])
            carry(records, client, next_write(records, Course.UNFINISHED))
        # First in free slots, then beside what is there.
        assert [3] * SLOTS == [len(each) for each in slots.decisions().values()]
        assert {f"ml/{number}" for number in range(3 * SLOTS)} == records_of(client).newest().keys()


def test_of_what_was_decided_twice_about_a_gang_the_newest_counts(tmp_path: Path) -> None:
    slots = Slots()
    with ScriptedApiserver(tmp_path, slots.answer) as server:
        client = client_of(server)
        records = records_of(client)
        for node in ("n", "m"):
            records.add([batch("ml/g", node=node)])
            carry(records, client, next_write(records, Course.UNFINISHED))
        assert 2 == len(slots.kept)
        newest = batch("ml/g", node="m").decision
        assert newest == records.of("ml/g")
        # The next leader may have another order of terms: its Lease was deleted.
        later = records_of(client, 1, "two")
        assert newest == later.newest()["ml/g"]
        later.add([batch("ml/g", node="o")])
        carry(later, client, next_write(later, Course.UNFINISHED))
        assert batch("ml/g", node="o").decision == records_of(client).newest()["ml/g"]
        # What was replaced by a newer decision is not kept for its own sake.
        assert 2 == sum("ml/g" in groups for groups in slots.decisions().values())


def test_while_all_slots_are_being_written_what_is_decided_waits(tmp_path: Path) -> None:
    with ScriptedApiserver(tmp_path, Slots().answer) as server:
        client = client_of(server)
        records = records_of(client)
        writes: list[RecordWrite] = []
        for number in range(SLOTS):
            records.add([batch(f"ml/{number}")])
            writes.append(next_write(records))
        records.add([batch("ml/x"), batch("ml/y")])
        assert records.next_write(lambda *_: Course.OVER) is None
        carry(records, client, writes[2])
        assert writes[2].slot == next_write(records).slot
        assert records.next_write(lambda *_: Course.OVER) is None


@pytest.mark.parametrize("exists", [False, True], ids=["made", "changed"])
def test_a_record_whose_answer_is_lost_is_certain_before_anything_is_bound(
    tmp_path: Path, exists: bool
) -> None:
    slots = Slots()
    results: list[BindResult] = []
    recorded: list[RecordResult] = []
    with ScriptedApiserver(tmp_path, slots.answer) as server:
        client = client_of(server)
        records = records_of(client)
        if exists:
            records.add([batch("ml/before")])
            carry(records, client, next_write(records))
        slots.failures = [Exchange.hang_up, lose_answer]
        records.add([batch("ml/g")])
        binder = Binder(client, results.append, lambda _, result: recorded.append(result))
        binder.start()
        binder.bind_recorded(next_write(records))
        wait_for(lambda: len(results) == 2 and bool(recorded))
        binder.stop(5)
    assert {SLOT[0]: {"ml/g"}} == slots.decisions()
    assert ["n", "n"] == [each.node for each in results]
    assert str(slots.version) == recorded[0].version
    # Three tries of which the second worked, a look, and then the bindings.
    made = ["PUT"] * 3 if exists else ["POST"] * 3
    asked = [method for method, _ in server.asked][-6:]
    assert [*made, "GET", "POST", "POST"] == asked


def test_a_slot_that_others_changed_or_deleted_is_written_all_the_same(tmp_path: Path) -> None:
    slots = Slots()
    with ScriptedApiserver(tmp_path, slots.answer) as server:
        client = client_of(server)
        records = records_of(client)
        slots.put({"metadata": {"name": SLOT[0]}, "data": {"decisions": "?"}})
        for number, harm in enumerate((None, slots.kept.clear)):
            if harm is not None:
                harm()
            records.add([batch(f"ml/{number}")])
            assert "" == carry(records, client, next_write(records)).message
            assert {SLOT[0]: {f"ml/{number}"}} == slots.decisions()


def test_a_leader_of_an_earlier_term_writes_over_no_record_of_a_later_one(tmp_path: Path) -> None:
    slots = Slots()
    with ScriptedApiserver(tmp_path, slots.answer) as server:
        client = client_of(server)
        earlier, later = records_of(client, 1), records_of(client, 2, "two")
        later.add([batch("ml/new")])
        carry(later, client, next_write(later))
        earlier.add([batch("ml/old")])
        result = carry(earlier, client, next_write(earlier))
        assert f"ConfigMap {SLOT[0]} is that of a later leader" == result.message
        assert {SLOT[0]: {"ml/new"}} == slots.decisions()
        # The other way round the later one wins, though it has not seen the write of the earlier.
        second = records_of(client, 4, "four")
        first = records_of(client, 3, "three")
        first.add([batch("ml/late")])
        carry(first, client, next_write(first))
        second.add([batch("ml/newer")])
        assert "" == carry(second, client, next_write(second)).message
        assert {SLOT[0]: {"ml/newer"}} == slots.decisions()


@pytest.mark.parametrize("status", [403, 404, 422])
def test_where_it_cannot_be_recorded_no_gang_is_bound_and_what_was_there_still_counts(
    tmp_path: Path, status: int
) -> None:
    slots = Slots()
    results: list[BindResult] = []
    written: list[tuple[RecordWrite, RecordResult]] = []

    def refuse(exchange: Exchange) -> None:
        exchange.refuse(status, "", "cannot create resource configmaps in the namespace system")

    with ScriptedApiserver(tmp_path, slots.answer) as server:
        records = records_of(client_of(server))
        slots.failures = [refuse]
        records.add([batch("ml/g"), Batch("alone", batch("x", "z").pods)])
        binder = Binder(client_of(server), results.append, lambda *each: written.append(each))
        binder.start()
        binder.bind_recorded(next_write(records))
        wait_for(lambda: len(results) == 3 and bool(written))
        binder.stop(5)
    assert ["z"] == slots.bound
    why = "cannot create resource configmaps in the namespace system"
    assert [(why, True)] * 2 == [
        (each.message, each.lasting) for each in results if each.batch.group
    ]
    records.take_result(*written[0])
    assert () == records.of("ml/g")
    assert f"decisions cannot be recorded: {why}" == records.failure


def test_what_is_too_large_for_one_record_is_spread_over_slots_and_a_gang_is_never_split(
    tmp_path: Path,
) -> None:
    chance = random.Random(1)

    def large(group: str, count: int) -> Batch:
        names = ("".join(chance.choices(string.ascii_lowercase, k=200)) for _ in range(count))
        return batch(group, *names)

    with ScriptedApiserver(tmp_path, Slots().answer) as server:
        records = records_of(client_of(server))
        given = [large(f"ml/{number}", 900) for number in range(6)]
        huge = large("ml/huge", 9_000)
        records.add([*given, huge, batch("ml/small")])
        found: list[Batch] = []
        while (write := records.next_write(lambda *_: Course.OVER)) is not None:
            if isinstance(write, Batch):
                found.append(write)
                continue
            assert sum(map(len, write.data.values())) < 2**20
            found += write.batches
            records.take_result(write, RecordResult("1"))
        assert [*given, huge, batch("ml/small")] == found


def test_records_that_cannot_be_read_are_read_once_that_is_allowed(tmp_path: Path) -> None:
    slots, allowed = Slots(), threading.Event()

    def answer(exchange: Exchange) -> None:
        if not allowed.is_set():
            exchange.refuse(403, "Forbidden", "cannot get resource configmaps")
            return
        slots.answer(exchange)

    def pause(_wait_s: float) -> bool:
        assert "decisions cannot be read: cannot get resource configmaps" == records.failure
        allowed.set()
        return False

    with ScriptedApiserver(tmp_path, answer) as server:
        holder = cast(LeaseHolder, SimpleNamespace(identity="one", term=1))
        records = DecisionRecords(client_of(server), "system", "s", holder)
        assert records.read(pause)
        assert "" == records.failure
        allowed.clear()
        assert not records.read(lambda _: True)
