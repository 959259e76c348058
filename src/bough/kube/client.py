"""The calls to the Kubernetes API that Bough makes; each is one request, from any thread.

    client = KubeClient(find_access(kubeconfig=None, context=None))
    client.create(PODS, {"metadata": {"name": "a"}, "spec": {...}}, namespace="bough")
    listing = client.list(PODS, namespace="bough", labels="bough.site=3f")
    for event in client.watch(PODS, listing.version, namespace="bough"):
        ...

If the apiserver refuses a request, `failures.KubeRefused` is raised (KubeNotFound, AlreadyExists,
KubeConflict, Gone, Busy); if no answer came, `failures.Unreachable`. To follow a kind for ever,
through all failures, use `watching.Follower`.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Generator, Iterator, Mapping
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from bough.kube.access import Access
from bough.kube.connections import Connections, Guard, Request, Stream
from bough.kube.failures import Gone, KubeFailure, Unreachable, read_refusal
from bough.kube.objects import Kind

T = TypeVar("T")

#: How many objects one page of a list has.
PAGE = 500
#: How long a watch may be silent: the apiserver sends a bookmark at least once a minute.
WATCH_SILENCE_S = 100.0
#: A task may print nothing for long; TCP keepalive notices if its machine is gone.
LOG_SILENCE_S = 3_600.0
logger = logging.getLogger(__name__)
#: The longest line of a watch; etcd stores objects of at most 1.5 MiB.
MAXIMUM_LINE = 32 << 20
MEBIBYTE = 1 << 20
#: How much longer than the apiserver's own limit we wait for an answer.
ANSWER_S = 2


class Patch(StrEnum):
    """The format of a patch."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    JSON = "application/json-patch+json"
    #: All fields that one manager wants; a missing object is created. Needs `manager`.
    APPLY = "application/apply-patch+yaml"


