"""Follows a kind of objects for ever: lists it, then watches it, through all failures.

    follower = Follower(client, PODS, heard, namespace="bough", labels="bough.site=3f")
    follower.start()      # in a thread of its own, which calls `heard`
    ...
    follower.stop()

`heard` gets a `Relisted` first, and again whenever the apiserver no longer knows what came in
between: objects that are not in it are gone. Between two of them it gets each `WatchEvent` once and
in order. A watch that ends or breaks continues from the last version. One that falls silent does
not: an apiserver whose database was set back, as by a restored backup, knows nothing of a version
that it does not have yet, and says nothing until it has. Nor does one whose versions go back.
"""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from bough.errors import BoughError
from bough.kube.back_off import BackOff
from bough.kube.client import KubeClient
from bough.kube.connections import Stream
from bough.kube.decoding import WatchEvent, WatchEventKind
from bough.kube.failures import Gone, KubeNotFound, Silent
from bough.kube.objects import Kind

T = TypeVar("T")
logger = logging.getLogger(__name__)
#: How long a watch is requested to last; random, so that watches do not all end together.
WATCH_S = (240, 480)
#: How long the watch after a list waits for more urgent requests, and how often it looks.
YIELDS_S, LOOKS_EVERY_S = 10.0, 0.05
#: How long a watch is interrupted for more urgent requests: an apiserver knows the last minute.
PAUSES_S = 5.0
#: So many watches in a row that end within so long and without an event are as good as none.
MOST_EMPTY, EMPTY_S = 3, 5.0


class Relisted(NamedTuple, Generic[T]):
    """All existing objects; those that are not here are gone."""

    items: list[T]
    version: str


