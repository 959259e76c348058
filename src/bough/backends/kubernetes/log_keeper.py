"""Which logs are followed: those of running pods, and each once more when its pod has ended."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from bough.backends.kubernetes.log_folders import LogFolders
from bough.backends.kubernetes.log_follower import LogReading, LogSink
from bough.backends.kubernetes.work_queue import WorkQueue
from bough.kube.back_off import BackOff
from bough.kube.client import KubeClient
from bough.kube.failures import KubeFailure

LOG = logging.getLogger(__name__)
#: How many logs are followed at the same time; the others are read now and then.
MOST_STREAMS = 200
_POLL_S = 10.0
_WORKERS = 4
#: How long a log waits for more urgent work, and how often it checks for that.
_PATIENT_S, _YIELD_S = 15.0, 1.0
#: How long a stream may take to end after its container.
_END_S = 10.0
#: How long to try to read the rest of a log after its pod has ended.
_PATIENCE_S = 60.0


@dataclass
class _Followed:
    """The log of one attempt."""

    reading: LogReading
    folder: Path
    thread: threading.Thread | None = None
    #: When its pod ended; `None` while it runs.
    over_at: float | None = None
    #: From this time on it is read, even if other work is more urgent.
    urgent_at: float = field(default_factory=lambda: monotonic() + _PATIENT_S)
    back_off: BackOff = field(default_factory=lambda: BackOff(0.5, 10.0))


class LogKeeper:
    """Reads the logs of pods into files. Any thread can call it."""

    def __init__(
        self,
        client: KubeClient,
        folders: LogFolders,
        limit_bytes: int,
        now_ms: Callable[[], int],
        done: Callable[[str], None],
        busy: Callable[[], bool] = lambda: False,
    ) -> None:
        """Both functions are called from any thread.

        done:  called for each attempt whose log is complete
        busy:  whether there is more urgent work
        """
        self._client = client
        self._folders = folders
        self._limit_bytes = limit_bytes
        self._now_ms = now_ms
        self._done = done
        self._busy = busy
        self._lock = threading.Lock()
        self._followed: dict[str, _Followed] = {}
        self._streams = 0
        self._closed = threading.Event()
        self._queue = WorkQueue(self._work, _WORKERS, "kube-logs")

    def start(self) -> None:
        """Start the threads."""
        self._queue.start()

    def close(self) -> None:
        """Stop; another server can continue where this one was."""
        self._closed.set()
        with self._lock:
            followed = list(self._followed.values())
        for each in followed:
            each.reading.close()
        self._queue.close()

    def follow(self, attempt: str, namespace: str, pod: str, container: str) -> None:
        """Follow the log of an attempt whose container runs."""
        with self._lock:
            if attempt in self._followed or self._folders.is_whole(attempt):
                return
            self._add(attempt, namespace, pod, container)
        self._queue.note(attempt)

    def finish(self, attempt: str, namespace: str, pod: str, container: str) -> None:
        """The pod of an attempt has ended: read the rest of its log."""
        if self._folders.is_whole(attempt):
            self._done(attempt)
            return
        with self._lock:
            known = self._followed.get(attempt) or self._add(attempt, namespace, pod, container)
            known.over_at = known.over_at or monotonic()
        self._queue.note(attempt)

    def _add(self, attempt: str, namespace: str, pod: str, container: str) -> _Followed:
        reading = LogReading(self._client, namespace, pod, container)
        known = self._followed[attempt] = _Followed(reading, self._folders.of(attempt))
        return known

    def _work(self, attempt: str) -> float | None:
        with self._lock:
            known = self._followed.get(attempt)
            if known is None or self._closed.is_set():
                return None
            if monotonic() < known.urgent_at and self._busy():
                return _YIELD_S
            if known.thread is not None:
                return self._await_stream(known)
            if known.over_at is None and self._streams < MOST_STREAMS:
                self._streams += 1
                name = f"kube-log-{attempt[:8]}"
                known.thread = threading.Thread(
                    target=self._stream, args=(attempt, known), name=name, daemon=True
                )
                known.thread.start()
                return None
        return self._read(attempt, known)

    def _await_stream(self, known: _Followed) -> float | None:
        if known.over_at is None:
            return None
        if monotonic() - known.over_at > _END_S:
            known.reading.close()
        return 0.2

    def _stream(self, attempt: str, known: _Followed) -> None:
        """Follow a log until its pod has ended, through all failures."""
        try:
            while not self._closed.is_set():
                try:
                    known.reading.read(self._sink(known), follow=True)
                except KubeFailure as error:
                    LOG.info("the log of %s broke off: %s", attempt, error.message)
                except OSError as error:
                    LOG.warning("the log of %s cannot be written: %s", attempt, error)
                if known.over_at is not None or attempt not in self._followed:
                    break
                self._closed.wait(known.back_off.wait_s())
        finally:
            with self._lock:
                self._streams -= 1
                known.thread = None
            self._queue.note(attempt)

    def _read(self, attempt: str, known: _Followed) -> float | None:
        """Read what there is now; after the end of the pod, everything."""
        over_at = known.over_at
        try:
            known.reading.read(self._sink(known), follow=False)
        except (KubeFailure, OSError) as error:
            if over_at is None or monotonic() - over_at < _PATIENCE_S:
                return known.back_off.wait_s()
            sink = self._sink(known)
            sink.say(f"[the rest of the log could not be read: {error}]", self._now_ms())
            sink.close()
        if over_at is None:
            return _POLL_S
        with self._lock:
            self._followed.pop(attempt, None)
        self._folders.finish(attempt)
        self._done(attempt)
        return None

    def _sink(self, known: _Followed) -> LogSink:
        return LogSink(known.folder, self._limit_bytes)
