"""Connections are bounded in number and in time, and the check of health is always answered."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from bough.server.connections import Bounds, OpenConnections, raise_file_limit
from tests.api.served import Served

#: More than the files that a process can have open by default.
HALF_OPEN = 1_100
FILES = ("prlimit", "--nofile=1024:1024")
HALF_A_HEADER = b"GET /api/version HTTP/1.1\r\nHost: x\r\nX-Half: "
HALF_A_BODY = (
    b"POST /api/pool/default/workflow HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{"
)
PATIENCE_S = 30


class Client:
    """Connects to a server from chosen addresses of the loopback, and keeps what it opens."""

    def __init__(self, address: str, stack: ExitStack) -> None:
        host, _, port = address.removeprefix("http://").partition(":")
        self._server = (host, int(port))
        self._stack = stack

    def open(self, text: bytes, origin: str = "127.0.0.1") -> socket.socket:
        made = socket.create_connection(self._server, PATIENCE_S, source_address=(origin, 0))
        self._stack.enter_context(made)
        made.sendall(text)
        return made

    def ask(self, path: str, origin: str = "127.0.0.1", token: str = "") -> int:
        """The status of an answer; 0: the connection was closed instead."""
        with socket.create_connection(self._server, PATIENCE_S, (origin, 0)) as made:
            made.sendall(_request(path, token))
            return _status(_read_all(made))


def _request(path: str, token: str = "") -> bytes:
    shown = f"Authorization: Bearer {token}\r\n" if token else ""
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n{shown}Connection: close\r\n\r\n".encode()


def _read_all(made: socket.socket) -> bytes:
    found = b""
    try:
        while part := made.recv(65_536):
            found += part
    except ConnectionError:
        pass
    return found


def _status(answer: bytes) -> int:
    return int(answer.split()[1]) if answer else 0


@pytest.mark.parametrize("half", [HALF_A_HEADER, HALF_A_BODY], ids=["header", "body"])
@pytest.mark.served
def test_half_open_connections_stop_nothing(tmp_path, half):
    assert HALF_OPEN == raise_file_limit(HALF_OPEN)
    with Served(tmp_path / "data", within=FILES) as server, ExitStack() as stack:
        client = Client(server.address, stack)
        for number in range(HALF_OPEN):
            client.open(half, f"127.0.0.{2 + number % 2}")
            if number % 100 == 0:
                assert 200 == client.ask("/health", f"127.0.0.{2 + number // 100 % 2}")

        assert 200 == client.ask("/health")
        assert 200 == client.ask("/api/pool", token=server.token)
        assert 200 == client.ask("/health", "127.0.0.2")
        assert "Traceback" not in server.log
        assert "room for 624 connections, not 2000" in server.log


@pytest.mark.served
def test_a_server_raises_its_limit_of_open_files(tmp_path):
    within = ("prlimit", "--nofile=1024:4096")
    with Served(tmp_path / "data", "--connections", "3000", within=within) as server:
        limits = Path(f"/proc/{server.process.pid}/limits").read_text().splitlines()
        (line,) = [each for each in limits if each.startswith("Max open files")]

        assert ["3400", "4096"] == line.split()[3:5]
        assert "limit of open files" not in server.log


@pytest.mark.parametrize("workers", ["1", "3"])
@pytest.mark.served
def test_streams_that_fill_an_address_leave_it_the_check_of_health_and_others_everything(
    tmp_path, workers
):
    options = ("--connections", "60", "--connections-per-address", "40", "--workers", workers)
    with Served(tmp_path / "data", *options) as server, ExitStack() as stack:
        client = Client(server.address, stack)
        streams = [client.open(_request("/api/events", server.token)) for _ in range(40)]
        assert [200] * 40 == [_status(each.recv(65_536)) for each in streams]
        # Those that wait for nothing but a place of their own change nothing.
        for _ in range(100):
            client.open(HALF_A_HEADER)

        assert (200, 503) == (client.ask("/health"), client.ask("/api/pool", token=server.token))
        assert 200 == client.ask("/api/pool", "127.0.0.2", server.token)

        # Now no place is left at all.
        streams += [
            client.open(_request("/api/events", server.token), "127.0.0.2") for _ in range(20)
        ]
        assert [200] * 20 == [_status(each.recv(65_536)) for each in streams[40:]]
        assert [200, 503] == [client.ask(each, "127.0.0.3") for each in ("/health", "/api/version")]

        streams.pop().close()
        server.until(lambda: client.ask("/api/version", "127.0.0.3") == 200)


@pytest.mark.served
def test_no_client_names_an_address_for_another_to_be_trusted(tmp_path):
    with Served(tmp_path / "data", "--trust-proxy", "10.0.0.0/8") as server, ExitStack() as stack:
        forged = b"Connection: close\r\nX-Forwarded-For: 10.1.2.3\r\nX-Osmo-User: admin\r\n\r\n"
        request = _request("/api/configs/service").replace(b"Connection: close\r\n\r\n", forged)

        assert 401 == _status(_read_all(Client(server.address, stack).open(request)))


# With little time and few places, in this process


@contextmanager
def answering(bounds: Bounds, application: Any) -> Iterator[str]:
    """A server of an application, as `bough serve` runs it."""
    everyone = OpenConnections(bounds)
    config = uvicorn.Config(application, http=everyone.protocol, log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = server.force_exit = True
            thread.join(PATIENCE_S)


class Application:
    """Reads a body and answers with much."""

    def __init__(self, parts: int = 1, size: int = 2) -> None:
        self._parts = parts
        self._part = b"." * size
        self.sent = 0
        self.ended = threading.Event()

    async def __call__(self, _scope: Any, receive: Any, send: Any) -> None:
        try:
            while (message := await receive()).get("more_body"):
                pass
            if message["type"] == "http.disconnect":
                return
            await send({"type": "http.response.start", "status": 200, "headers": []})
            for _ in range(self._parts):
                await send({"type": "http.response.body", "body": self._part, "more_body": True})
                self.sent += len(self._part)
            await send({"type": "http.response.body"})
        finally:
            self.ended.set()


QUICK = Bounds(connections=4, per_address=4, header_s=0.4, period_s=0.4)


@pytest.mark.parametrize(
    "half", [b"GET / HT", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"]
)
def test_a_request_that_does_not_come_to_its_end_is_told_so(half):
    with answering(QUICK, Application()) as address, ExitStack() as stack:
        answer = _read_all(Client(address, stack).open(half))

    assert 408 == _status(answer)
    assert "did not come in time" in json.loads(answer.partition(b"\r\n\r\n")[2])["message"]


def test_a_client_that_drips_is_cut_however_often_it_drips():
    with answering(QUICK, Application()) as address, ExitStack() as stack:
        for text in (b"GET / HTTP/1.1\r\nX: ", HALF_A_BODY):
            made = Client(address, stack).open(text)
            made.settimeout(0.02)
            answer = b""
            for _ in range(500):
                try:
                    made.sendall(b".")
                    if answer := made.recv(1_000):
                        break
                except TimeoutError:
                    continue
                except ConnectionError:
                    break
            else:
                pytest.fail("it drips for ever")
            assert answer == b"" or 408 == _status(answer)


def test_a_client_that_does_not_read_is_cut():
    application = Application(parts=10_000, size=10_000)
    with answering(QUICK, application) as address, ExitStack() as stack:
        made = Client(address, stack).open(_request("/"))

        assert application.ended.wait(PATIENCE_S)

        # It has what was in the buffers of the kernel, and no end.
        assert len(_read_all(made)) < 10_000 * 10_000 == application.sent


def test_a_client_that_reads_slowly_and_steadily_has_all_of_it():
    # Longer than a busy machine keeps this test from reading, and shorter than all its reading.
    bounds = Bounds(period_s=4, period_bytes=1_000)
    with answering(bounds, Application(1, 16 << 20)) as address, ExitStack() as stack:
        made = Client(address, stack).open(_request("/"))
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        size = 0
        pause = threading.Event()
        while part := made.recv(1 << 16):
            size += len(part)
            pause.wait(0.03)

    assert size > 16 << 20


def test_answers_that_are_not_taken_are_bounded_together_and_the_largest_go_first():
    application = Application(1, 12 << 20)
    bounds = Bounds(header_s=0.4, period_s=1_000, untaken_bytes=20 << 20)
    with answering(bounds, application) as address, ExitStack() as stack:
        client = Client(address, stack)
        made = [client.open(_request("/")) for _ in range(4)]
        for each in made:
            each.recv(1)
        # An answer has ended only where the client took it, or was cut.
        assert application.ended.wait(PATIENCE_S)

        complete = [len(_read_all(each)) > 12 << 20 for each in made]

    assert 1 <= complete.count(True) <= 3


def test_the_one_that_waited_longest_makes_room_and_none_that_is_served():
    with answering(Bounds(4, 4), Application()) as address, ExitStack() as stack:
        client = Client(address, stack)
        first, *others = [client.open(b"GET / HTTP/1.1\r\n") for _ in range(4)]

        assert 200 == client.ask("/anything")

        assert b"" == _read_all(first)
        for each in others:
            each.sendall(b"Host: x\r\nConnection: close\r\n\r\n")
            assert 200 == _status(_read_all(each))


def test_an_address_with_many_makes_room_for_one_with_few():
    with answering(Bounds(6, 5), Application()) as address, ExitStack() as stack:
        client = Client(address, stack)
        modest = client.open(b"GET / HTTP/1.1\r\n", "127.0.0.2")
        for _ in range(20):
            client.open(b"GET / HTTP/1.1\r\n")
        assert 200 == client.ask("/", "127.0.0.3")

        modest.sendall(b"Host: x\r\nConnection: close\r\n\r\n")
        assert 200 == _status(_read_all(modest))
