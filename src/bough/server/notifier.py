"""The threads that notify users of what happened to their workflows."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from time import monotonic

from bough.control.records import notifications
from bough.control.site import Site
from bough.model.notification import Receiver, Sender

LOG = logging.getLogger(__name__)

TICK_S = 1.0
STOP_S = 5.0
#: How many receivers are sent to at a time, so that a slow one holds up no other.
AT_ONCE = 8


class Notifier:
    """Collects in a thread of its own, and sends in others: no request and no cycle waits."""

    def __init__(self, site: Site, sender: Sender) -> None:
        self._site = site
        self._sender = sender
        self._stop = threading.Event()
        self._failed = False
        #: The receivers that are sent to now; used by the collecting thread only.
        self._sending: dict[Receiver, threading.Thread] = {}
        self._thread = threading.Thread(target=self._run, name="notifier", daemon=True)

    def start(self) -> None:
        """Start, if anything may be sent, with events from now on."""
        if self._site.notifications.anything:
            self._collect()
            self._thread.start()

    def stop(self) -> None:
        """Stop; unsent notifications stay stored."""
        self._stop.set()
        until_s = monotonic() + STOP_S
        if self._thread.is_alive():
            self._thread.join(STOP_S)
        for each in list(self._sending.values()):
            each.join(max(0.0, until_s - monotonic()))

    def _run(self) -> None:
        while not self._stop.wait(TICK_S):
            if self._collect():
                self._try(self._deliver)

    def _collect(self) -> bool:
        """Collect; returns whether that worked."""
        return self._try(lambda: notifications.collect(self._site))

    def _deliver(self) -> None:
        """Start a thread for each receiver with due notifications that has none yet."""
        self._sending = {who: each for who, each in self._sending.items() if each.is_alive()}
        for receiver in notifications.receivers(self._site):
            if len(self._sending) >= AT_ONCE:
                return
            if receiver not in self._sending:
                thread = threading.Thread(
                    target=self._send, args=(receiver,), name="sender", daemon=True
                )
                self._sending[receiver] = thread
                thread.start()

    def _send(self, receiver: Receiver) -> None:
        self._try(lambda: notifications.deliver(self._site, self._sender, receiver))

    def _try(self, step: Callable[[], object]) -> bool:
        try:
            step()
        except Exception:
            if not self._failed:
                LOG.exception("notifications failed, retrying")
            self._failed = True
            return False
        self._failed = False
        return True