class WatchEventKind(StrEnum):
    """What happened to a watched object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    #: No change; everything up to `version` has been reported.
    BOOKMARK = "BOOKMARK"


class WatchEvent(NamedTuple, Generic[T]):
    """One event; the object of a bookmark has only a version."""

    kind: WatchEventKind
    object: T
    #: The version from which to continue a watch.
    version: str


class Listing(NamedTuple, Generic[T]):
    """All objects of a kind at one point in time."""

    items: list[T]
    #: The version from which to start a watch.
    version: str


class KubeClient:
    """One apiserver, as one user. At most `in_flight` parallel requests, not counting streams."""

    def __init__(
        self, access: Access, in_flight: int = 16, timeout_s: float = 30.0, guard: Guard = None
    ) -> None:
        """guard:  called right before a write is sent; it raises to prevent that."""
        self.access = access
        self._connections = Connections(access, in_flight, timeout_s, guard=guard)

    def close(self) -> None:
        """Close idle connections; streams have their own `close`."""
        self._connections.close()

    def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        """One object; raises `KubeNotFound` if it does not exist."""
        return self._object(kind, Request("GET", path(kind, namespace, name)))

    def list(
        self, kind: Kind[T], namespace: str = "", labels: str = "", fields: str = ""
    ) -> Listing[T]:
        """All objects of one namespace or, if none is given, of all; read page by page.

        `labels` and `fields` are selectors: `bough.site=3f,!done`, `spec.nodeName=a`.
        """
        asked = {"labelSelector": labels, "fieldSelector": fields}
        items: list[T] = []
        token, page = "", PAGE
        while True:
            query = {**asked, "limit": str(page) if page else "", "continue": token}
            request = Request("GET", path(kind, namespace) + _query(query))
            try:
                listed = _read_page(kind, self._connections.ask(request))
            except Gone:
                # The snapshot behind the first pages has expired: read everything in one request.
                if not token:
                    raise
                items, token, page = [], "", 0
                continue
            items += listed.items or []
            token = listed.metadata.continue_
            if not token:
                return Listing(items, listed.metadata.resource_version)

    def watch(
        self,
        kind: Kind[T],
        version: str,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        timeout_s: int = 300,
        opened: Callable[[Stream], object] | None = None,
    ) -> Generator[WatchEvent[T]]:
        """Yield what happens after `version`, until the apiserver stops (after about `timeout_s`).

        Raises `Gone` if that version is too old, possibly in the middle. `opened` gets the stream,
        whose `close` ends the watch from another thread.
        """
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "labelSelector": labels,
            "fieldSelector": fields,
            "timeoutSeconds": str(timeout_s),
        }
        request = Request("GET", path(kind, namespace) + _query(query))
        stream = self._connections.open_stream(request, WATCH_SILENCE_S)
        try:
            if opened is not None:
                opened(stream)
            for line in _lines(stream):
                event = _read_event(line, kind)
                if event is not None:
                    yield event
        finally:
            stream.release()

    def create(self, kind: Kind[T], body: object, namespace: str = "") -> T:
        """Create an object from a dictionary or a struct; `AlreadyExists` if its name is taken."""
        request = Request("POST", path(kind, namespace), msgspec.json.encode(body))
        return self._object(kind, request)

    def replace(
        self, kind: Kind[T], name: str, body: object, namespace: str = "", below: str = ""
    ) -> T:
        """Replace an object; `KubeConflict` if the body has an outdated `resourceVersion`."""
        target = path(kind, namespace, name, below)
        return self._object(kind, Request("PUT", target, msgspec.json.encode(body)))

    def patch(
        self,
        kind: Kind[T],
        name: str,
        body: object,
        namespace: str = "",
        how: Patch = Patch.MERGE,
        below: str = "",
        manager: str = "",
    ) -> T:
        """Change an object; `below` is a subresource such as `status`."""
        query = {"fieldManager": manager, "force": "true" if how is Patch.APPLY else ""}
        target = path(kind, namespace, name, below) + _query(query)
        return self._object(kind, Request("PATCH", target, msgspec.json.encode(body), how))

    def delete(
        self,
        kind: Kind[T],
        name: str,
        namespace: str = "",
        uid: str = "",
        grace_s: int | None = None,
    ) -> None:
        """Delete an object; with a `uid`, only that one: `KubeConflict` if another has its name.

        `grace_s` is the time that a pod gets to end; 0 removes it at once, without waiting for its
        node.
        """
        options = _delete_options(uid, grace_s)
        target = path(kind, namespace, name)
        self._connections.ask(Request("DELETE", target, msgspec.json.encode(options)))

    def bind(self, name: str, namespace: str, node: str, uid: str = "", within_s: int = 0) -> None:
        """Bind a pod to a node; `KubeConflict` if it is bound, or another pod has its name now.

        `within_s`: the apiserver gives up after this time, so that nothing happens later.
        """
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, **({"uid": uid} if uid else {})},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        target = f"{_pod(namespace, name)}/binding" + _within(within_s)
        request = Request("POST", target, msgspec.json.encode(body))
        self._connections.ask(request, within_s + ANSWER_S if within_s else None)

    def evict(
        self,
        name: str,
        namespace: str,
        uid: str = "",
        grace_s: int | None = None,
        within_s: int = 0,
    ) -> None:
        """Evict a pod if its disruption budgets allow it; otherwise raise `Busy`.

        `within_s` as for `bind`.
        """
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name},
            "deleteOptions": _delete_options(uid, grace_s),
        }
        target = f"{_pod(namespace, name)}/eviction" + _within(within_s)
        request = Request("POST", target, msgspec.json.encode(body), busy_is_answer=True)
        self._connections.ask(request, within_s + ANSWER_S if within_s else None)

    def log(
        self,
        name: str,
        namespace: str,
        container: str = "",
        *,
        follow: bool = False,
        since_time: str = "",
        limit_bytes: int = 0,
        opened: Callable[[Stream], object] | None = None,
    ) -> Generator[bytes]:
        """The lines that a container wrote, each with its time in front and a line break after it.

        The last line may lack its line break. The apiserver rounds `since_time` (RFC 3339) to whole
        seconds, so lines that were read before come again, and the caller must skip them.
        """
        query = {
            "container": container,
            "timestamps": "true",
            "follow": "true" if follow else "",
            "sinceTime": since_time,
            "limitBytes": str(limit_bytes) if limit_bytes else "",
        }
        request = Request("GET", f"{_pod(namespace, name)}/log" + _query(query))
        stream = self._connections.open_stream(request, LOG_SILENCE_S)
        try:
            if opened is not None:
                opened(stream)
            yield from _log_lines(stream)
        finally:
            stream.release()

    def is_ready(self) -> bool:
        """Whether the apiserver says that it is ready, which it is not right after its start."""
        try:
            self._connections.ask(Request("GET", "/readyz"))
        except KubeFailure:
            return False
        return True

    def ask(
        self,
        method: str,
        target: str,
        body: object = None,
        timeout_s: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Any other request, such as GET /version; values are plain JSON."""
        sent = b"" if body is None else msgspec.json.encode(body)
        more = tuple((headers or {}).items())
        answer = self._connections.ask(Request(method, target, sent, headers=more), timeout_s)
        return msgspec.json.decode(answer) if answer else None

    def _object(self, kind: Kind[T], request: Request) -> T:
        return _decode(_decoder(kind.type), self._connections.ask(request))


def path(kind: Kind[Any], namespace: str = "", name: str = "", below: str = "") -> str:
    """The path of a kind, of one object, or of a subresource of an object."""
    parts = [kind.api]
    if namespace and kind.namespaced:
        parts += ["namespaces", quote(namespace, safe="")]
    parts.append(kind.plural)
    parts += [quote(part, safe="") for part in (name, below) if part]
    return "/" + "/".join(parts)


