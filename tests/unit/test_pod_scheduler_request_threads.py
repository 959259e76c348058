"""The threads that send what a scheduler of pods decided: in which order, and how they end."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from bough.pod_scheduler import evictor as evictor_module
from bough.pod_scheduler.evictor import Ending, EndResult, Evictor
from bough.pod_scheduler.request_threads import Workers
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


def test_what_has_begun_goes_before_what_has_not() -> None:
    done: list[str] = []
    workers = Workers(1, "test")

    def begin(name: str) -> None:
        done.append(name)
        workers.go_on(lambda each=each: done.append(f"{name}{each}") for each in range(2))

    for name in "ab":
        workers.put(lambda name=name: begin(name))
    workers.start()
    wait_for(lambda: len(done) >= 6)
    workers.stop(5)
    assert ["a", "a0", "a1", "b", "b0", "b1"] == done


def test_at_the_end_what_has_begun_is_finished_and_nothing_else_begins() -> None:
    done: list[str] = []
    begun, go_on = threading.Event(), threading.Event()
    workers = Workers(1, "test")

    def begin() -> None:
        begun.set()
        go_on.wait()
        workers.go_on([lambda: done.append("rest of the first")])

    workers.put(begin)
    workers.put(lambda: done.append("second"))
    workers.put_off(lambda: done.append("third"), 0.0)
    workers.start()
    begun.wait()
    stopping = threading.Thread(target=workers.stop, args=(30,))
    stopping.start()
    wait_for(lambda: workers._stopping)
    go_on.set()
    stopping.join()
    assert ["rest of the first"] == done


def test_what_fails_harms_no_others_and_what_is_put_off_is_done() -> None:
    done: list[str] = []
    workers = Workers(1, "test")

    def fail() -> None:
        raise ValueError("on purpose")

    workers.put(fail)
    for name in ("later", "as late"):
        workers.put_off(lambda name=name: done.append(name), 0.01)
    workers.start()
    wait_for(lambda: len(done) >= 2)
    workers.stop(5)
    assert ["later", "as late"] == done


def test_who_waits_for_the_next_try_is_told_that_there_is_none() -> None:
    told: list[bool] = []
    waiting = threading.Event()
    workers = Workers(1, "test")

    def wait() -> None:
        waiting.set()
        told.append(workers.pause(600))

    workers.put(wait)
    workers.start()
    waiting.wait()
    workers.stop(0.01)
    wait_for(lambda: bool(told))
    assert [True] == told


def test_a_pod_that_need_not_end_any_more_is_not_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evictor_module, "AGAIN_S", 0.01)
    tries: Counter[str] = Counter()

    def answer(exchange: Exchange) -> None:
        exchange.read_body()
        exchange.refuse(403, "Forbidden", "pods is forbidden")

    def told(result: EndResult) -> None:
        tries[result.ending.uid] += 1
        evictor.forget("1")

    with ScriptedApiserver(tmp_path, answer) as server:
        evictor = Evictor(client_of(server), told)
        evictor.start()
        for uid in ("1", "2"):
            evictor.end(Ending("ml/g", "ml/a", uid, "ml/h", "why"))
        wait_for(lambda: tries["2"] >= 5)
        evictor.stop(5)
    assert 1 >= tries["1"]
