"""Websockets: frames as others write them, however they are cut, and what breaks the protocol."""

from __future__ import annotations

import itertools
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.websocket import handshake
from bough.websocket.channels import RESIZE, PlainInput, TerminalSize
from bough.websocket.frames import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    TEXT,
    FrameReader,
    Piece,
    ProtocolFault,
    frame,
    mask,
)
from bough.websocket.peer import Peer

SIZES = st.sampled_from([0, 1, 125, 126, 127, 65_535, 65_536, 70_001])


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """The same in parts."""
    ends = sorted({each % (len(data) + 1) for each in places} | {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise(ends)]


def read(reader: FrameReader, parts: list[bytes]) -> list[tuple[int, bytes]]:
    """Whole messages, as they come in parts."""
    found: list[tuple[int, bytes]] = []
    begun = b""
    for part in parts:
        for piece in reader.feed(part):
            if piece.opcode >= CLOSE:
                found.append((piece.opcode, bytes(piece.data)))
                continue
            begun += bytes(piece.data)
            if piece.last:
                found.append((piece.opcode, begun))
                begun = b""
    return found


@given(
    st.lists(st.tuples(st.sampled_from([TEXT, BINARY]), SIZES), max_size=5),
    st.booleans(),
    st.lists(st.integers(0, 1 << 20), max_size=20),
)
def test_messages_come_as_they_were_sent_however_they_are_cut(messages, masked, places):
    sent = [(opcode, bytes(number % 251 for number in range(size))) for opcode, size in messages]
    wire = b"".join(frame(opcode, data, masked=masked) for opcode, data in sent)

    assert sent == read(FrameReader(masked=masked), cut(wire, places))


@given(st.binary(max_size=300), st.binary(min_size=4, max_size=4), st.integers(0, 300))
def test_a_mask_is_undone_by_itself_also_part_by_part(data, key, place):
    plain = bytes(byte ^ key[number % 4] for number, byte in enumerate(data))

    assert plain == mask(data, key)
    assert plain == mask(data[:place], key) + mask(data[place:], key, place)


def test_a_message_in_fragments_with_a_ping_between_is_one_message():
    wire = (
        (bytes((BINARY, 3)) + b"one" + bytes((0x80 | PING, 1)) + b"!" + bytes((CONTINUATION, 0)))
        + bytes((0x80 | CONTINUATION, 3))
        + b"two"
    )

    assert [(PING, b"!"), (BINARY, b"onetwo")] == read(FrameReader(masked=False), [wire])


@pytest.mark.parametrize(
    ("wire", "words"),
    [
        (bytes((0xC2, 0x80)) + bytes(4), "not agreed on"),
        (bytes((0x82, 0)), "not masked"),
        (bytes((0x83, 0x80)) + bytes(4), "kind 3"),
        (bytes((0x89, 0xFE)) + b"\0\xff" + bytes(4), "too long"),
        (bytes((0x09, 0x80)) + bytes(4), "in parts"),
        (bytes((0x80, 0x80)) + bytes(4), "not begun"),
        (bytes((0x02, 0x80)) + bytes(4) + bytes((0x82, 0x80)) + bytes(4), "within another"),
        (bytes((0x82, 0xFF)) + struct.pack(">Q", 1 << 63) + bytes(4), "possible length"),
    ],
)
def test_what_breaks_the_protocol_is_refused_in_words(wire, words):
    with pytest.raises(ProtocolFault, match=words):
        list(FrameReader(masked=True).feed(wire))


def test_a_length_that_is_only_announced_takes_no_memory():
    reader = FrameReader(masked=True)

    head = bytes((0x82, 0xFF)) + struct.pack(">Q", 1 << 40) + bytes(4)
    assert [Piece(BINARY, b"abc", last=False)] == list(reader.feed(head + b"abc"))


def test_a_peer_answers_pings_and_keeps_what_is_not_taken_until_it_is():
    ours, theirs = socket.socketpair()
    own, other = Peer(ours, server=True), Peer(theirs, server=False)
    own.send(b"", PING)
    assert [] == other.read()
    data = bytes(3 << 20)
    own.send(data)
    assert own.pending
    taken = 0
    while taken < len(data):
        own.flush()
        taken += sum(len(each.data) for each in other.read())
    assert ([], False) == (own.read(), own.pending)
    other.close(1000, "enough")
    own.read()
    assert (1000, "enough") == own.closed_by_other
    for each in (own, other):
        each.shut()


class _Distant(socket.socket):
    """A connection that says that it leads to another machine."""

    def getpeername(self) -> tuple[str, int]:
        return ("192.0.2.7", 80)


@pytest.mark.parametrize("distant", [True, False])
def test_only_what_leaves_the_machine_is_disguised(distant: bool):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        near = socket.create_connection(listening.getsockname())
        other = listening.accept()[0]
    ours = _Distant(fileno=near.detach()) if distant else near
    data = b"GET / HTTP/1.1" * 100

    peer = Peer(ours, server=False)
    peer.send(data)
    # The next frame has another key, so one of these differs from what was sent.
    peer.send(data, TEXT)

    sent = b""
    while len(sent) < 2 * (len(data) + 8):
        sent += other.recv(1 << 16)
    assert distant == (data not in sent[: len(data) + 8] or data not in sent[len(data) + 8 :])
    reader = FrameReader(masked=True)
    assert 2 * data == b"".join(bytes(each.data) for each in reader.feed(sent))
    peer.shut()
    other.close()


def test_the_answer_to_a_handshake_is_the_one_of_the_standard():
    # RFC 6455, section 1.3.
    asked = {"sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="}

    assert b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in handshake.answer(asked)
    fault = handshake.fault_of({"upgrade": "websocket", "connection": "keep-alive"})
    assert "the header Connection must be Upgrade" == fault


def test_typed_zero_bytes_are_no_sizes_and_sizes_are_not_typed():
    told = RESIZE + b'{"Rows": 5, "Cols": 6}'

    assert TerminalSize(5, 6) == PlainInput().feed(told, last=True)
    assert b"\x00" == PlainInput().feed(b"\x00", last=True)
    assert b"a" + told == PlainInput().feed(b"a" + told, last=True)
    halves = PlainInput()
    assert (b"", TerminalSize(5, 6)) == (
        halves.feed(told[:12], last=False),
        halves.feed(told[12:], last=True),
    )
    assert RESIZE + b"{}" == PlainInput().feed(RESIZE + b"{}", last=True)
