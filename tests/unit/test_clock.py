"""The server's time goes forward steadily, whatever the machine's clock is set to."""

from __future__ import annotations

import pytest

from bough.control import clock as clock_module
from bough.control.clock import LARGEST_STEP_MS, SteadyClock

NOON_MS = 1_800_000_000_000
HOUR_MS = 3_600_000


class Machine:
    """A clock that is set, and one that counts from the start of the machine."""

    def __init__(self) -> None:
        self.wall_ms = NOON_MS
        self.boot_ms = 5_000
        self.boot = "first"

    def go(self, ms: int) -> None:
        self.wall_ms += ms
        self.boot_ms += ms


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(clock_module, "_wall_ms", lambda: made.wall_ms)
    monkeypatch.setattr(clock_module, "_since_boot_ms", lambda: made.boot_ms)
    monkeypatch.setattr(clock_module, "_boot", lambda: made.boot)
    return made


@pytest.mark.parametrize("step_ms", [-HOUR_MS, 24 * HOUR_MS])
def test_a_step_is_not_followed_and_durations_stay_right(machine: Machine, step_ms: int) -> None:
    clock = SteadyClock()
    machine.go(10_000)
    before_ms = clock.now_ms()
    machine.wall_ms += step_ms
    assert before_ms == clock.now_ms()
    machine.go(60_000)
    assert 60 >= abs(clock.now_ms() - before_ms - 60_000)


def test_time_never_goes_back_and_comes_to_be_that_of_the_machine(machine: Machine) -> None:
    clock = SteadyClock()
    machine.wall_ms -= 2_000
    last_ms = clock.now_ms()
    for _ in range(3_000):
        machine.go(1_000)
        assert last_ms < (last_ms := clock.now_ms())
    assert machine.wall_ms == last_ms


def test_it_draws_near_however_often_it_is_asked(machine: Machine) -> None:
    clock = SteadyClock()
    machine.wall_ms += 5
    for _ in range(5_000):
        machine.go(1)
        clock.now_ms()
    assert machine.wall_ms == clock.now_ms()


def test_a_server_after_this_one_goes_on(machine: Machine, tmp_path) -> None:
    SteadyClock.continued(tmp_path / "clock").keep(tmp_path / "clock")
    machine.go(60_000)
    machine.wall_ms += 24 * HOUR_MS
    assert NOON_MS + 60_000 == SteadyClock.continued(tmp_path / "clock").now_ms()


def test_the_machines_clock_is_believed_after_its_restart_and_where_it_was_far_off(
    machine: Machine, tmp_path
) -> None:
    for change in ("boot", "far"):
        SteadyClock.continued(tmp_path / change)
        machine.wall_ms += HOUR_MS if change == "boot" else LARGEST_STEP_MS + HOUR_MS
        machine.boot = change if change == "boot" else machine.boot
        assert machine.wall_ms == SteadyClock.continued(tmp_path / change).now_ms()


@pytest.mark.parametrize("text", ["", "first", "first x y", "first 1 2 3"])
def test_a_file_that_cannot_be_read_is_as_none(machine: Machine, tmp_path, text: str) -> None:
    (tmp_path / "clock").write_text(text)
    assert machine.wall_ms == SteadyClock.continued(tmp_path / "clock").now_ms()
