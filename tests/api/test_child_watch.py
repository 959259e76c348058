"""What the server tells a process that it starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bough.server.child_watch import ChildWatch
from bough.server.loop_line import Line, Listens

#: Notes what it is told until it is asked for it.
LISTENER = """
import socket, sys
import msgspec
from bough.server.loop_line import Line
line = Line(socket.socket(fileno=int(sys.argv[1])))
told = []
while True:
    said = line.read(msgspec.msgpack.Decoder())
    if said["type"] == "listens":
        line.socket.sendall(len(content := msgspec.msgpack.encode(told)).to_bytes(4) + content)
        break
    told.append(said["type"])
"""


class Beginning(msgspec.Struct, tag="begin"):
    """Anything that a process begins with."""


class ToldWhileItBegins(ChildWatch):
    """It is told to stop at the moment when it is told to begin."""

    def _module_name(self) -> str:
        return "listener"

    def _descriptors(self) -> tuple[int, ...]:
        return ()

    def _begin_message(self) -> msgspec.Struct:
        self.tell_to_stop()
        return Beginning()

    def _read(self, line: Line) -> Any:
        line.send(Listens(""))
        return line.read(msgspec.msgpack.Decoder())

    def _hear(self, said: Any) -> None:
        self._became_ready(said)


def test_a_process_that_begins_is_told_to_stop_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # A second time would mean that it waits for no request.
    (tmp_path / "listener.py").write_text(LISTENER)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), os.getenv("PYTHONPATH", ""))))
    watch = ToldWhileItBegins("the listener")
    watch.start()
    try:
        assert ["begin", "stop"] == sorted(watch.begin())
    finally:
        watch.stop()
