"""Reads the log of a pod into a file, and can continue without gaps or duplicates.

The apiserver can only start at a whole second. Lines of the last second that are already in the
file are recognised by their time and text, and skipped.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from bough.backends.logs.log_writer import OUT, LineCutter, LogWriter, find_segments, segment_path
from bough.kube.client import KubeClient
from bough.kube.connections import Stream
from bough.kube.failures import KubeNotFound, KubeRefused

#: How much of the last segments is searched for the last record.
_TAIL_BYTES = 1 << 20
_TIME = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) ")


class LogSink:
    """The file of one attempt's log."""

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._writer = LogWriter(folder, limit_bytes)
        self._writer.go_on()
        tail = read_tail(folder)
        last_ms = _record_ms(tail[-1]) if tail else 0
        #: The second of the last record; 0 if there is none.
        self.since_s = last_ms // 1_000
        self._last_ms = last_ms
        self._known = deque(each for each in tail if _record_ms(each) >= self.since_s * 1_000)

    def add(self, line: bytes) -> None:
        """Write a line with its time, unless it is in the file already."""
        at_ms, text = read_line(line)
        self._last_ms = at_ms or self._last_ms
        new = b"".join(filter(self._is_new, _records(text, self._last_ms)))
        if new:
            self._writer.write(new, self._last_ms)

    def say(self, text: str, at_ms: int) -> None:
        """Write a message from the server itself."""
        self._writer.write(b"%d e %s\n" % (at_ms, text.encode()), at_ms)

    def close(self) -> None:
        """Flush the file to the disk."""
        self._writer.close()

    def _is_new(self, record: bytes) -> bool:
        """Whether a record is not in the file yet."""
        while self._known:
            if self._known.popleft() == record:
                return False
            # The node has already deleted this known line, so it does not come again.
        return True


class LogReading:
    """Reads one pod's log into its file, as often as needed."""

    def __init__(self, client: KubeClient, namespace: str, pod: str, container: str) -> None:
        self._client = client
        self._namespace = namespace
        self._pod = pod
        self._container = container
        self._lock = threading.Lock()
        self._stream: Stream | None = None
        self._closed = False

    def read(self, file: LogSink, *, follow: bool) -> bool:
        """Read what there is, or follow the log to its end; return whether there is a log at all.

        Raises on a failure; what was read until then is kept.
        """
        since = _written(file.since_s) if file.since_s else ""
        try:
            lines = self._client.log(
                self._pod,
                self._namespace,
                self._container,
                follow=follow,
                since_time=since,
                opened=self._open,
            )
            with closing(lines):
                for line in lines:
                    # A line without its line break may have been cut off, and will come again.
                    if line.endswith(b"\n") or not follow:
                        file.add(line)
        except KubeNotFound:
            return False
        except KubeRefused as error:
            # The container has never run.
            if error.status == 400:
                return False
            raise
        finally:
            file.close()
        return True

    def close(self) -> None:
        """Stop reading, from another thread."""
        with self._lock:
            self._closed = True
            if self._stream is not None:
                self._stream.close()

    def _open(self, stream: Stream) -> None:
        with self._lock:
            self._stream = stream
            if self._closed:
                stream.close()


def read_line(line: bytes) -> tuple[int, bytes]:
    """When a line was written, in milliseconds (0 if it does not say), and its text."""
    found = _TIME.match(line)
    if found is None:
        return 0, line
    second, fraction, zone = found.groups()
    moment = datetime.fromisoformat((second + zone.replace(b"Z", b"+00:00")).decode())
    millis = int((fraction or b"0").ljust(9, b"0")[:3])
    return int(moment.timestamp()) * 1_000 + millis, line[found.end() :]


def read_tail(folder: Path) -> list[bytes]:
    """The last records of a log on disk."""
    content = b""
    for start in reversed(find_segments(folder)):
        content = segment_path(folder, start).read_bytes() + content
        if len(content) >= _TAIL_BYTES:
            break
    whole = content[: content.rfind(b"\n") + 1]
    records = whole[-_TAIL_BYTES:].split(b"\n")[:-1]
    return [each + b"\n" for each in (records[1:] if len(whole) > _TAIL_BYTES else records)]


def _records(text: bytes, at_ms: int) -> list[bytes]:
    cutter = LineCutter(OUT)
    written = cutter.feed(text, at_ms) + cutter.finish(at_ms)
    return [each + b"\n" for each in written.split(b"\n")[:-1]]


def _record_ms(record: bytes) -> int:
    time = record.partition(b" ")[0]
    return int(time) if time.isdigit() else 0


def _written(second: int) -> str:
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%SZ}"
