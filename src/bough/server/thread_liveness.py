"""Notices that a thread hangs, from marks that it makes itself and how much it ran since."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from pathlib import Path

#: A thread that makes no mark for so long and hardly runs waits for something that does not come.
IDLE_S = 120.0
#: How much time on the processor, or in the line for it, is hardly any.
LITTLE_S = 1.0
#: A thread that computes for so long without a mark does not come to an end, either.
LONGEST_S = 3_600.0


class ThreadPulse:
    """The marks of one thread; another thread asks for its fault."""

    def __init__(self, thread: threading.Thread) -> None:
        self.thread = thread
        self._marked: tuple[float, float] | None = None

    def mark(self) -> None:
        """By the thread: it goes on."""
        self._marked = time.monotonic(), ran_s(self.thread)

    @property
    def fault(self) -> str:
        """How the thread hangs; empty: it does not, as far as is known."""
        marked = self._marked
        if marked is None or not self.thread.is_alive():
            return ""
        since_s = time.monotonic() - marked[0]
        if since_s <= min(IDLE_S, LONGEST_S):
            return ""
        used_s = ran_s(self.thread) - marked[1]
        if since_s > LONGEST_S or used_s < LITTLE_S:
            return f"does not go on since {since_s:.0f} s, in which it ran for {used_s:.1f} s"
        return ""


def ran_s(thread: threading.Thread) -> float:
    """How long a living thread has run, or wanted to: on a busy machine it waits in line."""
    if thread.ident is None:
        return 0.0
    waited_ns = 0
    # A kernel that does not count this says nothing, or zero.
    with suppress(OSError, IndexError, ValueError):
        figures = Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text()
        waited_ns = int(figures.split()[1])
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident)) + waited_ns / 1e9
