"""A proxy before a store that counts, cuts connections, or holds them until it is told to go on."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
from pathlib import Path
from urllib.parse import urlsplit

_CHUNK = 64 << 10


class Proxy:
    """Passes bytes on to a store."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = parts.hostname or "", parts.port or 80
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        #: How many bytes went to the store and came from it, over all connections.
        self.up = 0
        self.down = 0
        #: Connections are cut after so many bytes came from the store, or went there, so often.
        self.cut_down: int | None = None
        self.cut_up: int | None = None
        self.cuts = 0
        #: Nothing is passed on after so many bytes in one direction, until `go_on`.
        self._hold_at: int | None = None
        self.holding = threading.Event()
        self._go_on = threading.Event()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *error: object) -> None:
        self._go_on.set()
        for each in [self._listening, *self._open]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def hold_at(self, count: int) -> None:
        """Count anew, and hold everything after so many bytes in one direction."""
        self.up = self.down = 0
        self.holding.clear()
        self._go_on.clear()
        self._hold_at = count

    def go_on(self) -> None:
        """Pass everything on again."""
        self._hold_at = None
        self._go_on.set()

    def clients(self) -> set[int]:
        """The processes that are connected."""
        port = self._listening.getsockname()[1]
        inodes: set[str] = set()
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if int(fields[2].rpartition(":")[2], 16) == port and fields[9] != "0":
                inodes.add(f"socket:[{fields[9]}]")
        found: set[int] = set()
        for each in Path("/proc").iterdir():
            if each.name.isdigit():
                with contextlib.suppress(OSError):
                    links = {os.readlink(file) for file in (each / "fd").iterdir()}
                    if links & inodes:
                        found.add(int(each.name))
        return found - {os.getpid()}

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                store = socket.create_connection(self._target)
                self._open += [client, store]
                for from_, to, up in ((client, store, True), (store, client, False)):
                    threading.Thread(
                        target=self._pass_on, args=(from_, to, up), daemon=True
                    ).start()

    def _pass_on(self, from_: socket.socket, to: socket.socket, up: bool) -> None:
        passed = 0
        with contextlib.suppress(OSError):
            while content := from_.recv(_CHUNK):
                passed += len(content)
                if up:
                    self.up += len(content)
                else:
                    self.down += len(content)
                cut = self.cut_up if up else self.cut_down
                if cut is not None and passed > cut and self.cuts > 0:
                    self.cuts -= 1
                    for each in (from_, to):
                        # Both sides hear of it at once, whatever they are doing.
                        linger = struct.pack("ii", 1, 0)
                        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                        each.shutdown(socket.SHUT_RDWR)
                        each.close()
                    return
                if self._hold_at is not None and max(self.up, self.down) > self._hold_at:
                    self.holding.set()
                    self._go_on.wait()
                to.sendall(content)
        for each in (from_, to):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
