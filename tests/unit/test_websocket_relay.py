"""Connections that are forwarded by websocket: every byte, whichever way it is moved."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from bough.websocket import relay
from bough.websocket.frames import PING
from bough.websocket.kernel_pipe import KernelPipe
from bough.websocket.peer import Peer
from bough.websocket.relay import Forwarding, Loop

PATIENCE_S = 30.0
DATA = os.urandom(6_000_011)


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


@pytest.fixture(params=["moved", "copied"])
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


def test_there_are_only_so_many_pipes_and_none_is_left_open():
    before = len(os.listdir("/proc/self/fd"))
    made: list[KernelPipe] = []
    while (found := KernelPipe.made()) is not None:
        made.append(found)
    assert 64 == len(made)
    for each in made:
        each.close()
    assert before == len(os.listdir("/proc/self/fd"))
