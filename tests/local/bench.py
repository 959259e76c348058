"""Driving a local backend as a server does, with real processes."""

from __future__ import annotations

import itertools
import os
import secrets
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from bough.backends.local.attempt_folder import folder_name
from bough.backends.local.attempt_state import look
from bough.backends.local.backend import LocalBackend
from bough.backends.local.options import LocalOptions
from bough.backends.local.supervisor.processes import all_processes, environment_has
from bough.model.backend import Launch, LogLine, Observation, Sight, Start, Stop
from bough.model.task_template import TaskTemplate

#: Far longer than anything here takes; only a failure waits so long.
PATIENCE_S = 120.0
NODE = "node-0"
OVER = (Sight.ENDED, Sight.UNSTARTABLE, Sight.LOST)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Bench:
    """A backend with eight made-up GPUs, its folder, and a folder that tasks can write to."""

    def __init__(self, path: Path, **options: object) -> None:
        self.path = path
        self.marks = path / "marks"
        self.marks.mkdir()
        self.marks.chmod(0o777)
        self.options = msgspec.structs.replace(
            LocalOptions(
                folder=path / "local", gpus=8, private=False, limits=False, log_bytes=2**20
            ),
            **options,
        )
        self._numbers = itertools.count()
        self._name = f"x{secrets.token_hex(6)}"
        self.backend = self.open()
        self.node = self.backend.nodes()[0].name

    def open(self) -> LocalBackend:
        return LocalBackend(self.options, now_ms)

    def restart(self) -> None:
        """Another server in the place of this one."""
        self.backend.close()
        self.backend = self.open()

    def launch(self, *command: str, gpus: int = 0, attempt: str | None = None, **more) -> Launch:
        number = next(self._numbers)
        return Launch(
            attempt=attempt or f"{self._name}-{number}/0",
            name=more.pop("name", f"task-{number}"),
            node=more.pop("node", self.node),
            gpus=gpus,
            memory_bytes=more.pop("memory_bytes", 0),
            storage_bytes=more.pop("storage_bytes", 0),
            spec=TaskTemplate(command=command, **more),
        )

    def start(self, *launches: Launch) -> None:
        self.backend.start(Start("flow-1", "group", launches))

    def run(self, *command: str, **more) -> str:
        """Start a task; its attempt."""
        launch = self.launch(*command, **more)
        self.start(launch)
        return launch.attempt

    def run_shell(self, script: str, **more) -> str:
        return self.run("/bin/sh", "-c", script, **more)

    def shell(self, script: str, **more) -> Launch:
        return self.launch("/bin/sh", "-c", script, **more)

    def stop(self, *attempts: str, grace_s: int = 0) -> None:
        self.backend.stop(Stop(attempts, "cancel", grace_s))

    def see(self, attempt: str) -> Observation | None:
        found = [each for each in self.backend.observe() if each.attempt == attempt]
        return found[0] if found else None

    def wait(self, attempt: str, *sights: Sight) -> Observation:
        """Wait until it is seen like this."""

        def found() -> Observation | None:
            seen = self.see(attempt)
            return seen if seen is not None and seen.sight in sights else None

        return until(found)

    def wait_running(self, attempt: str) -> Observation:
        return self.wait(attempt, Sight.RUNNING)

    def wait_over(self, attempt: str) -> Observation:
        return self.wait(attempt, *OVER)

    def is_over(self, attempt: str) -> bool:
        """Whether it has ended and its supervisor has left; nothing is written any more."""
        state, held = look(self.options.folder / "attempts" / folder_name(attempt) / "state")
        return state is not None and state.end is not None and not held

    def lines(self, attempt: str) -> list[LogLine]:
        """All that is kept of a log, read part by part."""
        lines: list[LogLine] = []
        position = 0
        while True:
            part = self.backend.read_log(attempt, position)
            assert part is not None
            lines += part.lines
            if part.complete or part.position == position:
                return lines
            position = part.position

    def wait_text(self, attempt: str, last: str) -> list[str]:
        """Wait until this is the last line of its log; all lines."""

        def found() -> list[str] | None:
            texts = self.texts(attempt)
            return texts if texts[-1:] == [last] else None

        return until(found)

    def texts(self, attempt: str) -> list[str]:
        return [line.text for line in self.lines(attempt)]

    def mark(self, name: str) -> Path:
        return self.marks / name

    def end(self) -> None:
        """End everything that was started here."""
        for seen in self.backend.observe():
            if seen.sight not in OVER:
                self.stop(seen.attempt)
        for seen in self.backend.observe():
            self.wait_over(seen.attempt)
        self.backend.close()


def until(look: Callable[[], Any]) -> Any:
    """What is looked for, as soon as it is there."""
    give_up = time.monotonic() + PATIENCE_S
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < give_up, "it did not happen"
        time.sleep(0.005)


def processes_of(attempt: str) -> list[int]:
    """What lives of an attempt, by the environment that it was started with."""
    entry = f"BOUGH_ATTEMPT={attempt}".encode()
    return [
        each.pid for each in all_processes() if not each.dead and environment_has(each.pid, entry)
    ]


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