class _ListMeta(msgspec.Struct):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    continue_: str = msgspec.field(default="", name="continue")


class _Listed(msgspec.Struct, Generic[T]):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[T] | None = None


class _WatchLine(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Version(msgspec.Struct):
    resource_version: str = msgspec.field(name="resourceVersion")
    name: str = ""
    namespace: str = ""


class _Versioned(msgspec.Struct):
    metadata: _Version


_line_decoder = msgspec.json.Decoder(_WatchLine)
_versioned_decoder = msgspec.json.Decoder(_Versioned)


@functools.cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


@functools.cache
def _listing_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_Listed[kind])


def _decode(decoder: msgspec.json.Decoder[T], body: bytes | msgspec.Raw) -> T:
    try:
        return decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise Unreachable(f"the answer is not what Kubernetes sends: {error}") from None


def _read_page(kind: Kind[T], body: bytes) -> _Listed[T]:
    """A page of a list.

    Objects whose definition is not ours can hold anything: those that cannot be decoded are left
    out, so that they do not hide the others.
    """
    try:
        return _decode(_listing_decoder(kind.type), body)
    except Unreachable:
        if not kind.optional:
            raise
    page: _Listed[msgspec.Raw] = _decode(_listing_decoder(msgspec.Raw), body)
    read = (_read_or_none(kind, each) for each in page.items or ())
    return _Listed(page.metadata, [each for each in read if each is not None])


def _read(kind: Kind[T], written: msgspec.Raw) -> T:
    return _decode(_decoder(kind.type), written)


def _read_or_none(kind: Kind[T], written: msgspec.Raw) -> T | None:
    try:
        return _read(kind, written)
    except Unreachable as error:
        meta = _decode(_versioned_decoder, written).metadata
        name = f"{meta.namespace}/{meta.name}".lstrip("/")
        logger.warning("%s %s is left out: %s", kind.plural, name, error.message)
        return None


def _read_event(line: bytes, kind: Kind[T]) -> WatchEvent[T] | None:
    """The event in a line; unknown types of events are skipped."""
    decoder = _decoder(kind.type)
    told = _decode(_line_decoder, line)
    if told.type == "ERROR":
        raise read_refusal(0, told.object)
    if told.type not in WatchEventKind.__members__:
        return None
    if told.type == WatchEventKind.BOOKMARK:
        # A bookmark has fields that are null, which no object has: decode only its version.
        version = _decode(_versioned_decoder, told.object).metadata.resource_version
        plain = msgspec.json.encode({"metadata": {"resourceVersion": version}})
        return WatchEvent(WatchEventKind.BOOKMARK, _decode(decoder, plain), version)
    read = _read_or_none if kind.optional else _read
    item = read(kind, told.object)
    if item is None:
        # An object that cannot be decoded counts as deleted: a list leaves it out as well.
        meta = _decode(_versioned_decoder, told.object).metadata
        plain = msgspec.json.encode({"metadata": meta})
        return WatchEvent(WatchEventKind.DELETED, _decode(decoder, plain), meta.resource_version)
    metadata = getattr(item, "metadata", None)
    version = getattr(metadata, "resource_version", None)
    if version is None:
        version = _decode(_versioned_decoder, told.object).metadata.resource_version
    return WatchEvent(WatchEventKind(told.type), item, version)


def _lines(stream: Stream) -> Iterator[bytes]:
    """Yield complete lines as they come; an incomplete one at the end is dropped."""
    rest = b""
    while block := stream.read():
        if b"\n" not in block:
            rest += block
            if len(rest) > MAXIMUM_LINE:
                raise Unreachable(f"a line of a watch is longer than {MAXIMUM_LINE} bytes")
            continue
        *whole, rest = (rest + block).split(b"\n")
        yield from whole


def _log_lines(stream: Stream) -> Iterator[bytes]:
    """Yield lines with their line breaks; one longer than a mebibyte comes in parts."""
    rest = b""
    while block := stream.read():
        *whole, rest = (rest + block).split(b"\n")
        yield from (line + b"\n" for line in whole)
        if len(rest) > MEBIBYTE:
            yield rest
            rest = b""
    if rest:
        yield rest


def _pod(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"


def _delete_options(uid: str, grace_s: int | None) -> dict[str, object]:
    options: dict[str, object] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if uid:
        options["preconditions"] = {"uid": uid}
    if grace_s is not None:
        options["gracePeriodSeconds"] = grace_s
    return options


def _within(seconds: int) -> str:
    return _query({"timeout": f"{seconds}s" if seconds else ""})


def _query(given: Mapping[str, str]) -> str:
    """The query string, without empty parameters."""
    text = urlencode({name: value for name, value in given.items() if value})
    return f"?{text}" if text else ""
