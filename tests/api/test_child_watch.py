"""What the server tells a process that it starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bough.server.child_watch import Child, ChildWatch
from bough.server.loop_messages import Listens
from bough.server.process_channel import Line

#: Notes what it is told until it is asked for it.
LISTENER = """
import socket
import msgspec
from bough.server.process_channel import Line

def main(descriptor, parent):
    line = Line(socket.socket(fileno=descriptor))
    told = []
    while True:
        said = line.read(msgspec.msgpack.Decoder())
        if said["type"] == "listens":
            line.socket.sendall(len(content := msgspec.msgpack.encode(told)).to_bytes(4) + content)
            return 0
        told.append(said["type"])
"""


class Beginning(msgspec.Struct, tag="begin"):
    """Anything that a process begins with."""


class ToldWhileItBegins(ChildWatch):
    """It is told to stop at the moment when it is told to begin."""

    def __init__(self) -> None:
        child = Child(
            "the listener",
            "listener",
            descriptors=lambda: (),
            begin_message=self._begin_message,
            read=self._read,
            hear=self._became_ready,
        )
        super().__init__(child)

    def _begin_message(self) -> msgspec.Struct:
        self.tell_to_stop()
        return Beginning()

    def _read(self, line: Line) -> Any:
        line.send(Listens(""))
        return line.read(msgspec.msgpack.Decoder())


def test_a_process_that_begins_is_told_to_stop_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # A second time would mean that it waits for no request.
    (tmp_path / "listener.py").write_text(LISTENER)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), os.getenv("PYTHONPATH", ""))))
    watch = ToldWhileItBegins()
    watch.start()
    try:
        assert ["begin", "stop"] == sorted(watch.begin())
    finally:
        watch.stop()
