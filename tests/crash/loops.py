"""The process of the scheduler's loop is killed and frozen under load; its server stays."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

import httpx

from tests.crash.crashes import Scene
from tests.crash.server import Server, is_alive, until


def health(server: Server) -> httpx.Response:
    """What the server says of itself; it must answer, whatever became of the loop."""
    return httpx.get(f"http://127.0.0.1:{server.port}/health", timeout=60)


def await_loop(server: Server, before: int = 0) -> int:
    """Wait for a loop, another one than before, that is at work; its process."""
    until(lambda: server.loop not in (0, before), "the loop is started again")
    until(lambda: health(server).json()["status"] == "ok", "the loop is at work")
    return server.loop


def kill_loop(server: Server) -> int:
    """Kill the loop; which process it was."""
    pid = server.loop
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    until(lambda: not is_alive(pid), "a killed process ends")
    return pid


def crash_loops(scene: Scene, kills: int, budget_s: float) -> int:
    """Kill the loop at random moments under load, again and again; how often it was.

    One time in five it is killed before it is at work. Requests are answered all the time.
    """
    deadline = time.monotonic() + budget_s
    done = 0
    with scene.load.running():
        while done < kills and time.monotonic() < deadline:
            until(lambda: scene.server.loop, "there is a loop")
            if scene.random.random() < 0.2:
                time.sleep(scene.random.uniform(0.0, 1.0))
            else:
                await_loop(scene.server)
                time.sleep(scene.random.uniform(0.0, 2.5))
            if scene.server.loop:
                kill_loop(scene.server)
                done += 1
            answered = health(scene.server)
            assert 200 == answered.status_code, answered.text
        await_loop(scene.server)
    return done
