"""Writing the log of an attempt, line by line with times: bounded on the disk and in memory.

A record is `<milliseconds> <o or e> <bytes of the line>`. Records are in segments, each named by
the offset at which it starts in everything ever written, so positions stay valid when the oldest
segments are dropped.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

#: Longer lines are split.
LINE_BYTES = 16_384
#: How many segments a log can have; the oldest is dropped as a whole.
SEGMENTS = 8
SEGMENT_BYTES_MIN = 65_536
OUT, ERROR = b"o", b"e"
_CONTINUES = 0b1000_0000


class LineCutter:
    """Splits the output of one stream into records."""

    def __init__(self, stream: bytes) -> None:
        self._stream = stream
        self._rest = b""

    def feed(self, chunk: bytes, now_ms: int) -> bytes:
        """The records of all lines that are complete now."""
        data = self._rest + chunk
        held = b""
        if b"\r" in data:
            if data.endswith(b"\r"):
                # It may be the first half of a line ending.
                data, held = data[:-1], b"\r"
            # A progress bar that overwrites its line writes a new line each time.
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        end = data.rfind(b"\n") + 1
        whole, rest = data[:end], data[end:]
        if len(rest) > LINE_BYTES:
            *pieces, rest = _pieces(rest)
            whole += b"".join(piece + b"\n" for piece in pieces)
        self._rest = rest + held
        return self._records(whole, now_ms)

    def finish(self, now_ms: int) -> bytes:
        """The record of a last line without a line ending."""
        rest, self._rest = self._rest.removesuffix(b"\r"), b""
        return self._records(rest + b"\n" if rest else b"", now_ms)

    def _records(self, whole: bytes, now_ms: int) -> bytes:
        """The records of complete lines."""
        if not whole:
            return b""
        if _has_long_line(whole):
            lines = whole[:-1].split(b"\n")
            whole = b"".join(piece + b"\n" for line in lines for piece in _pieces(line))
        stamp = b"%d %s " % (now_ms, self._stream)
        return stamp + whole[:-1].replace(b"\n", b"\n" + stamp) + b"\n"


class LogWriter:
    """Appends records, drops the oldest, and counts lost lines."""

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self._folder = folder
        self._limit = max(limit_bytes, SEGMENTS * SEGMENT_BYTES_MIN)
        self._segment_bytes = self._limit // SEGMENTS
        self._segments = find_segments(folder)
        self._descriptor: int | None = None
        self._size = 0
        #: Lines that could not be written, and that the log does not mention yet.
        self.lost_lines = 0
        self._reason = ""

    def write(self, records: bytes, now_ms: int) -> None:
        """Append records; errors of the disk only lose lines."""
        if self.lost_lines:
            self.tell_lost(now_ms)
        while records:
            part = records
            if len(part) > self._segment_bytes:
                part = records[: records.rindex(b"\n", 0, self._segment_bytes) + 1]
            records = records[len(part) :]
            self.lost_lines += part.count(b"\n") if self.lost_lines else self._append(part)

    def tell_lost(self, now_ms: int) -> None:
        """Write how many lines were lost, if any were and it can be written."""
        text = f"{now_ms} e {lost_text(self.lost_lines)} ({self._reason})\n"
        if self.lost_lines and self._append(text.encode()) == 0:
            self.lost_lines = 0

    def go_on(self) -> None:
        """Append to the last segment of an earlier writer, without what that wrote in part."""
        if not self._segments or self._descriptor is not None:
            return
        path = segment_path(self._folder, self._segments[-1])
        self._size = path.read_bytes().rfind(b"\n") + 1
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        os.ftruncate(self._descriptor, self._size)

    def close(self) -> None:
        """Close the log; from here on it survives a crash of the machine."""
        if self._descriptor is None:
            return
        with contextlib.suppress(OSError):
            for start in self._segments:
                _sync(segment_path(self._folder, start))
            _sync(self._folder)
        self._close_segment()

    def _close_segment(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _append(self, part: bytes) -> int:
        """Write as many records as possible; how many could not be written."""
        try:
            if self._descriptor is None or self._size + len(part) > self._segment_bytes:
                self._turn()
            written = 0 if self._descriptor is None else os.write(self._descriptor, part)
        except OSError as error:
            self._reason = error.strerror or str(error)
            return part.count(b"\n")
        whole = part.rfind(b"\n", 0, written) + 1
        self._size += whole
        if written < len(part):
            self._reason = "the disk is full"
            if self._descriptor is not None:
                # Readers ignore incomplete lines, so the partial one can be removed.
                os.ftruncate(self._descriptor, self._size)
        return part.count(b"\n", whole)

    def _turn(self) -> None:
        """Begin a new segment, and drop the oldest if there are too many."""
        start = self._segments[-1] + self._size if self._descriptor is not None else self._end()
        path = segment_path(self._folder, start)
        flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        self._close_segment()
        self._descriptor, self._size = descriptor, 0
        if not self._segments or self._segments[-1] != start:
            self._segments.append(start)
        while len(self._segments) > SEGMENTS:
            segment_path(self._folder, self._segments.pop(0)).unlink(missing_ok=True)

    def _end(self) -> int:
        if not self._segments:
            return 0
        last = self._segments[-1]
        return last + segment_path(self._folder, last).stat().st_size


def _sync(path: Path) -> None:
    """Bring a file or the names in a folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def find_segments(folder: Path) -> list[int]:
    """The offsets of all segments, in order."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return sorted(int(name[4:]) for name in names if name.startswith("log.") and name[4:].isdigit())


def segment_path(folder: Path, start: int) -> Path:
    """The file of a segment."""
    return folder / f"log.{start:016}"


def lost_text(lines: int) -> str:
    """The text in place of lost lines."""
    return f"[{lines} {'line was' if lines == 1 else 'lines were'} lost here]"


def _has_long_line(whole: bytes) -> bool:
    """Whether a line is too long; looks at few places, because there can be millions of lines."""
    start = 0
    while len(whole) - start > LINE_BYTES:
        end = whole.rfind(b"\n", start, start + LINE_BYTES + 1)
        if end < 0:
            return True
        start = end + 1
    return False


def _pieces(line: bytes) -> list[bytes]:
    """Split a line into short pieces, without splitting a character."""
    pieces: list[bytes] = []
    start = 0
    while len(line) - start > LINE_BYTES:
        end = start + LINE_BYTES
        while end > start + LINE_BYTES - 4 and line[end] & 0b1100_0000 == _CONTINUES:
            end -= 1
        pieces.append(line[start:end])
        start = end
    pieces.append(line[start:])
    return pieces
