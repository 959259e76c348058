"""The address of a server is its own through restarts: nothing else can listen there meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from bough.server import socket_holder
from tests.api.served import WAIT_S, Served

NOBODY = 65_534
LOCAL = ("--backend", "local", "--gpus", "2")
#: Waits for an address until it can listen there, and writes down what it is then sent.
HOSTILE = """
import socket, sys, time
from pathlib import Path
while True:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", int(sys.argv[1])))
        listener.listen()
        break
    except OSError:
        Path(sys.argv[2]).write_text("waits")
        time.sleep(0.001)
Path(sys.argv[2]).write_text("listens")
"""


def task(seconds: str) -> dict[str, str]:
    resources = "{default: {gpu: 1, cpu: 1, memory: 1Gi, storage: 0Gi}}"
    run = f"{{name: main, image: i, command: [sleep, {seconds!r}]}}"
    return {"file": f"workflow:\n  name: job\n  resources: {resources}\n  tasks: [{run}]\n"}


def port_of(server: Served) -> int:
    return int(server.address.rpartition(":")[2])


def start_task(server: Served, seconds: str = "1000") -> str:
    made = server.ask("POST", "/api/pool/default/workflow", json=task(seconds))
    assert 200 == made.status_code, made.text
    name = made.json()["name"]
    server.until(lambda: server.get(f"/api/workflow/{name}")["status"] == "RUNNING")
    return name


def wait_for_health(server: Served) -> httpx.Response:
    return httpx.get(f"{server.address}/health", timeout=WAIT_S)


def cancel(server: Served, name: str) -> None:
    server.ask("POST", f"/api/workflow/{name}/cancel")
    server.until(lambda: server.get(f"/api/workflow/{name}")["status"] == "FAILED_CANCELED")


def is_free(port: int) -> bool:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def eventually(look: Any) -> None:
    give_up = time.monotonic() + WAIT_S
    while not look():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def holders(data: Path) -> list[int]:
    """The processes that hold the socket of a server."""
    path = os.fsencode(data.resolve() / "listener.sock")
    found: list[int] = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = each.read_bytes().split(b"\0")
        except OSError:
            continue
        if path in words:
            found.append(int(each.parent.name))
    return found


@pytest.fixture
def data(tmp_path) -> Iterator[Path]:
    folder = tmp_path / "data"
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
    eventually(lambda: not holders(folder))


@pytest.mark.served
def test_a_killed_server_comes_back_though_another_process_waits_for_its_address(data, tmp_path):
    sign = tmp_path / "sign"
    with Served(data, *LOCAL) as first:
        port = port_of(first)
        name = start_task(first)
        hostile = subprocess.Popen([sys.executable, "-c", HOSTILE, str(port), str(sign)])
        try:
            first.until(sign.exists)

            first.stop(signal.SIGKILL)

            # What is asked meanwhile waits for the next server.
            answers: list[httpx.Response] = []
            ask = threading.Thread(target=lambda: answers.append(wait_for_health(first)))
            ask.start()
            with Served(data, *LOCAL, "--port", str(port)) as second:
                ask.join(WAIT_S)
                assert [200] == [each.status_code for each in answers]
                assert "RUNNING" == second.get(f"/api/workflow/{name}")["status"]
                assert None is hostile.poll()
                assert "listens" != sign.read_text()
                cancel(second, name)
                second.stop()
        finally:
            hostile.kill()
            hostile.wait()


@pytest.mark.served
def test_the_address_is_kept_while_tasks_run_and_given_up_with_the_last_one(data):
    with Served(data, *LOCAL) as server:
        port = port_of(server)
        (holder,) = holders(data)
        os.kill(holder, signal.SIGKILL)
        # One that is killed is replaced.
        server.until(lambda: holders(data) not in ([], [holder]))
        name = start_task(server)
        assert 0 == server.stop()
        assert not is_free(port)
    with Served(data, *LOCAL) as server:
        # With port 0 any address will do, so it is the one that is held.
        assert port == port_of(server)
        cancel(server, name)
        assert 0 == server.stop()
    eventually(lambda: not holders(data))
    assert is_free(port)
    assert not (data / "listener.sock").exists()


@pytest.mark.served
def test_a_server_that_moves_lets_go_of_its_address_and_says_what_that_means(data):
    with Served(data, *LOCAL) as server:
        before = port_of(server)
        server.stop(signal.SIGKILL)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with Served(data, *LOCAL, "--port", str(port)) as server:
        assert port == port_of(server)
        assert f"listened on http://127.0.0.1:{before} before, and lets go of it" in server.log
        assert is_free(before)
        assert 1 == len(holders(data))
        server.stop()


class Held:
    """A holder in a thread, with a socket of its own."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "listener.sock"
        self._taken: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.address = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(self.path))
        self._door.listen()
        body = json.dumps({"message": "none runs"})
        answer = f"HTTP/1.1 503 No\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        paths = (str(self.path), str(folder / "running.lock"))
        self._holder = socket_holder.SocketHolder(self.listener, self._door, paths, answer)
        self.thread = threading.Thread(target=self._holder.run)
        self.thread.start()

    def take(self) -> tuple[bytes, list[int], socket.socket]:
        connection = socket.socket(socket.AF_UNIX)
        self._taken.append(connection)
        connection.connect(str(self.path))
        connection.sendall(socket_holder.TAKE)
        said, descriptors, _, _ = socket.recv_fds(connection, 16, 1)
        return said, descriptors, connection

    def end(self) -> None:
        self.path.unlink(missing_ok=True)
        for each in self._taken:
            each.close()
        self.thread.join(WAIT_S)
        assert not self.thread.is_alive()
        self.listener.close()
        self._door.close()


@pytest.fixture
def held(monkeypatch) -> Iterator[Held]:
    monkeypatch.setattr(socket_holder, "WAIT_S", 0.0)
    with tempfile.TemporaryDirectory(prefix="bough-") as name:
        os.chmod(name, 0o755)  # noqa: S103 - so that only the holder itself is in the way
        found = Held(Path(name))
        yield found
        found.end()


def test_who_asks_where_no_server_comes_back_is_told_so(held):
    for _ in range(2):
        answer = httpx.get(held.address, timeout=WAIT_S)
        assert (503, {"message": "none runs"}) == (answer.status_code, answer.json())


def test_one_server_at_a_time_has_the_socket(held):
    said, descriptors, server = held.take()
    assert socket_holder.HERE == said
    taken = socket.socket(fileno=descriptors[0])
    assert held.listener.getsockname() == taken.getsockname()
    assert (socket_holder.BUSY, []) == held.take()[:2]
    server.close()
    eventually(lambda: held.take()[0] == socket_holder.HERE)
    taken.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root can be another user")
def test_another_user_cannot_take_the_socket(held):
    held.path.chmod(0o777)
    script = (
        "import os, socket, sys; os.setuid(int(sys.argv[2])); s = socket.socket(socket.AF_UNIX); "
        "s.connect(sys.argv[1]); s.sendall(b'take'); print(socket.recv_fds(s, 16, 1)[:2])"
    )
    command = [sys.executable, "-I", "-S", "-c", script, str(held.path), str(NOBODY)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=WAIT_S)
    assert "(b'', [])" == ended.stdout.strip() or "ConnectionResetError" in ended.stderr
    assert socket_holder.HERE == held.take()[0]


def test_a_holder_ends_after_a_farewell_where_nothing_runs(held):
    _, descriptors, server = held.take()
    os.close(descriptors[0])
    server.sendall(socket_holder.BYE)
    server.close()
    held.thread.join(WAIT_S)
    assert not held.thread.is_alive()
    assert not held.path.exists()
