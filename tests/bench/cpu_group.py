"""CPU time of this process and of everything that it starts, short-lived processes included."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Self

from bough.backends.local.sandbox.cgroup_mounts import controlling, find_hierarchies


class CpuGroup:
    """A control group that this process is in; without one, only its own time is counted."""

    def __init__(self) -> None:
        tree = controlling(find_hierarchies(), "cpuacct")
        self._above = None if tree is None else tree.own
        self._group = None if tree is None else tree.own / f"bough-bench-{os.getpid()}"

    def __enter__(self) -> Self:
        try:
            if self._group is not None:
                self._group.mkdir()
                (self._group / "cgroup.procs").write_text(str(os.getpid()))
        except OSError:
            self._group = None
        return self

    def __exit__(self, *_: object) -> None:
        if self._group is None or self._above is None:
            return
        (self._above / "cgroup.procs").write_text(str(os.getpid()))
        for _ in range(50):
            try:
                self._group.rmdir()
                return
            except OSError:
                # Supervisors need a moment to exit.
                time.sleep(0.1)

    def seconds(self) -> float:
        """What was used up to now."""
        if self._group is not None:
            with suppress(OSError):
                return int((self._group / "cpuacct.usage").read_text()) / 1e9
            with suppress(OSError):
                return int((self._group / "cpu.stat").read_text().split()[1]) / 1e6
        return time.process_time()
