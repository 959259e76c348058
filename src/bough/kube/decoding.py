"""What an apiserver sends, decoded: objects, pages of lists, events of watches, lines of logs."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from bough.kube.connections import Stream
from bough.kube.failures import Unreachable, read_refusal
from bough.kube.objects import Kind

T = TypeVar("T")

logger = logging.getLogger(__name__)
#: The longest line of a watch; etcd stores objects of at most 1.5 MiB.
MAXIMUM_LINE = 32 << 20
MEBIBYTE = 1 << 20


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


class _PageMeta(msgspec.Struct):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    continue_: str = msgspec.field(default="", name="continue")


class ListPage(msgspec.Struct, Generic[T]):
    """Some objects of a list, and where it goes on."""

    metadata: _PageMeta = msgspec.field(default_factory=_PageMeta)
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
    return msgspec.json.Decoder(ListPage[kind])


def _decode(decoder: msgspec.json.Decoder[T], body: bytes | msgspec.Raw) -> T:
    try:
        return decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise Unreachable(f"the answer is not what Kubernetes sends: {error}") from None


def read_page(kind: Kind[T], body: bytes) -> ListPage[T]:
    """A page of a list.

    Objects whose definition is not ours can hold anything: those that cannot be decoded are left
    out, so that they do not hide the others.
    """
    try:
        return _decode(_listing_decoder(kind.type), body)
    except Unreachable:
        if not kind.optional:
            raise
    page: ListPage[msgspec.Raw] = _decode(_listing_decoder(msgspec.Raw), body)
    read = (_read_or_none(kind, each) for each in page.items or ())
    return ListPage(page.metadata, [each for each in read if each is not None])


def read_object(kind: Kind[T], written: bytes | msgspec.Raw) -> T:
    """One object of a kind."""
    return _decode(_decoder(kind.type), written)


def _read_or_none(kind: Kind[T], written: msgspec.Raw) -> T | None:
    try:
        return read_object(kind, written)
    except Unreachable as error:
        meta = _decode(_versioned_decoder, written).metadata
        name = f"{meta.namespace}/{meta.name}".lstrip("/")
        logger.warning("%s %s is skipped: %s", kind.plural, name, error.message)
        return None


def read_event(line: bytes, kind: Kind[T]) -> WatchEvent[T] | None:
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
    read = _read_or_none if kind.optional else read_object
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


def whole_lines(stream: Stream) -> Iterator[bytes]:
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


def log_lines(stream: Stream) -> Iterator[bytes]:
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
