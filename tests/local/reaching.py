"""Sessions with a real task in one kind of sandbox: `python -m tests.local.reaching KIND FOLDER`.

The process becomes the user that this kind is for, runs a task with a local backend, opens sessions
with it by the backend alone, and writes what it found as JSON.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import msgspec

from bough.backends.local.sandbox import sandbox, sandbox_probe
from bough.backends.local.task_command import SandboxKind
from bough.model.session import SessionConnection, SessionKind, SessionNews, SessionRequest
from bough.websocket.channels import OUTPUT, STATUS
from bough.websocket.frames import BINARY, FrameReader, frame
from tests.local.bench import PATIENCE_S, Bench, until
from tests.local.networking import NOBODY, PYTHON, become

#: Imported while this process can read everything.
_NEEDED_LATER = (sandbox_probe, FrameReader, os)
NAMESPACES = "for each in mnt pid ipc net user; do readlink /proc/self/ns/$each; done; id -u; pwd"
SERVE = """
import socket
listening = socket.create_server(("127.0.0.1", 7000))
print("listens", flush=True)
while True:
    connection, _ = listening.accept()
    connection.sendall(b"of the task")
    connection.close()
"""


class Line:
    """A session, as a server has it."""

    def __init__(self, bench: Bench, attempt: str, wanted: SessionRequest) -> None:
        self.socket = socket.socket(fileno=bench.backend.open_session(attempt, wanted))
        self.socket.settimeout(PATIENCE_S)

    def connect(self, key: str = "") -> socket.socket:
        """A client of it."""
        ours, theirs = socket.socketpair()
        ours.settimeout(PATIENCE_S)
        told = msgspec.json.encode(SessionConnection(b"HELLO\n", key=key))
        socket.send_fds(self.socket, [told], [theirs.fileno()])
        theirs.close()
        assert b"HELLO\n" == ours.recv(6)
        return ours

    def news(self) -> SessionNews:
        return msgspec.json.decode(self.socket.recv(65_536), type=SessionNews)


def messages(connection: socket.socket) -> list[bytes]:
    """All messages until the other end closes."""
    reader, found, part = FrameReader(masked=False), [], b""
    while data := connection.recv(65_536):
        for piece in reader.feed(data):
            part += bytes(piece.data)
            if piece.last and piece.opcode != BINARY:
                return found
            if piece.last:
                found.append(part)
                part = b""
    return found


def tell(bench: Bench) -> dict[str, Any]:
    task = bench.shell(f"{NAMESPACES}; exec {PYTHON} -u -c '{SERVE}'")
    bench.start(task)
    bench.wait_text(task.attempt, "listens")
    told: dict[str, Any] = {"task": bench.texts(task.attempt)[:-1]}
    wanted = SessionRequest(
        SessionKind.EXEC, ("sh", "-c", f"{NAMESPACES}; exit 5"), terminal=False, channels=True
    )
    line = Line(bench, task.attempt, wanted)
    found = messages(line.connect())
    output = b"".join(each[1:] for each in found if each[0] == OUTPUT)
    told["session"] = output.decode().splitlines()
    told["status"] = [json.loads(each[1:]) for each in found if each[0] == STATUS]
    news = line.news()
    told["ended"] = (news.ended, news.exit_code)
    told["port"] = _forward(bench, task.attempt)
    # What the line does not hold is ended with everything below it.
    sleeping = SessionRequest(SessionKind.EXEC, ("sleep", "86399"), terminal=False, channels=True)
    line = Line(bench, task.attempt, sleeping)
    client = line.connect()
    until(_sleeping)
    line.socket.close()
    until(lambda: not _sleeping())
    client.close()
    told["left"] = _sleeping()
    return told


def _forward(bench: Bench, attempt: str) -> str:
    line = Line(bench, attempt, SessionRequest(SessionKind.PORT_FORWARD, port=7000))
    control = line.connect()
    control.sendall(frame(BINARY, b'{"key": "one"}', masked=True))
    assert "one" == line.news().key
    return b"".join(messages(line.connect("one"))).decode()


def _sleeping() -> list[int]:
    found: list[int] = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if each.read_bytes() == b"sleep\x0086399\0":
                found.append(int(each.parent.name))
        except OSError:
            continue
    return found


def main(kind: str, folder: Path) -> None:
    if kind != SandboxKind.NAMESPACES:
        become(NOBODY, folder)
        sandbox._WITHOUT_ROOT = (SandboxKind(kind),)
    bench = Bench(folder, private=True)
    try:
        told = tell(bench)
    finally:
        bench.end()
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
