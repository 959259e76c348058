"""Connections that are forwarded by websocket: every byte, whichever way it is moved."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import struct
import termios
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from bough.websocket import relay
from bough.websocket.frames import BINARY, NO_KEY, PING, PONG, FrameReader, header
from bough.websocket.kernel_pipe import KernelPipe
from bough.websocket.peer import Peer
from bough.websocket.relay import READ, WRITE, Forwarding, Loop
from tests.local.plain_account import PLAIN, in_another_process

PATIENCE_S = 30.0
DATA = os.urandom(6_000_011)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root has large pipes")


class Ends(NamedTuple):
    """Two connections that are joined by a websocket, and what forwards them."""

    near: socket.socket
    far: socket.socket
    client: Forwarding
    server: Forwarding


def connected() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        one = socket.create_connection(listening.getsockname(), PATIENCE_S)
        other = listening.accept()[0]
    other.settimeout(PATIENCE_S)
    return one, other


@contextlib.contextmanager
def forwarding() -> Iterator[Ends]:
    (near, near_inside), (far, far_inside), (one, other) = connected(), connected(), connected()
    client = Forwarding(Peer(one, server=False), near_inside, halves=True)
    server = Forwarding(Peer(other, server=True), far_inside, halves=True)
    threads: list[threading.Thread] = []
    loops: list[Loop] = []
    faults: list[BaseException] = []

    def run(loop: Loop) -> None:
        try:
            loop.run()
        except BaseException as error:
            faults.append(error)

    for each in (client, server):
        loop = Loop(tick_s=0.05)
        loop.add(each)
        loops.append(loop)
        threads.append(threading.Thread(target=run, args=(loop,), daemon=True))
        threads[-1].start()
    try:
        yield Ends(near, far, client, server)
    finally:
        near.close()
        far.close()
        for loop in loops:
            loop.stopped = True
        for thread in threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        assert [] == faults


def received(connection: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        part = connection.recv(65_536)
        assert part, len(found)
        found += part
    return bytes(found)


def undelivered(sender: socket.socket) -> int:
    """How much of what was sent the other end's kernel has not got yet."""
    return struct.unpack("i", fcntl.ioctl(sender, termios.TIOCOUTQ, bytes(4)))[0]


def send_whole(sender: socket.socket, data: bytes) -> None:
    """Send so little that it can all be read at once afterwards."""
    sender.sendall(data)
    while undelivered(sender):
        time.sleep(0.001)


def all_sent(sender: socket.socket, reader: socket.socket) -> bytes:
    """Read until the kernel has delivered everything that it took from the sender."""
    found = bytearray()
    reader.setblocking(False)
    while True:
        left = undelivered(sender)
        with contextlib.suppress(BlockingIOError):
            while True:
                found += reader.recv(65_536)
        if not left:
            reader.settimeout(PATIENCE_S)
            return bytes(found)


