"""The processes that answer requests are killed under load; their server stays."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from tests.crash.crashes import Scene
from tests.crash.loops import health
from tests.crash.server import Server, is_alive, until


def await_workers(server: Server, count: int) -> list[int]:
    """Wait until so many workers answer; their processes."""
    until(lambda: len(server.workers) == count, "all workers are started")
    until(lambda: health(server).json()["status"] == "ok", "all workers answer")
    return server.workers


def crash_workers(scene: Scene, count: int, kills: int, budget_s: float) -> int:
    """Kill one of the workers at random moments under load, again and again; how often it was.

    One time in three others are still being started; one time in four two are killed at once.
    Requests are answered all the time.
    """
    deadline = time.monotonic() + budget_s
    done = 0
    with scene.load.running():
        while done < kills and time.monotonic() < deadline:
            if scene.random.random() < 0.67:
                await_workers(scene.server, count)
            time.sleep(scene.random.uniform(0.0, 1.5))
            workers = scene.server.workers
            victims = scene.random.sample(
                workers, min(len(workers), 2 if scene.random.random() < 0.25 else 1)
            )
            for pid in victims:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                done += 1
            for pid in victims:
                until(lambda: not is_alive(pid), "a killed process ends")  # noqa: B023
            answered = health(scene.server)
            assert 200 == answered.status_code, answered.text
        await_workers(scene.server, count)
    return done
