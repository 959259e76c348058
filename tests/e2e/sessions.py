"""What tests of sessions share: a task to look into, and the commands as people start them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.local import Local, job
from tests.e2e.served import PATIENCE_S, PROGRAM, Ended

#: Echoes connections on 7001, datagrams on 7002, sends what it is asked for on 7003, and reads
#: until the end before it answers on 7004. It marks when it is ready, and stays.
SERVICES = """
import os, socket, threading
def serve(port, answer):
    listening = socket.create_server(("127.0.0.1", port))
    def accept():
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=answer, args=(connection,), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
def echo(connection):
    while data := connection.recv(65536):
        connection.sendall(data)
    connection.close()
def give(connection):
    size = int(connection.makefile("rb").readline())
    block = memoryview(bytes(1 << 20))
    while size:
        size -= connection.send(block[:size])
    connection.close()
def count(connection):
    size = 0
    while data := connection.recv(65536):
        size += len(data)
    connection.sendall(str(size).encode())
    connection.close()
serve(7001, echo); serve(7003, give); serve(7004, count)
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind(("127.0.0.1", 7002))
print("ready", flush=True)
while True:
    data, address = datagrams.recvfrom(65536)
    datagrams.sendto(data[::-1], address)
"""


def begin(host: Local, pool: str = "p", name: str = "look", **fields: object) -> str:
    """A workflow whose task has something to look into; its ID, when it runs."""
    script = f"exec python3 -u -c '{SERVICES}'"
    found = host.send(pool, "NORMAL", job(0, name, script, **fields))
    host.until(lambda: "[main] ready" in host.log(found), lambda: host.shown(found))
    return found


def token_of(host: Local, user: str, *roles: str) -> str:
    """A new user with roles, and a token of theirs."""
    host.done("user", "create", user, *(f"--roles={each}" for each in roles))
    return host.json("token", "set", "t", "--user", user)["token"]


def run(
    host: Local, *arguments: str, given: bytes | None = None, token: str | None = None
) -> tuple[int, bytes, bytes]:
    """A command to its end: its exit code, output and errors."""
    ended = subprocess.run(
        [PROGRAM, "workflow", *arguments],
        env=environment(host, token),
        input=given,
        stdin=subprocess.DEVNULL if given is None else None,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return ended.returncode, ended.stdout, ended.stderr


def environment(host: Local, token: str | None = None) -> dict[str, str]:
    return {**host.environment, **({} if token is None else {"BOUGH_TOKEN": token})}


def said(ended: Ended | tuple[int, bytes, bytes]) -> str:
    return bytes(ended[1]).decode()


@contextlib.contextmanager
def started(host: Local, *arguments: str, token: str | None = None) -> Iterator[subprocess.Popen]:
    """A command that goes on; killed at the end, if it still does."""
    process = subprocess.Popen(
        [PROGRAM, "workflow", *arguments],
        env=environment(host, token),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


class Forwarded:
    """Ports that are forwarded by the command."""

    def __init__(self, process: subprocess.Popen) -> None:
        self.process = process
        # `Forwarding 127.0.0.1:1234 to port 80 of main`
        self.port = int(process.stdout.readline().split(b":")[1].split()[0])

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)


class Terminal:
    """The command in a terminal of its own, as in a person's window."""

    def __init__(self, host: Local, *arguments: str, rows: int = 24, columns: int = 80) -> None:
        self.pid, self._descriptor = pty.fork()
        if self.pid == 0:
            argv = [str(PROGRAM), "workflow", *arguments]
            os.execve(PROGRAM, argv, environment(host))  # noqa: S606 - the command itself
        self._seen = b""
        self._has_ended = False
        self.resize(rows, columns)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave no session behind, also where a test fails half-way."""
        if not self._has_ended:
            self.kill()

    def resize(self, rows: int, columns: int) -> None:
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, size)

    def type(self, text: bytes) -> None:
        os.write(self._descriptor, text)

    def until(self, text: bytes) -> bytes:
        """What is shown until a text is, after what was looked at before."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self._seen:
            left_s = deadline - time.monotonic()
            assert select.select([self._descriptor], [], [], max(0.0, left_s))[0], self._seen
            try:
                self._seen += os.read(self._descriptor, 65_536)
            except OSError:
                raise AssertionError(self._seen) from None
        found, _, self._seen = self._seen.partition(text)
        return found

    def end(self) -> int:
        """Its exit code, once it has ended."""
        with contextlib.suppress(OSError):
            while select.select([self._descriptor], [], [], PATIENCE_S)[0]:
                self._seen += os.read(self._descriptor, 65_536)
        _, status = os.waitpid(self.pid, 0)
        self._has_ended = True
        os.close(self._descriptor)
        return os.waitstatus_to_exitcode(status)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.end()


def marked(mark: str) -> list[int]:
    """The processes of this machine with a word in their command line."""
    found: list[int] = []
    for each in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if each.name.isdigit() and mark.encode() in (each / "cmdline").read_bytes():
                found.append(int(each.name))
    return [each for each in found if each != os.getpid() and _is_sleep(each)]


def _is_sleep(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/exe").endswith("/sleep")
    return False