class Follower(Generic[T]):
    """Follows one kind of objects in a thread of its own."""

    def __init__(
        self,
        client: KubeClient,
        kind: Kind[T],
        heard: Callable[[Relisted[T] | WatchEvent[T]], object],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        back_off: BackOff | None = None,
    ) -> None:
        self._client = client
        self._kind = kind
        self._heard = heard
        self._selected = {"namespace": namespace, "labels": labels, "fields": fields}
        self._back_off = back_off or BackOff()
        self._busy: Callable[[], bool] = lambda: False
        self._begins: Callable[[], bool] = lambda: False
        self._lasts: Callable[[], bool] = lambda: False
        #: Whether it has been interrupted for what lasts.
        self._paused = False
        self._stopping = threading.Event()
        self._listed = threading.Event()
        self._lock = threading.Lock()
        self._stream: Stream | None = None
        self._version = ""
        #: How many watches in a row have ended at once, without an event.
        self._empty = 0
        #: Why it makes no progress at the moment; empty if it does.
        self.failure = ""
        #: Whether the cluster turned out not to know the kind.
        self._absent = False
        self._thread = threading.Thread(target=self._run, name=f"kube-{kind.plural}", daemon=True)

    def yield_to(self, busy: Callable[[], bool]) -> None:
        """Open the watch after a list later, while `busy` says that something is more urgent.

        It misses nothing by that, as it starts at the version of the list.
        """
        self._busy = busy

    def pause_while(self, begins: Callable[[], bool], lasts: Callable[[], bool]) -> None:
        """Interrupt the watch once `begins` says that something is more urgent, while that `lasts`.

        For `PAUSES_S` at most, and once each time. It misses nothing, as it continues from the last
        version: the apiserver then sends at once what it would have sent piece by piece.
        """
        self._begins, self._lasts = begins, lasts

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, patience_s: float = 30.0) -> None:
        """Stop: once this returns, `heard` is not called any more."""
        self._stopping.set()
        with self._lock:
            if self._stream is not None:
                self._stream.close()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(patience_s)

    @property
    def is_alive(self) -> bool:
        """Whether its thread is running."""
        return self._thread.is_alive()

    def wait_until_listed(self, timeout_s: float | None = None) -> bool:
        """Wait for the first list; return whether it came."""
        return self._listed.wait(timeout_s)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._follow_if_there()
            except Gone as gone:
                logger.info("%s: listing again: %s", self._kind.plural, gone.message)
                self._version = ""
                # Not a failure; but wait, in case the apiserver answers every watch like this.
                self._stopping.wait(self._back_off.wait_s())
            except Silent as silent:
                self._version = ""
                self._wait_after(f"{silent.message}; listing again")
            except BoughError as error:
                self._wait_after(error.message)
            except Exception:
                # `heard` raised and so missed an event: list again, which gives it everything.
                logger.exception("%s: an event could not be processed", self._kind.plural)
                self._version = ""
                self._wait_after("what happened could not be taken in")

    def _follow_if_there(self) -> None:
        try:
            self._follow()
        except KubeNotFound as absent:
            self._be_without(absent.message)

    def _be_without(self, message: str) -> None:
        """The apiserver does not know the kind, or no longer does."""
        self._version = ""
        if not self._kind.optional:
            self._wait_after(message)
        elif not self._stopping.is_set():
            if not self._absent:
                logger.info("%s: the cluster has no %s", self._kind.plural, self._kind.api)
            self._absent, self.failure = True, ""
            self._heard(Relisted([], ""))
            self._listed.set()
            self._stopping.wait(self._back_off.wait_s())

    def _wait_after(self, message: str) -> None:
        if self._stopping.is_set():
            return
        if message != self.failure:
            logger.warning("%s: %s", self._kind.plural, message)
        self.failure = message
        self._stopping.wait(self._back_off.wait_s())

    def _follow(self) -> None:
        """List if the last version is unknown, then watch until the watch ends."""
        if not self._version:
            listing = self._client.list(self._kind, **self._selected)
            if self._stopping.is_set():
                return
            self._heard(Relisted(listing.items, listing.version))
            self._version = listing.version
            self._absent = False
            self._listed.set()
            self._wait_while(self._busy, YIELDS_S)
        watched_s = random.randint(*WATCH_S)  # noqa: S311
        events = self._client.watch(
            self._kind, self._version, **self._selected, timeout_s=watched_s, opened=self._opened
        )
        told, began_s = False, time.monotonic()
        with contextlib.closing(events):
            for event in events:
                if self._stopping.is_set():
                    return
                if event.kind is not WatchEventKind.BOOKMARK:
                    self._heard(event)
                elif _is_before(event.version, self._version):
                    raise Gone(f"versions went back from {self._version} to {event.version}")
                self._version = event.version
                self._back_off.reset()
                told = True
                if self._gives_way():
                    break
        self._count_empty(is_empty=not told and time.monotonic() - began_s < EMPTY_S)
        if self._gives_way():
            self._paused = True
            self._wait_while(self._lasts, PAUSES_S)
        elif not told and not self._stopping.is_set():
            # It ended without any event: wait, so as not to ask again in a tight loop.
            self._stopping.wait(self._back_off.wait_s())

    def _count_empty(self, *, is_empty: bool) -> None:
        """Fail after several watches that ended at once: nothing would be heard, nor said."""
        self._empty = self._empty + 1 if is_empty else 0
        if self._empty >= MOST_EMPTY and not self._stopping.is_set():
            self._empty = 0
            raise Silent("watches end at once")

    def _gives_way(self) -> bool:
        """Whether to interrupt the watch now."""
        if self._paused:
            self._paused = self._lasts()
        return not self._paused and self._begins()

    def _wait_while(self, lasts: Callable[[], bool], at_most_s: float) -> None:
        """Let more urgent requests go first."""
        until_s = time.monotonic() + at_most_s
        while lasts() and time.monotonic() < until_s:
            if self._stopping.wait(LOOKS_EVERY_S):
                return

    def _say_that_it_goes_on(self) -> None:
        if self.failure:
            logger.warning("%s: goes on", self._kind.plural)
            self.failure = ""

    def _opened(self, stream: Stream) -> None:
        self._say_that_it_goes_on()
        with self._lock:
            self._stream = stream
            if self._stopping.is_set():
                stream.close()


def _is_before(version: str, other: str) -> bool:
    """Whether a version is lower than another; versions that are no numbers cannot be compared."""
    return version.isdecimal() and other.isdecimal() and int(version) < int(other)
