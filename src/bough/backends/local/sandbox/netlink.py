"""Network interfaces and routes of Linux, as far as a group's network needs them.

The programs that people use for this (`ip`, `nft`) may not be installed, and take longer to start.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from collections.abc import Iterable, Iterator

_GET_FLAGS, _SET_FLAGS = 0x8913, 0x8914
_UP = 0x1
#: A name and flags, and the rest of a `struct ifreq`.
_INTERFACE = "16sh22x"

_HEADER = "=IHHII"
_REQUEST, _ACKNOWLEDGE, _DUMP, _CREATE = 0x1, 0x4, 0x300, 0x400
_ERROR, _DONE, _NEW_ADDRESS, _GET_ADDRESSES, _NEW_ROUTE = 2, 3, 20, 22, 24
_ADDRESS = "=BBBBi"
_LOCAL_ADDRESS = 2
_ROUTE = "=BBBBBBBBI"
_MAIN_TABLE, _STATIC, _UNREACHABLE = 254, 4, 7
_DESTINATION = 1
_ATTRIBUTE = "=HH"
_ANSWER_BYTES = 65_536


def raise_loopback() -> None:
    """Let processes of this network namespace reach each other."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack(_INTERFACE, b"lo", 0)
        found = fcntl.ioctl(any_socket, _GET_FLAGS, asked)
        flags = struct.unpack(_INTERFACE, found)[1]
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack(_INTERFACE, b"lo", flags | _UP))


def own_addresses() -> tuple[str, ...]:
    """The IPv4 addresses of this network namespace, without those of the loopback."""
    request = struct.pack(_ADDRESS, socket.AF_INET, 0, 0, 0, 0)
    found: list[str] = []
    for kind, content in _ask(_GET_ADDRESSES, _DUMP, request):
        if kind != _NEW_ADDRESS:
            continue
        for number, value in _attributes(content[struct.calcsize(_ADDRESS) :]):
            if number == _LOCAL_ADDRESS and len(value) == 4 and value[0] != 127:
                found.append(socket.inet_ntoa(value))
    return tuple(found)


def forbid(addresses: Iterable[str]) -> None:
    """Let nothing of this network namespace reach some IPv4 addresses."""
    for each in addresses:
        route = struct.pack(
            _ROUTE, socket.AF_INET, 32, 0, 0, _MAIN_TABLE, _STATIC, 0, _UNREACHABLE, 0
        )
        target = struct.pack(_ATTRIBUTE, 8, _DESTINATION) + socket.inet_aton(each)
        for kind, content in _ask(_NEW_ROUTE, _ACKNOWLEDGE | _CREATE, route + target):
            number = -struct.unpack_from("=i", content)[0] if kind == _ERROR else 0
            if number:
                raise OSError(number, os.strerror(number), each)


def _ask(kind: int, flags: int, content: bytes) -> Iterator[tuple[int, bytes]]:
    """Send a request to the kernel; its answers, by their kinds."""
    size = struct.calcsize(_HEADER)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0) as line:
        line.send(struct.pack(_HEADER, size + len(content), kind, _REQUEST | flags, 1, 0) + content)
        while True:
            answer = line.recv(_ANSWER_BYTES)
            while len(answer) >= size:
                length, answered, _, _, _ = struct.unpack_from(_HEADER, answer)
                yield answered, answer[size:length]
                if answered in (_ERROR, _DONE):
                    return
                answer = answer[(length + 3) & ~3 :]


def _attributes(content: bytes) -> Iterator[tuple[int, bytes]]:
    while len(content) >= struct.calcsize(_ATTRIBUTE):
        length, number = struct.unpack_from(_ATTRIBUTE, content)
        yield number, content[4:length]
        content = content[(max(length, 4) + 3) & ~3 :]
