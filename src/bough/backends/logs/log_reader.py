"""Reading the log of an attempt in parts that fit into memory, as text that is safe to print."""

from __future__ import annotations

import os
import re
from pathlib import Path

from bough.backends.logs.log_writer import (
    LINE_BYTES,
    find_segments,
    lost_text,
    segment_path,
)
from bough.model.backend import LogLine, LogPart

#: The largest part, in bytes on the disk.
PART_BYTES = 256 * 1024
#: The smallest, in which the longest record fits with its time.
LEAST_PART_BYTES = 2 * LINE_BYTES
#: How much of the end is searched for the last lines.
LAST_BYTES = 1024 * 1024
_HARMLESS = "\N{REPLACEMENT CHARACTER}"
#: Sequences that move a terminal's cursor, colour its text or set its title.
_SEQUENCES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
#: Control characters but for the tab and the end of a record; what breaks a line, or its direction.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class AttemptLogReader:
    """The log of one attempt as it is now."""

    def __init__(self, folder: Path, *, finished: bool, lost_lines: int = 0) -> None:
        self._folder = folder
        #: Nothing more will be written; read before the segments are listed.
        self._finished = finished
        self._lost_lines = lost_lines
        self._segments = find_segments(folder)

    def read(self, position: int, limit: int = PART_BYTES) -> LogPart:
        """The part from a position on."""
        lines: list[LogLine] = []
        position = max(0, position)
        if self._segments and position < self._segments[0]:
            dropped = self._segments[0] - position
            text = f"[{dropped} bytes of the log were dropped: only the newest are kept]"
            first = self._first_time()
            lines.append(LogLine(first, text, error=True))
            position = self._segments[0]
        start = position
        limit = max(LEAST_PART_BYTES, min(limit, PART_BYTES))
        content, position = self._content(position, limit)
        lines += parse(content)
        return self._part(lines, start, position)

    def read_last(self, count: int) -> LogPart:
        """The last lines, as many as requested and as fit."""
        end = self._end()
        start = max(self._segments[0] if self._segments else 0, end - LAST_BYTES)
        content = b""
        while start < end:
            more, start = self._content(start, LAST_BYTES)
            if not more:
                break
            content += more
        records = content.split(b"\n")[:-1]
        kept = records[len(records) - count :] if 0 < count < len(records) else records
        text = b"\n".join(kept) + b"\n" if kept and count > 0 else b""
        position = start if content else max(start, end)
        return self._part(parse(text), position - len(text), position)

    def _part(self, lines: list[LogLine], start: int, position: int) -> LogPart:
        end = self._end()
        complete = self._finished and position >= end
        if complete and self._lost_lines:
            # Lost lines are mentioned once, after everything else.
            if position <= end:
                at_ms = lines[-1].at_ms if lines else self._last_time()
                lines.append(LogLine(at_ms, lost_text(self._lost_lines), error=True))
            position = end + 1
        return LogPart(tuple(lines), position, complete, start)

    def _content(self, position: int, limit: int) -> tuple[bytes, int]:
        """Complete records from a position on, and where the next one starts."""
        starts = [each for each in self._segments if each <= position]
        if not starts:
            return b"", position
        for start in self._segments[len(starts) - 1 :]:
            offset = max(0, position - start)
            try:
                content = _read(segment_path(self._folder, start), offset, limit)
            except FileNotFoundError:
                # It was dropped a moment ago.
                continue
            skipped = 0
            if offset and content[:1] != b"\n":
                # A position inside a record means the next one.
                skipped = content.find(b"\n") + 1 or len(content)
            elif offset:
                skipped = 1
            end = content.rfind(b"\n") + 1
            if end > skipped:
                return content[skipped:end], start + max(0, offset - 1) + end
        return b"", position

    def _end(self) -> int:
        for start in reversed(self._segments):
            try:
                return start + segment_path(self._folder, start).stat().st_size
            except FileNotFoundError:
                continue
        return 0

    def _first_time(self) -> int:
        content, _ = self._content(self._segments[0], PART_BYTES)
        return _time(content)

    def _last_time(self) -> int:
        content, _ = self._content(max(0, self._end() - PART_BYTES), PART_BYTES)
        return _time(content[content.rfind(b"\n", 0, -1) + 1 :])


def parse(content: bytes) -> list[LogLine]:
    """The lines of complete records."""
    text = content.decode(errors="replace")
    if "\x1b" in text:
        text = _SEQUENCES.sub("", text)
    text = _CONTROL.sub(_HARMLESS, text)
    lines: list[LogLine] = []
    for record in text.split("\n")[:-1]:
        time, _, rest = record.partition(" ")
        if time.isdigit() and rest[1:2] == " ":
            lines.append(LogLine(int(time), rest[2:], rest[0] == "e"))
    return lines


def _time(content: bytes) -> int:
    time = content.partition(b" ")[0]
    return int(time) if time.isdigit() else 0


def _read(path: Path, offset: int, limit: int) -> bytes:
    """Read from one byte before the offset, which shows whether a record starts there."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(descriptor, limit, max(0, offset - 1))
    finally:
        os.close(descriptor)
