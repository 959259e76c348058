"""A loop whose thread hangs while its process lives is replaced; one that computes is not."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from bough.server import loop_watch, thread_liveness
from bough.server.process import put_together
from bough.server.settings import Settings
from bough.server.thread_liveness import ThreadPulse, ran_s

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


@contextmanager
def running(work: Callable[[ThreadPulse, threading.Event], object]) -> Iterator[ThreadPulse]:
    """A thread that marks once and then works until it is told to end."""
    ended = threading.Event()

    def run() -> None:
        pulse.mark()
        work(pulse, ended)

    thread = threading.Thread(target=run)
    pulse = ThreadPulse(thread)
    assert "" == pulse.fault
    thread.start()
    try:
        yield pulse
    finally:
        ended.set()
        thread.join()
    assert "" == pulse.fault


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_liveness, "IDLE_S", 0.2)


def _compute(_: ThreadPulse, ended: threading.Event) -> None:
    while not ended.is_set():
        sum(range(10_000))


@pytest.mark.usefixtures("impatient")
def test_a_thread_that_waits_without_a_mark_hangs():
    with running(lambda _, ended: ended.wait()) as pulse:
        until(lambda: pulse.fault)
        assert pulse.fault.startswith("does not go on since")


@pytest.mark.usefixtures("impatient")
def test_a_thread_that_computes_does_not_hang_until_it_takes_far_too_long(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(thread_liveness, "LITTLE_S", 0.05)
    with running(_compute) as pulse:
        began = time.process_time()
        until(lambda: time.process_time() - began > 1.0)
        assert "" == pulse.fault
        monkeypatch.setattr(thread_liveness, "LONGEST_S", 0.3)
        until(lambda: pulse.fault)


@pytest.mark.usefixtures("impatient")
def test_a_thread_that_waits_for_the_processor_does_not_hang(monkeypatch: pytest.MonkeyPatch):
    core = min(os.sched_getaffinity(0))
    busy = [sys.executable, "-S", "-c", "while True: pass"]
    others = [subprocess.Popen(busy) for _ in range(3)]
    for each in others:
        os.sched_setaffinity(each.pid, {core})

    def work(pulse: ThreadPulse, ended: threading.Event) -> None:
        os.sched_setaffinity(0, {core})
        _compute(pulse, ended)

    try:
        with running(work) as pulse:
            used = time.pthread_getcpuclockid(pulse.thread.ident or 0)
            until(lambda: ran_s(pulse.thread) > 1.5 * time.clock_gettime(used) + 0.2)
            # It computed for less than this, but wanted to.
            monkeypatch.setattr(thread_liveness, "LITTLE_S", time.clock_gettime(used) + 0.1)
            assert "" == pulse.fault
    finally:
        for each in others:
            each.kill()
            each.wait()


def test_a_loop_that_waits_for_ever_is_replaced_and_decides_again(
    postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(loop_watch, "_MODULE", "tests.api.impatient_loop")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'src'}")
    url = postgres.make(migrated=False)
    settings = Settings(tmp_path / "data", database=url, backend="virtual", gpus=8)
    with put_together(settings) as server:
        loop = server.loop
        until(lambda: loop.leads)
        before = loop.pid
        with psycopg.connect(url) as other:
            # Every cycle of the loop waits for this, as long as it is there.
            other.execute("LOCK TABLE settings IN ACCESS EXCLUSIVE MODE")
            until(lambda: loop.restarts)
            other.rollback()
        until(lambda: loop.leads)
        assert before != loop.pid
    said = capfd.readouterr().err
    assert "the scheduler's thread does not go on since" in said
    assert "in cycle" in said
