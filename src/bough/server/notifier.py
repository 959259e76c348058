"""The thread that notifies users of what happened to their workflows."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from bough.control.records import notifications
from bough.control.site import Site
from bough.model.notification import Sender

LOG = logging.getLogger(__name__)

TICK_S = 1.0
STOP_S = 5.0


class Notifier:
    """Collects and sends in a thread of its own: no request and no cycle waits for it."""

    def __init__(self, site: Site, sender: Sender) -> None:
        self._site = site
        self._sender = sender
        self._stop = threading.Event()
        self._failed = False
        self._thread = threading.Thread(target=self._run, name="notifier", daemon=True)

    def start(self) -> None:
        """Start, if anything may be sent, with events from now on."""
        if self._site.notifications.anything:
            self._collect()
            self._thread.start()

    def stop(self) -> None:
        """Stop; unsent notifications stay stored."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(STOP_S)

    def _run(self) -> None:
        while not self._stop.wait(TICK_S):
            if self._collect():
                self._deliver()

    def _collect(self) -> bool:
        """Collect; returns whether that worked."""
        return self._try(lambda: notifications.collect(self._site))

    def _deliver(self) -> None:
        self._try(lambda: notifications.deliver(self._site, self._sender))

    def _try(self, step: Callable[[], object]) -> bool:
        try:
            step()
        except Exception:
            if not self._failed:
                LOG.exception("notifications failed, and are tried again")
            self._failed = True
            return False
        self._failed = False
        return True
