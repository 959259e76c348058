"""Whether an open stream is still allowed: checked when rights change, and every few seconds.

A token can be deleted or expire, a role taken, a pool renamed while a stream is open; then it gets
what a new request would get. All streams together look for changes a few times a second.
"""

from __future__ import annotations

import threading
from time import monotonic

from bough.control.people.access import access_version
from bough.control.site import Site
from bough.model.access import Actor
from bough.server.authenticator import Connection
from bough.server.permissions import admit

#: After so long a stream is checked again, whether or not rights have changed.
ASK_AGAIN_S = 5.0
#: How often to look for changes, for all streams together.
LOOK_S = 0.2


class AccessVersion:
    """The number of changes of rights so far: one query for all streams."""

    def __init__(self, site: Site, look_s: float = LOOK_S) -> None:
        self._site = site
        self._look_s = look_s
        self._lock = threading.Lock()
        self._looked_s: float | None = None
        self._latest = 0

    def latest(self) -> int:
        """Another number after every change, a moment later at most."""
        with self._lock:
            now_s = monotonic()
            if self._looked_s is None or now_s - self._looked_s >= self._look_s:
                self._latest = access_version(self._site)
                self._looked_s = now_s
            return self._latest


class StreamAccess:
    """The right to one stream. For one thread at a time."""

    def __init__(self, request: Connection) -> None:
        self._request = request
        self._version: AccessVersion = request.app.state.access_version
        self._seen: int | None = None
        self._asked_s = 0.0

    def check(self) -> Actor:
        """The user as of now; raises what a new request would be refused with."""
        latest, now_s = self._version.latest(), monotonic()
        if latest != self._seen or now_s - self._asked_s >= ASK_AGAIN_S:
            admit(self._request, self._request.route_handler)
            self._seen, self._asked_s = latest, now_s
        return self._request.user
