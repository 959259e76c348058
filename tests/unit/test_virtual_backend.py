"""The virtual backend holds GPUs and runs nothing; every call may be repeated."""

from __future__ import annotations

from bough.backends.virtual import VirtualBackend, make_nodes
from bough.model.backend import Backend, Launch, Observation, Sight, Start, Stop


class Clock:
    def __init__(self) -> None:
        self.ms = 1_000

    def __call__(self) -> int:
        return self.ms


def started(hold_s: int | None = None) -> tuple[VirtualBackend, Clock]:
    clock = Clock()
    backend: Backend = VirtualBackend(make_nodes(8), clock)
    assert isinstance(backend, VirtualBackend)
    backend.start(start(hold_s))
    return backend, clock


def start(hold_s: int | None = None, started_ms: int | None = None) -> Start:
    launch = Launch("t/0", "task", "node-0", 1, hold_s, started_ms)
    return Start("w-1", "group", (launch,))


def test_a_task_holds_its_gpus_for_as_long_as_it_is_told():
    backend, clock = started(hold_s=10)
    assert (Observation("t/0", Sight.RUNNING, 1_000),) == backend.observe()

    clock.ms = 12_345

    assert (Observation("t/0", Sight.ENDED, 11_000, 0),) == backend.observe()


def test_a_task_without_a_time_holds_them_until_it_is_told_to_end():
    backend, clock = started()
    clock.ms = 10**9
    assert Sight.RUNNING is backend.observe()[0].sight

    backend.stop(Stop(("t/0",), "cancel"))

    assert (Observation("t/0", Sight.ENDED, 10**9, None),) == backend.observe()


def test_calls_may_be_repeated():
    backend, clock = started()
    clock.ms = 2_000
    backend.start(start())
    assert (Observation("t/0", Sight.RUNNING, 1_000),) == backend.observe()
    backend.stop(Stop(("t/0",), "cancel"))
    clock.ms = 3_000
    backend.stop(Stop(("t/0",), "cancel"))
    assert (Observation("t/0", Sight.ENDED, 2_000, None),) == backend.observe()

    for _ in range(2):
        backend.forget(("t/0",))
        assert () == backend.observe()


def test_what_it_does_not_know_counts_as_ended_when_it_is_told_to_end():
    backend, _ = started()

    backend.stop(Stop(("x/0",), "preempt"))

    assert ("x/0", Sight.ENDED) == (backend.observe()[1].attempt, backend.observe()[1].sight)


def test_a_reminder_keeps_the_time_that_has_passed():
    clock = Clock()
    backend = VirtualBackend((), clock)

    backend.start(start(hold_s=10, started_ms=-5_000))

    clock.ms = 5_000
    assert (Observation("t/0", Sight.ENDED, 5_000, 0),) == backend.observe()


def test_nodes_are_made_for_a_number_of_gpus():
    assert [8, 8, 3] == [machine.gpus for machine in make_nodes(19)]
    assert ["node-0", "node-1", "node-2"] == [machine.name for machine in make_nodes(19)]
    assert () == make_nodes(0)
