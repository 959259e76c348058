"""Encodes messages as frames and decodes them; messages are passed on piece by piece.

Clients mask what they send, servers do not. Both roles are implemented here; one flag chooses.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
#: Reasons to close.
NORMAL, GOING_AWAY, PROTOCOL_FAULT, REFUSED, TOO_LARGE = 1000, 1001, 1002, 1008, 1009
_LAST, _MASKED = 0x80, 0x80
_MOST_CONTROL = 125
_TWO_BYTES, _EIGHT_BYTES = 126, 127
_KEY_BYTES = 4
#: How long the header of a frame can be.
LONGEST_HEADER = 14
#: From this size on, it pays to move the data of a frame in the kernel.
LARGE = 32 << 10
#: The key that leaves a frame as it is.
NO_KEY = bytes(_KEY_BYTES)
#: For each byte of a key, the translation table. Built once, since that takes a millisecond.
_MASKS: list[bytes] = []


class ProtocolFault(Exception):
    """The other end does not keep to the protocol."""

    def __init__(self, message: str, code: int = PROTOCOL_FAULT) -> None:
        super().__init__(message)
        self.code = code


class Piece(NamedTuple):
    """A part of a message, or a whole control frame."""

    #: Of the message: TEXT, BINARY, CLOSE, PING or PONG.
    opcode: int
    #: Where no mask had to be undone, a view of what was fed.
    data: bytes | memoryview
    #: Whether the message ends with it.
    last: bool


def header(opcode: int, size: int, key: bytes = b"") -> bytes:
    """The header of a frame that holds a whole message."""
    masked = _MASKED if key else 0
    first = bytes((_LAST | opcode,))
    if size <= _MOST_CONTROL:
        return first + bytes((masked | size,)) + key
    if size < 1 << 16:
        return first + bytes((masked | _TWO_BYTES,)) + size.to_bytes(2, "big") + key
    return first + bytes((masked | _EIGHT_BYTES,)) + size.to_bytes(8, "big") + key


def frame(opcode: int, data: bytes, *, masked: bool) -> bytes:
    """A whole message as one frame."""
    key = new_key() if masked else b""
    return header(opcode, len(data), key) + bytes(mask(data, key) if masked else data)


def new_key() -> bytes:
    """A key to mask a frame with: one byte that is repeated.

    Masks keep scripts of web pages from sending bytes that a proxy would take for HTTP. No web page
    is involved here, and a key of one repeated byte costs a third of a random one.
    """
    return os.urandom(1) * _KEY_BYTES


def mask(data: bytes | memoryview, key: bytes, offset: int = 0) -> bytes | memoryview:
    """Mask or unmask a part of a frame that begins at an offset of it.

    Every fourth byte has the same mask, and `translate` is faster than arithmetic with long
    numbers.
    """
    if key == NO_KEY:
        return data
    if not _MASKS:
        _MASKS.extend(bytes(each ^ number for each in range(256)) for number in range(256))
    if key == key[:1] * _KEY_BYTES:
        return bytes(data).translate(_MASKS[key[0]])
    changed = bytearray(data)
    for place in range(_KEY_BYTES):
        number = key[(place + offset) % _KEY_BYTES]
        if number:
            changed[place::_KEY_BYTES] = changed[place::_KEY_BYTES].translate(_MASKS[number])
    return bytes(changed)


class FrameReader:
    """Reads the frames of the other end."""

    def __init__(self, *, masked: bool) -> None:
        #: Whether incoming frames must be masked.
        self._masked = masked
        self._head = bytearray()
        self._opcode = 0
        self._last = False
        self._left = 0
        self._size = 0
        self._key = b""
        #: Opcode of the message that is not complete yet; 0: none.
        self._message = 0
        self._control = bytearray()
        self._in_frame = False

    def feed(self, data: bytes | memoryview) -> Iterator[Piece]:
        """Decode these bytes; yields the pieces that they complete."""
        view = memoryview(data)
        while view:
            if not self._in_frame:
                taken = self._read_head(view)
                view = view[taken:]
                if not self._in_frame:
                    return
            part = view[: self._left]
            view = view[len(part) :]
            yield from self._take(part)

    @property
    def reads_large(self) -> bool:
        """Whether the latest frame is a large part of a message, as is."""
        return self._size >= LARGE and self._opcode < CLOSE and self._key in (b"", NO_KEY)

    @property
    def left_as_is(self) -> int:
        """How much of a large frame is still to come that can be passed on as it is."""
        return self._left if self.reads_large else 0

    def passed_on(self, size: int) -> None:
        """So much of it was passed on by others."""
        self._left -= size
        if not self._left:
            self._in_frame = False
            if self._last:
                self._message = 0

    def _take(self, part: memoryview) -> Iterator[Piece]:
        offset = self._size - self._left
        self._left -= len(part)
        data = mask(part, self._key, offset) if self._key else part
        ended = not self._left
        if ended:
            self._in_frame = False
        if self._opcode >= CLOSE:
            self._control += data
            if ended:
                whole, self._control = bytes(self._control), bytearray()
                yield Piece(self._opcode, whole, last=True)
            return
        opcode, last = self._message, ended and self._last
        if last:
            self._message = 0
        if data or last:
            yield Piece(opcode, data, last)

    def _read_head(self, view: memoryview) -> int:
        """Read more of a frame's header; returns how many bytes were used."""
        taken = 0
        while taken < len(view):
            needed = self._needed() - len(self._head)
            part = view[taken : taken + needed]
            self._head += part
            taken += len(part)
            if len(self._head) == self._needed():
                self._begin()
                break
        return taken

    def _needed(self) -> int:
        """How long the header is, as far as known yet."""
        head = self._head
        if len(head) < 2:
            return 2
        more = {_TWO_BYTES: 2, _EIGHT_BYTES: 8}.get(head[1] & ~_MASKED, 0)
        return 2 + more + (_KEY_BYTES if head[1] & _MASKED else 0)

    def _begin(self) -> None:
        head, self._head = bytes(self._head), bytearray()
        opcode, masked, size = head[0] & 0x0F, bool(head[1] & _MASKED), head[1] & ~_MASKED
        keyed = _KEY_BYTES if masked else 0
        if size >= _TWO_BYTES:
            size = int.from_bytes(head[2 : len(head) - keyed], "big")
        self._opcode, self._last = opcode, bool(head[0] & _LAST)
        self._check(head[0], masked=masked, size=size)
        if opcode in (TEXT, BINARY):
            self._message = opcode
        self._key = head[len(head) - keyed :] if masked else b""
        self._size = self._left = size
        self._in_frame = True

    def _check(self, first: int, *, masked: bool, size: int) -> None:
        opcode = self._opcode
        if first & 0x70:
            raise ProtocolFault("a frame has bits that were not agreed on")
        if masked != self._masked:
            raise ProtocolFault(f"a frame is {'masked' if masked else 'not masked'}")
        if opcode not in (CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG):
            raise ProtocolFault(f"there are no frames of the kind {opcode}")
        if opcode >= CLOSE and (size > _MOST_CONTROL or not self._last):
            raise ProtocolFault("a control frame is too long, or in parts")
        if opcode in (TEXT, BINARY) and self._message:
            raise ProtocolFault("a message begins within another one")
        if opcode == CONTINUATION and not self._message:
            raise ProtocolFault("a message goes on that was not begun")
        if size >> 63:
            raise ProtocolFault("a frame has no possible length", TOO_LARGE)
