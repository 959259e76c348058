"""The time of a server: it begins with the machine's clock, and then goes on by itself.

Clocks are set: by hand, by a time service that was away, by a machine that was paused. Deadlines,
running times and the order of submissions must not jump with them. So the server's time follows the
time since the machine was started, which only goes forward, and approaches the machine's clock so
slowly that no duration is wrong by more than a thousandth. It goes on through restarts.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

LOG = logging.getLogger(__name__)

#: How fast it approaches the machine's clock: one millisecond in so many.
SLEW = 1_000
#: A machine's clock that was set by more than this was wrong before; the next start takes it over.
LARGEST_STEP_MS = 7 * 86_400_000
#: A difference from which on a start warns.
_NOTABLE_MS = 60_000
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class _Anchor(NamedTuple):
    """What time it was at a moment of the clock that counts from the start of the machine."""

    boot: str
    since_boot_ms: int
    at_ms: int


class SteadyClock:
    """Milliseconds since 1970, which never go back. Any thread can ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._boot_ms = _since_boot_ms()
        self._now_ms = _wall_ms()
        #: The rest of the slow correction, in parts of a millisecond.
        self._rest = 0

    @classmethod
    def continued(cls, path: Path) -> SteadyClock:
        """Go on where an earlier server of this folder was; the file is written anew."""
        clock = cls()
        before = _read(path)
        if before is not None and before.boot == _boot():
            there_ms = before.at_ms + clock._boot_ms - before.since_boot_ms
            step_ms = clock._now_ms - there_ms
            if abs(step_ms) <= LARGEST_STEP_MS:
                clock._now_ms = there_ms
            if abs(step_ms) >= _NOTABLE_MS:
                LOG.warning(
                    "the machine's clock was set by %+d s since the data was last used; %s",
                    step_ms // 1_000,
                    "times continue from before and approach it slowly"
                    if abs(step_ms) <= LARGEST_STEP_MS
                    else "the new time is used from now on",
                )
        clock.keep(path)
        return clock

    @classmethod
    def beginning(cls, since_boot_ms: int, at_ms: int) -> SteadyClock:
        """Continue the clock of another process of this machine, from its `moment`."""
        clock = cls()
        clock._now_ms = at_ms + clock._boot_ms - since_boot_ms
        return clock

    def moment(self) -> tuple[int, int]:
        """The time, and how long ago the machine was started."""
        now_ms = self.now_ms()
        return now_ms, self._boot_ms

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        with self._lock:
            boot_ms = _since_boot_ms()
            passed_ms = max(0, boot_ms - self._boot_ms)
            self._boot_ms += passed_ms
            off_ms = _wall_ms() - (self._now_ms + passed_ms)
            parts = self._rest + passed_ms
            most_ms, self._rest = divmod(parts, SLEW)
            self._now_ms += passed_ms + max(-most_ms, min(most_ms, off_ms))
            return self._now_ms

    def keep(self, path: Path) -> None:
        """Write down what time it is, for a server after this one."""
        now_ms = self.now_ms()
        part = path.with_name(f"{path.name}.part")
        with suppress(OSError):
            part.write_text(f"{_boot()} {self._boot_ms} {now_ms}\n")
            part.replace(path)


def _read(path: Path) -> _Anchor | None:
    try:
        boot, since_boot_ms, at_ms = path.read_text().split()
        return _Anchor(boot, int(since_boot_ms), int(at_ms))
    except (OSError, ValueError):
        return None


def _boot() -> str:
    """The kernel's name for this run of the machine."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return "unknown"


def _since_boot_ms() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
