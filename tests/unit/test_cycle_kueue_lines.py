"""The lines between cycles: what is parked, with what, and until when; what a search has tried."""

from __future__ import annotations

import msgspec

from bough.core.cycle.waiting_lines import Lines
from bough.core.gang.from_workload import gang_of_workload
from bough.model.gang import Gang
from bough.model.plan import Admit, Nomination, Plan, Wait
from bough.model.policy import KUEUE
from bough.model.quota import Cohort, Queue
from bough.model.reason import WaitReason
from bough.model.workload import Admission, PodSet, PodTemplate
from tests.cycle_kueue import admitted, cycle, pods, queue
from tests.cycle_kueue import waiting as workload_that_waits


def waiting(name: str, gpu: int = 1, **fields: object) -> Gang:
    return gang_of_workload(workload_that_waits(name, gpu, **fields), "")


def _lines(**policy: object) -> Lines:
    """Two queues that share quota, and one by itself."""
    queues = [queue("a", "team", f=1), queue("b", "other", f=1), queue("alone", f=1)]
    cohorts = [Cohort("team", "root"), Cohort("other", "root")]
    return Lines(msgspec.structs.replace(KUEUE, **policy), cohorts, queues)


def _parked(name: str, **fields: object) -> Plan:
    fields = {"parked": True, "alike": True, **fields}
    return Plan(waits=(Wait(f"ns/{name}", WaitReason.LIMIT, "no room", **fields),))


def _active(lines: Lines) -> set[str]:
    """The gangs that a cycle with endless quota would look at, by the lines' own answer."""
    names = list(lines.waiting)
    found: set[str] = set()
    while True:
        decided = cycle(
            [queue(name, f=10**6) for name in names],
            waits={name: list(each) for name, each in lines.waiting.items()},
            parked=lines.parked,
        )
        if not decided.admits:
            return found
        found |= set(admitted(decided))
        lines.settle(Plan(admits=decided.admits))


def test_lines_that_are_empty_are_at_rest() -> None:
    lines = _lines()
    assert ({}, {}, {}, True) == (lines.waiting, lines.parked, lines.progress, lines.are_at_rest)


def test_who_is_parked_takes_all_of_its_shape_along_also_those_who_come_later() -> None:
    lines = _lines()
    for workload in (waiting("x1", 2), waiting("x2", 2), waiting("y", 1)):
        lines.add("a", workload)
    lines.settle(_parked("x1"))
    lines.add("a", waiting("x3", 2))
    assert not lines.are_at_rest
    assert {"y"} == _active(lines)
    assert lines.are_at_rest


def test_who_is_parked_for_itself_leaves_the_others_in_line() -> None:
    lines = _lines()
    lines.add("a", waiting("x1", 2))
    lines.add("a", waiting("x2", 2))
    lines.settle(_parked("x1", alike=False))
    assert {"x2"} == _active(lines)
    assert lines.are_at_rest


def test_shapes_differ_by_priority_and_by_what_the_pods_ask_for_but_not_by_labels() -> None:
    lines = _lines()
    shape = PodSet("main", 1, PodTemplate({"gpu": 2}, labels={"job": "1"}))
    others = {
        "priority": waiting("priority", 2, priority=1),
        "pods": waiting("pods", pod_sets=(pods(2, gpu=2),)),
        "request": waiting("request", 3),
        "minimum": waiting("minimum", pod_sets=(pods(1, 1, gpu=2),)),
        "selector": waiting(
            "selector", pod_sets=(PodSet("main", 1, PodTemplate({"gpu": 2}, {"zone": "a"})),)
        ),
        "finished": waiting("finished", pod_sets=(pods(3, gpu=2),), reclaimable_pods={"main": 1}),
    }
    lines.add("a", waiting("x", 2))
    lines.add("a", waiting("label", pod_sets=(shape,)))
    for workload in others.values():
        lines.add("a", workload)
    lines.settle(_parked("x"))
    assert set(others) == _active(lines)


def test_parked_workloads_of_the_whole_tree_come_back_when_something_in_it_ends() -> None:
    lines = _lines()
    for name in ("a", "b", "alone"):
        lines.add(name, waiting(f"w-{name}"))
        lines.settle(_parked(f"w-{name}"))
    assert lines.are_at_rest
    lines.wake("b")
    assert {"w-a", "w-b"} == _active(lines)


