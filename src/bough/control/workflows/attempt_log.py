"""One attempt in a merged log: how far it was read, and which lines were read and not given yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from bough.model.backend import LogLine, LogPart

#: How often an ended attempt may have nothing new before no more is expected of it.
LAST_LOOKS = 4
#: A line counts as so much more than its text.
LINE_WEIGHT = 128


class LogEntry(NamedTuple):
    """A line, and whose it is."""

    at_ms: int
    task: str
    retry_id: int
    text: str


class LogPlace(NamedTuple):
    """Where a line is: of which source, in the part from which position, and its number there."""

    #: Never before that of an earlier line, whatever the clock did.
    at_ms: int
    order: int
    position: int
    line: int


class LogSource:
    """What is known of the log of one attempt."""

    def __init__(self, attempt: str, task: str, retry_id: int, order: int) -> None:
        self.attempt = attempt
        self.task = task
        self.retry_id = retry_id
        self.order = order
        self.position = 0
        #: Lines after the position that were given already.
        self._skipped = 0
        #: Lines of the part that was read last, with their numbers there.
        self.buffer: deque[tuple[int, LogLine]] = deque()
        self.part_position = 0
        #: How much it keeps.
        self.weight = 0
        self.running = False
        self.finished = False
        self.complete = False
        self.missing = False
        #: There was nothing when it was looked at last.
        self.dry = False
        self._looks = 0
        self._latest_ms = 0

    @property
    def closed(self) -> bool:
        """Whether everything was read."""
        if self.buffer:
            return False
        return self.complete or self.missing or (self.finished and self._looks >= LAST_LOOKS)

    @property
    def next_ms(self) -> int:
        """When the next line was written."""
        return self.buffer[0][1].at_ms

    def take(self) -> LogEntry:
        """Give the next line."""
        _, line = self.buffer.popleft()
        self.weight -= weigh(line.text)
        return LogEntry(line.at_ms, self.task, self.retry_id, line.text)

    def places(self, position: int, lines: Iterable[tuple[int, LogLine]]) -> list[LogPlace]:
        """Where these lines of a part are, by their numbers there."""
        found: list[LogPlace] = []
        for number, line in lines:
            self._latest_ms = max(self._latest_ms, line.at_ms)
            found.append(LogPlace(self._latest_ms, self.order, position, number))
        return found

    def go(self, position: int, skipped: int = 0, *, complete: bool = False) -> None:
        """Read on from a line after a position."""
        self.clear()
        self.position, self._skipped, self.complete = position, skipped, complete

    def clear(self) -> None:
        """Keep no lines."""
        self.buffer.clear()
        self.weight = 0

    def rewind(self) -> None:
        """Forget what was not given yet; it is read again."""
        if self.buffer:
            self.go(self.part_position, self.buffer[0][0])

    def add(self, part: LogPart, kept: int, *, only_errors: bool) -> bool:
        """Have the next lines of a part, as many as can be kept; whether there were any."""
        lines, skipped = part.lines, self._skipped
        before = self.weight
        if part.start != self.position:
            # What followed is kept no more, as the first line says; all the others are new.
            self.position, skipped = part.start, 0
            self._keep(0, lines[0])
            lines = lines[1:]
        self.part_position, end = self.position, skipped
        while end < len(lines) and self.weight - before < kept:
            if lines[end].error or not only_errors:
                self._keep(end, lines[end])
            end += 1
        if end < len(lines):
            self._skipped = end
        else:
            self._skipped = max(0, skipped - len(lines))
            self.position, self.complete = part.position, part.complete
        self.look(found=bool(part.lines))
        return bool(part.lines)

    def _keep(self, number: int, line: LogLine) -> None:
        self.buffer.append((number, line))
        self.weight += weigh(line.text)

    def look(self, *, found: bool) -> None:
        """Note that it was looked at, and whether something new was there."""
        self.dry = not found
        self._looks = self._looks + 1 if self.finished and not found else 0


def weigh(text: str) -> int:
    """How much memory a line takes, roughly."""
    return len(text) + LINE_WEIGHT
