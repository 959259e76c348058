"""A backend whose tasks write what a test says. It keeps positions as a file would."""

from __future__ import annotations

from bough.backends.virtual import VirtualBackend
from bough.model.backend import LogLine, LogPart


class WritingBackend(VirtualBackend):
    """Runs nothing, like the virtual one; but something is kept of what tasks write."""

    #: How many lines are read at once.
    part = 3

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.written: dict[str, list[LogLine]] = {}
        self.whole: set[str] = set()
        self.reads = 0

    def write(self, attempt: str, at_ms: int, text: str, *, error: bool = False) -> None:
        self.written.setdefault(attempt, []).append(LogLine(at_ms, text, error))

    def read_log(self, attempt, position=0, *, last_lines=None, limit_bytes=None):
        del limit_bytes
        self.reads += 1
        lines = self.written.get(attempt)
        if lines is None:
            return None
        if last_lines is not None:
            position = max(0, len(lines) - last_lines)
            found = tuple(lines[position:])
        else:
            found = tuple(lines[position : position + self.part])
        end = position + len(found)
        return LogPart(found, end, end == len(lines) and attempt in self.whole, position)