def test_new_declarations_bring_everyone_back() -> None:
    lines = _lines()
    lines.add("alone", waiting("w"))
    lines.settle(_parked("w"))
    lines.declare([], [Queue("a"), Queue("b"), Queue("alone", "root"), Queue("new", "root")])
    assert not lines.are_at_rest
    lines.settle(_parked("w"))
    lines.wake("new")
    assert not lines.are_at_rest


def test_queues_that_hang_on_one_cycle_wake_each_other() -> None:
    cohorts = [Cohort("x", "y"), Cohort("y", "x")]
    lines = Lines(KUEUE, cohorts, [Queue("a", "x"), Queue("b", "y")])
    lines.add("a", waiting("w"))
    lines.settle(_parked("w"))
    lines.wake("b")
    assert not lines.are_at_rest


def test_who_is_admitted_or_removed_waits_no_more() -> None:
    lines = _lines()
    lines.add("a", waiting("x"))
    lines.add("a", waiting("y"))
    lines.settle(Plan(admits=(Admit("ns/x", Admission("a", ())),)))
    lines.remove("ns/y")
    assert ({}, True) == (lines.waiting, lines.are_at_rest)


def test_a_newer_state_replaces_the_older_and_may_change_its_shape() -> None:
    lines = _lines()
    lines.add("a", waiting("x", 2))
    lines.settle(_parked("x"))
    smaller = waiting("x", 1)
    lines.add("b", smaller)
    assert {"b": (smaller,)} == lines.waiting
    assert not lines.are_at_rest


def test_the_tuple_of_a_queue_stays_the_same_until_a_gang_joins_or_leaves() -> None:
    lines = _lines()
    lines.add("a", waiting("x"))
    lines.add("b", waiting("y"))
    before = lines.waiting
    lines.settle(_parked("x"))
    lines.add("b", waiting("z"))
    after = lines.waiting
    assert (True, False) == (before["a"] is after["a"], before["b"] is after["b"])


def test_who_was_promised_room_is_nominated_until_it_leaves_or_another_is() -> None:
    lines = _lines()
    for name in ("x", "y"):
        lines.add("a", waiting(name))
    lines.settle(Plan(nominations=(Nomination("ns/x"),)))
    assert ["ns/x"] == [key for key, known in lines.progress.items() if known.nominated]
    lines.settle(Plan(nominations=(Nomination("ns/y"),)))
    assert ["ns/y"] == [key for key, known in lines.progress.items() if known.nominated]
    lines.remove("ns/y")
    assert {} == lines.progress


def test_a_search_goes_on_where_it_stopped_in_the_next_cycle_even_if_something_ended() -> None:
    lines = _lines()
    _try_flavors(lines)
    lines.wake("b")
    assert {"main": {"gpu": 0}} == lines.progress["ns/x"].tried
    lines.settle(Plan())
    assert {} == lines.progress


def test_a_search_goes_on_where_it_stopped_as_long_as_nothing_ended() -> None:
    for keep in (True, False):
        lines = _lines(keep_scan_progress=keep)
        _try_flavors(lines)
        lines.settle(Plan())
        lines.settle(Plan())
        lines.wake("alone")
        assert {"main": {"gpu": 0}} == lines.progress["ns/x"].tried
    lines.wake("b")
    assert {} == lines.progress


def _try_flavors(lines: Lines) -> None:
    lines.add("a", waiting("x"))
    lines.settle(_parked("x", parked=False, alike=False, tried={"main": {"gpu": 0}}))


def test_everyone_who_waits_can_be_told_why() -> None:
    lines = _lines()
    own, alike, unknown = waiting("own", 2), waiting("alike", 2), waiting("unknown", 1)
    for workload in (own, alike, unknown):
        lines.add("a", workload)
    lines.settle(_parked("own"))
    assert ["no room", "no room", None] == [_why(lines, each) for each in (own, alike, unknown)]


def _why(lines: Lines, workload: Gang) -> str | None:
    found = lines.wait_of(workload.name)
    return None if found is None else found.message
