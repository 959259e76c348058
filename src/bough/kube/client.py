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

from collections.abc import Callable, Generator, Mapping
from enum import StrEnum
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from bough.kube.access import Access
from bough.kube.connections import Connections, Guard, Request, Stream
from bough.kube.decoding import (
    Listing,
    WatchEvent,
    log_lines,
    read_event,
    read_object,
    read_page,
    whole_lines,
)
from bough.kube.failures import Gone, KubeFailure
from bough.kube.objects import Kind

T = TypeVar("T")

#: How many objects one page of a list has.
PAGE = 500
#: How long a watch may be silent: the apiserver sends a bookmark at least once a minute.
WATCH_SILENCE_S = 100.0
#: A task may print nothing for long; TCP keepalive notices if its machine is gone.
LOG_SILENCE_S = 3_600.0
#: How much longer than the apiserver's own limit we wait for an answer.
ANSWER_S = 2


class Patch(StrEnum):
    """The format of a patch."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    JSON = "application/json-patch+json"
    #: All fields that one manager wants; a missing object is created. Needs `manager`.
    APPLY = "application/apply-patch+yaml"


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
                listed = read_page(kind, self._connections.ask(request))
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
            for line in whole_lines(stream):
                event = read_event(line, kind)
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
            yield from log_lines(stream)
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
        return read_object(kind, self._connections.ask(request))


def path(kind: Kind[Any], namespace: str = "", name: str = "", below: str = "") -> str:
    """The path of a kind, of one object, or of a subresource of an object."""
    parts = [kind.api]
    if namespace and kind.namespaced:
        parts += ["namespaces", quote(namespace, safe="")]
    parts.append(kind.plural)
    parts += [quote(part, safe="") for part in (name, below) if part]
    return "/" + "/".join(parts)


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
