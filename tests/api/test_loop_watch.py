"""A server and the process of its loop, without HTTP."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bough.control.clock import SteadyClock
from bough.control.scheduling.plan_questions import Question
from bough.errors import Busy, NotFound
from bough.server.loop_watch import LoopWatch
from bough.server.process import Running, put_together
from bough.server.settings import Settings

#: For a machine that is busy with other tests.
PATIENCE_S = 60


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with put_together(Settings(tmp_path / "data", backend="virtual", gpus=8)) as found:
        yield found


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


def test_what_rings_wakes_the_loop_and_is_counted(running: Running):
    loop = running.loop
    until(lambda: loop.leads)
    # A tick comes each second; so many cycles come of rings alone.
    begun, cycles = time.monotonic(), loop.counts.cycles
    while loop.counts.cycles < cycles + 30:
        loop.ring()
        time.sleep(0.005)
        assert time.monotonic() < begun + 29, "the loop was not woken"


def test_what_was_counted_and_whether_it_leads_outlive_a_loop(running: Running):
    loop = running.loop
    until(lambda: loop.leads and loop.counts.cycles)
    cycles, pid = loop.counts.cycles, loop.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until(lambda: loop.restarts == 1 and loop.leads)
    assert (True, "") == (loop.counts.cycles > cycles, loop.fault)
    assert pid != loop.pid


def test_a_question_to_a_loop_that_is_gone_is_answered_at_once(running: Running):
    loop = running.loop
    assert {} == loop.ask(Question("ann", waiting=("unknown",)))
    pid = loop.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until(lambda: loop.fault)
    with pytest.raises(Busy, match="being started again"):
        loop.ask(Question("ann", waiting=("unknown",)))
    until(lambda: not loop.fault)
    assert {} == loop.ask(Question("ann", waiting=("unknown",)))


def test_an_error_of_the_loop_at_the_start_is_the_servers(tmp_path: Path):
    settings = Settings(tmp_path / "data", backend="virtual", nodes=tmp_path / "missing.yaml")
    with pytest.raises(NotFound, match=r"missing\.yaml"), put_together(settings):
        pass


def test_a_loop_that_was_never_let_begin_ends(tmp_path: Path):
    loop = LoopWatch(Settings(tmp_path / "data"), SteadyClock(), {})
    loop.start()
    until(lambda: loop.pid)
    pid = loop.pid
    loop.stop()
    assert not Path(f"/proc/{pid}").exists()
