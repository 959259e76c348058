"""The control group of a session, below its task's: it shares the task's limits and its end."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import msgspec

from bough.backends.local.sandbox.limits import INNER, Cgroup, join_group

_PREFIX = "session-"
_SWEEPS = 1_000


class SessionGroup(msgspec.Struct, frozen=True):
    """The processes of one session, by the folders of their group."""

    folders: tuple[str, ...] = ()

    @classmethod
    def below(cls, group: Cgroup | None, name: str) -> SessionGroup:
        """The group of a session; none if the task has no group."""
        if group is None:
            return cls()
        distinct = dict.fromkeys(group.folders.values())
        return cls(tuple(str(Path(each, INNER, _PREFIX + name)) for each in distinct))

    def make(self) -> None:
        """Make it."""
        for each in self.folders:
            Path(each).mkdir(exist_ok=True)

    def join(self) -> None:
        """Move this process, which has one thread, into it, with all children that it will have."""
        for each in self.folders:
            join_group(each)

    def end(self) -> None:
        """Kill all processes in it, and remove it."""
        for _ in range(_SWEEPS):
            found = self._processes()
            if not found:
                break
            for each in self.folders:
                with contextlib.suppress(OSError):
                    Path(each, "cgroup.kill").write_text("1")
            for pid in found:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            os.sched_yield()
        for each in self.folders:
            for above, _, _ in os.walk(each, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(above)

    def _processes(self) -> set[int]:
        found: set[int] = set()
        for folder in self.folders:
            for above, _, _ in os.walk(folder):
                with contextlib.suppress(OSError):
                    text = Path(above, "cgroup.procs").read_text()
                    found.update(int(each) for each in text.split() if int(each) > 0)
        return found