@pytest.fixture(params=[pytest.param("moved", marks=needs_root), "copied"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "copied":
        monkeypatch.setattr(relay.KernelPipe, "made", lambda: None)
    return request.param


def test_every_byte_comes_both_ways_at_once_also_to_slow_readers(way: str):
    with forwarding() as ends:
        senders = [
            threading.Thread(target=each.sendall, args=(data,), daemon=True)
            for each, data in ((ends.near, DATA), (ends.far, DATA[::-1]))
        ]
        for each in senders:
            each.start()
        # The far one reads nothing until the near one has everything.
        assert DATA[::-1] == received(ends.near, len(DATA))
        assert DATA == received(ends.far, len(DATA))
        for each in senders:
            each.join(PATIENCE_S)
        assert (way == "moved") == (KernelPipe.count > 0)
        # Small ones, after large ones.
        for each, other in ((ends.near, ends.far), (ends.far, ends.near)):
            each.sendall(b"small")
            assert b"small" == received(other, 5)
        # One direction ends, the other does not.
        ends.near.shutdown(socket.SHUT_WR)
        assert b"" == ends.far.recv(1)
        ends.far.sendall(DATA)
        assert DATA == received(ends.near, len(DATA))
    assert 0 == KernelPipe.count


@pytest.mark.usefixtures("way")
def test_pings_go_between_the_messages_of_a_stream_that_is_slow():
    with forwarding() as ends:
        sender = threading.Thread(target=ends.near.sendall, args=(DATA * 3,), daemon=True)
        sender.start()
        found = received(ends.far, 1_000_000)
        for _ in range(100):
            # By the loop's own thread, whatever it has in its hands.
            ends.client.tick = lambda: ends.client.peer.send(b"!", PING)  # type: ignore[method-assign]
            found += received(ends.far, 10_000)
        found += received(ends.far, 3 * len(DATA) - len(found))
        assert 3 * DATA == found
        sender.join(PATIENCE_S)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("which", ["near", "far"])
def test_what_is_cut_off_in_the_middle_ends_both_and_leaves_nothing(which: str):
    with forwarding() as ends:
        one, other = (ends.near, ends.far) if which == "near" else (ends.far, ends.near)
        sender = threading.Thread(target=_send_all, args=(other,), daemon=True)
        sender.start()
        one.sendall(DATA[:500_000])
        received(other, 250_000)
        received(one, 500_000)
        # At once, as where a program is killed.
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.close()
        sender.join(PATIENCE_S)
        assert not sender.is_alive()
        deadline = time.monotonic() + PATIENCE_S
        while not (ends.client.ended and ends.server.ended):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert 0 == KernelPipe.count


def _send_all(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        for _ in range(1_000):
            connection.sendall(DATA)


@needs_root
def test_a_message_does_not_go_into_a_pong_that_is_half_sent():
    (client, inside), (stream, stream_inside) = connected(), connected()
    member = Forwarding(Peer(inside, server=True), stream_inside, halves=True)
    with client, stream, contextlib.closing(member):
        peer, large = member.peer, DATA[:60_000]
        while not KernelPipe.count:
            # It gives much, so what follows is moved.
            send_whole(stream, large)
            member.ready(stream_inside.fileno(), READ)
            all_sent(inside, client)
        said = b"!" * 101
        ping, pong = header(PING, len(said), NO_KEY) + said, header(PONG, len(said)) + said
        came = b""
        while len(came) % len(pong) == 0:
            member.ready(peer.fileno(), WRITE)
            while not peer.pending:
                client.sendall(100 * ping)
                member.ready(peer.fileno(), READ)
            came += all_sent(inside, client)
        before = peer.sent
        send_whole(stream, large)
        # A loop does this if it saw both sides readable before the pings were answered.
        member.ready(stream_inside.fileno(), READ)
        assert before == peer.sent
        while peer.pending or peer.sent - before < len(large):
            member.ready(peer.fileno(), WRITE)
            member.ready(stream_inside.fileno(), READ)
            came += all_sent(inside, client)
        came += all_sent(inside, client)
        pieces = [(each.opcode, bytes(each.data)) for each in FrameReader(masked=False).feed(came)]
        assert {said} == {data for opcode, data in pieces if opcode == PONG}
        found = b"".join(data for opcode, data in pieces if opcode == BINARY)
        assert found.endswith(large)


def test_a_peer_sends_nothing_from_a_pipe_before_what_is_pending():
    one, other = connected()
    with one, other:
        peer = Peer(one, server=True)
        assert peer.sends_as_is
        while not peer.pending:
            peer.send(DATA)
        assert not peer.sends_as_is
        while peer.pending:
            other.recv(65_536)
            peer.flush()
        assert peer.sends_as_is


def test_other_users_than_root_have_their_whole_limit_of_pipes_for_other_programs():
    def room_of_a_new_pipe() -> int:
        reading, writing = os.pipe()
        try:
            return fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ)
        finally:
            os.close(reading)
            os.close(writing)

    def after_many_connections() -> str:
        if os.geteuid() == 0:
            os.setresuid(PLAIN, PLAIN, PLAIN)
        before = room_of_a_new_pipe()
        for _ in range(64):
            KernelPipe.made()
        return f"{KernelPipe.count} {before == room_of_a_new_pipe()}"

    assert "0 True" == in_another_process(after_many_connections)


@needs_root
def test_there_are_only_so_many_pipes_and_none_is_left_open():
    before = len(os.listdir("/proc/self/fd"))
    made: list[KernelPipe] = []
    while (found := KernelPipe.made()) is not None:
        made.append(found)
    assert 64 == len(made)
    for each in made:
        each.close()
    assert before == len(os.listdir("/proc/self/fd"))
