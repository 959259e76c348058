"""The handshake that turns an HTTP connection into a websocket, for client and server."""

from __future__ import annotations

import os
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from hashlib import sha1

_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY_BYTES = 16
VERSION = "13"


def new_request_key() -> str:
    """A random key, by which the client recognises the answer to its own request."""
    return b2a_base64(os.urandom(_KEY_BYTES), newline=False).decode()


def accept_key(key: str) -> str:
    """The server's answer to such a key."""
    digest = sha1(key.encode() + _MAGIC, usedforsecurity=False).digest()
    return b2a_base64(digest, newline=False).decode()


def request_headers(key: str, protocol: str | None = None) -> dict[str, str]:
    """The headers by which a client asks for a websocket."""
    asked = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": VERSION,
        "Sec-WebSocket-Key": key,
    }
    return asked if protocol is None else {**asked, "Sec-WebSocket-Protocol": protocol}


def fault_of(headers: Mapping[str, str]) -> str | None:
    """Why a request does not ask for a websocket; `None`: it does."""
    if headers.get("upgrade", "").lower() != "websocket":
        return "it must be asked for as a websocket (Upgrade: websocket)"
    if "upgrade" not in _words(headers.get("connection", "")):
        return "the header Connection must be Upgrade"
    if headers.get("sec-websocket-version") != VERSION:
        return f"the header Sec-WebSocket-Version must be {VERSION}"
    try:
        key = a2b_base64(headers.get("sec-websocket-key", ""))
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        return f"the header Sec-WebSocket-Key must be {_KEY_BYTES} bytes in base64"
    return None


def offers(headers: Mapping[str, str], protocol: str) -> bool:
    """Whether a client offers a subprotocol."""
    return protocol in _words(headers.get("sec-websocket-protocol", ""))


def answer(headers: Mapping[str, str], protocol: str | None = None) -> bytes:
    """The response by which a server switches the connection to a websocket."""
    lines = [
        "HTTP/1.1 101 Switching Protocols",
        "Connection: Upgrade",
        "Upgrade: websocket",
        f"Sec-WebSocket-Accept: {accept_key(headers['sec-websocket-key'])}",
    ]
    if protocol is not None:
        lines.append(f"Sec-WebSocket-Protocol: {protocol}")
    return "\r\n".join([*lines, "", ""]).encode()


def _words(text: str) -> list[str]:
    return [each.strip().lower() for each in text.split(",")]
