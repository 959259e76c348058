"""Sessions as OSMO's own client has them, written from its wire alone: nothing of Bough is used.

It asks by POST, opens a websocket with the key and a cookie, and sends binary frames of 4 KiB.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import struct
from typing import Any
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from tests.e2e.served import PATIENCE_S

BUFFER = 4_096
RESIZE = b"\x00RESIZE:"


def ask(server: str, token: str, method: str, path: str) -> Any:
    """A request of the client; its answer."""
    request = Request(f"{server}/{path}", method=method)  # noqa: S310 - a server of the test
    request.add_header("Authorization", f"Bearer {token}")
    request.add_header("x-osmo-client-version", "6.0.0")
    with urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310
        return json.loads(answer.read())


def exec_into(server: str, token: str, name: str, task: str, command: str) -> Any:
    """Where to open the websocket of a command."""
    path = f"api/workflow/{name}/exec/task/{task}?entry_command={quote(command)}"
    return ask(server, token, "POST", path)


def forward(server: str, token: str, name: str, task: str, *, udp: bool, port: int) -> Any:
    """Where to open the websocket of a forwarded port."""
    path = f"api/workflow/{name}/portforward/{task}?task_ports={port}&use_udp={udp}"
    (found,) = ask(server, token, "POST", path)
    return found


class Closed(Exception):
    """The other end has closed the websocket."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class OsmoSocket:
    """A websocket of the client."""

    def __init__(self, found: Any, endpoint: str, token: str, key: str | None = None) -> None:
        parts = urlsplit(found["router_address"])
        assert "ws" == parts.scheme
        self._socket = socket.create_connection((parts.hostname, parts.port), PATIENCE_S)
        nonce = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET /{endpoint}/{key or found['key']} HTTP/1.1",
            f"Host: {parts.netloc}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {nonce}",
            "Sec-WebSocket-Version: 13",
            # It offers this, and must not get it if it was not accepted.
            "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits",
            f"Cookie: {found['cookie']}",
            f"Authorization: Bearer {token}",
            "x-osmo-client-version: 6.0.0",
        ]
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode())
        self._file = self._socket.makefile("rb")
        self.status = int(self._file.readline().split()[1])
        self.headers = {}
        while line := self._file.readline().strip():
            name, _, value = line.decode().partition(":")
            self.headers[name.lower()] = value.strip()
        if self.status != 101:
            self.refusal = self._file.read(int(self.headers["content-length"])).decode()

    def __enter__(self) -> OsmoSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()

    def send(self, data: bytes) -> None:
        """A binary message."""
        mask = os.urandom(4)
        size = len(data)
        head = bytes((0x82, 0x80 | size)) if size < 126 else b"\x82\xfe" + struct.pack(">H", size)
        changed = bytes(byte ^ mask[number % 4] for number, byte in enumerate(data))
        self._socket.sendall(head + mask + changed)

    def receive(self) -> bytes:
        """The next message; pings are answered by nothing here."""
        while True:
            first, second = self._file.read(2) or (0, 0)
            size = second & 0x7F
            if size == 126:
                size = int.from_bytes(self._file.read(2), "big")
            elif size == 127:
                size = int.from_bytes(self._file.read(8), "big")
            assert not second & 0x80, "a server does not mask"
            assert size <= 1 << 20, "the client takes no longer messages"
            data = self._file.read(size)
            if first & 0x0F in (1, 2):
                return data
            if first & 0x0F in (0, 8):
                raise Closed(int.from_bytes(data[:2], "big") if data else 1006)

    def until(self, text: bytes) -> bytes:
        """What comes until a text does."""
        found = b""
        while text not in found:
            found += self.receive()
        return found

    def rest(self) -> tuple[bytes, int]:
        """What comes until it is closed, and with what code."""
        found = b""
        while True:
            try:
                found += self.receive()
            except Closed as closed:
                return found, closed.code

    def close(self) -> None:
        """Say goodbye as the client's library does, and hang up."""
        self._socket.sendall(b"\x88\x82\x00\x00\x00\x00\x03\xe8")
        self.drop()

    def drop(self) -> None:
        """Be gone without a word."""
        self._file.close()
        self._socket.close()
