"""Answers that are sent again as they are, for as long as nothing has changed.

A list that many watch is made once. A route says that its answer depends on the request, its user
and the database alone, apart from times that it shows (`keep_until_change`). The same request with
the same token then gets the same bytes, until any process commits anything, or a second has passed:
what is shown is never older than the question, and a token that was deleted ends at once.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from http import HTTPStatus
from typing import Any, NamedTuple, cast

from anyio import CapacityLimiter, Event, Lock, move_on_after, to_thread
from anyio.lowlevel import RunVar

from bough.control.people import access
from bough.control.site import Site
from bough.errors import BoughError, Unauthenticated
from bough.server.authenticator import Visit, read_bearer
from bough.server.client_versions import VERSION_HEADER
from bough.server.concurrency_limits import part_of
from bough.store.change_detection import Moment, Moments

#: What all answers that are kept have together, in bytes, and the largest that is.
ALL_BYTES = 32 << 20
LARGEST_BYTES = 4 << 20
#: The longest query of a request whose answer is kept, in bytes.
LONGEST_QUERY = 1 << 10
#: How long a request waits for a look at the database, in seconds; then it goes on without.
PATIENCE_S = 1.0
#: By these names in the scope of a request: the moment at which it came, alone and with the second,
#: and whether its answer can be kept.
_MOMENT = "bough.moment"
_STAMP = "bough.stamp"
_KEEP = "bough.keep"
_AUTHORIZATION = b"authorization"
_VERSION = VERSION_HEADER.encode()
_OF_BODIES = (b"content-length", b"transfer-encoding")

_Scope = Mapping[str, Any]
_Key = tuple[str, bytes, bytes, bytes]


class Answer(NamedTuple):
    """An answer as it was sent."""

    headers: list[tuple[bytes, bytes]]
    body: bytes
    user: str
    #: When the token ends.
    ends_ms: int


def keep_until_change(request: Visit) -> None:
    """Say of an answer that it depends on the request, its user, the database and times alone."""
    cast("dict[str, object]", request.scope)[_KEEP] = True


def moment_of(scope: _Scope) -> Moment | None:
    """The moment at which a request came; `None`: that is not known."""
    return scope.get(_MOMENT)


class KeptAnswers:
    """The answers of one server. For event loops, one after another."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._moments = site.store.moments
        #: The moment and the second that the answers are of.
        self._of = ("", 0)
        self._answers: dict[_Key, Answer] = {}
        self._bytes = 0

    async def look(self, scope: MutableMapping[str, Any]) -> Answer | None:
        """Note the moment at which a request comes; the answer to it, if it is kept."""
        if self._moments is None or _header(scope, _AUTHORIZATION) == b"":
            return None
        moment = await _look(self._moments)
        if moment is None:
            return None
        scope[_MOMENT] = moment
        now_ms = self._site.clock.now_ms()
        # Times show, and so does what the loop says of itself, so none lasts longer than a second.
        scope[_STAMP] = stamp = (moment.state, now_ms // 1_000)
        if stamp != self._of or (key := _key(scope)) is None:
            return None
        found = self._answers.get(key)
        return None if found is None or found.ends_ms <= now_ms else found

    def remember(
        self, scope: _Scope, status: int, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> None:
        """Keep an answer that was sent, if it can be."""
        moment, stamp = moment_of(scope), scope.get(_STAMP)
        if moment is None or stamp is None or status != HTTPStatus.OK or len(body) > LARGEST_BYTES:
            return
        if (key := _key(scope)) is None or (known := self._known(key, moment)) is None:
            return
        if stamp[1] < self._of[1]:
            # It took so long that there are later ones.
            return
        size = len(body) + sum(map(len, key)) + sum(len(name) + len(text) for name, text in headers)
        if stamp != self._of or self._bytes + size > part_of(ALL_BYTES):
            self._of, self._bytes = stamp, 0
            self._answers.clear()
        ends_ms, user = known
        self._answers[key] = Answer(headers, body, user, ends_ms)
        self._bytes += size

    def _known(self, key: _Key, moment: Moment) -> tuple[int, str] | None:
        """The end and the user of the token that a request came with."""
        try:
            secret = read_bearer(key[2].decode())
            found = None if secret is None else access.recall(self._site, secret, moment.access)
        except (Unauthenticated, UnicodeDecodeError):
            return None
        return None if found is None else (found[0], found[1].name)


def wants_keeping(scope: _Scope) -> bool:
    """Whether the answer to a request can be kept."""
    return _KEEP in scope


class _Look:
    """A look at the database, shared by all requests that came before it began."""

    def __init__(self) -> None:
        self.done = Event()
        self.found: Moment | None = None


class _Looks:
    """The looks of one event loop, one after another."""

    def __init__(self) -> None:
        self.next: _Look | None = None
        self.turn = Lock()
        self.thread = CapacityLimiter(1)


_LOOKS: RunVar[_Looks] = RunVar("looks at the database")


async def _look(moments: Moments) -> Moment | None:
    """The latest moment; `None`: the database does not answer."""
    if moments.at_once:
        return _now(moments)
    looks = _LOOKS.get(None)
    if looks is None:
        _LOOKS.set(looks := _Looks())
    look = looks.next
    if look is not None:
        await look.done.wait()
        return look.found
    look = looks.next = _Look()
    try:
        async with looks.turn:
            # It begins: requests from now on may know of later changes.
            looks.next = None
            # A connection that was cut off without a word may not answer for long.
            with move_on_after(PATIENCE_S):
                look.found = await to_thread.run_sync(
                    _now, moments, limiter=looks.thread, abandon_on_cancel=True
                )
    finally:
        if looks.next is look:
            looks.next = None
        look.done.set()
    return look.found


def _now(moments: Moments) -> Moment | None:
    try:
        return moments.now()
    except BoughError:
        # The request itself is told what is wrong.
        return None


def _key(scope: _Scope) -> _Key | None:
    """What the answer to a request depends on, beside the database; `None`: on more than that."""
    query = scope.get("query_string", b"")
    if scope["method"] != "GET" or len(query) > LONGEST_QUERY:
        return None
    if any(_header(scope, each) for each in _OF_BODIES):
        return None
    return (scope["path"], query, _header(scope, _AUTHORIZATION), _header(scope, _VERSION))


def _header(scope: _Scope, name: bytes) -> bytes:
    return next((value for each, value in scope["headers"] if each == name), b"")
