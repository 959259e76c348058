"""What is written in one turn of the event loop is sent in one go, in order, with every byte."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import cast

from bough.server.joined_socket_writes import ENOUGH_BYTES, JoinedWrites


class Sent:
    """A transport that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[bytes | str] = []

    def write(self, data: bytes) -> None:
        self.told.append(data)

    def close(self) -> None:
        self.told.append("close")

    def abort(self) -> None:
        self.told.append("abort")

    def get_write_buffer_size(self) -> int:
        return 1_000


def in_a_loop(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    """Run a test in an event loop of its own."""

    @wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


def joined() -> tuple[Sent, JoinedWrites]:
    sent = Sent()
    wire = cast("asyncio.Transport", sent)
    return sent, JoinedWrites(wire, asyncio.get_running_loop())


@in_a_loop
async def test_head_and_body_leave_together_and_in_order():
    sent, wire = joined()
    for part in (b"head ", b"", b"body"):
        wire.write(part)

    assert [] == sent.told
    await asyncio.sleep(0)
    assert [b"head body"] == sent.told
    wire.write(b"next")
    await asyncio.sleep(0)
    assert [b"head body", b"next"] == sent.told


@in_a_loop
async def test_all_that_was_written_is_sent_before_it_is_closed():
    sent, wire = joined()
    wire.write(b"last")
    wire.close()
    await asyncio.sleep(0)

    assert [b"last", "close"] == sent.told


@in_a_loop
async def test_much_is_sent_at_once_and_what_waits_is_counted():
    sent, wire = joined()
    wire.write(b"x" * 10)
    assert 1_010 == wire.get_write_buffer_size()
    wire.write(b"y" * ENOUGH_BYTES)

    assert [b"x" * 10 + b"y" * ENOUGH_BYTES] == sent.told
    assert 1_000 == wire.get_write_buffer_size()
    wire.abort()
    assert "abort" == sent.told[-1]


@in_a_loop
async def test_a_client_gets_every_byte_over_a_real_socket():
    ours, theirs = socket.socketpair()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_connection(asyncio.Protocol, sock=ours)
    wire = JoinedWrites(transport, loop)
    reader, writer = await asyncio.open_connection(sock=theirs)
    parts = [bytes([number]) * 70_000 for number in range(20)]
    for part in parts:
        wire.write(part)
    wire.close()

    assert b"".join(parts) == await reader.read()
    writer.close()
    await writer.wait_closed()
