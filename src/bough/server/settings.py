"""What a server is told when it starts. Must not know what is done with it."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

import msgspec

Network = IPv4Network | IPv6Network

LOOPBACK = "127.0.0.1"
PORT = 8265
#: The file with the first administrator's token, in the data folder.
ADMIN_TOKEN_FILE = "admin-token"  # noqa: S105 - a name
DATABASE_FILE = "bough.db"
MAXIMUM_BODY_BYTES = 8 << 20


class Settings(msgspec.Struct, frozen=True):
    """The settings of one server."""

    data: Path
    host: str = LOOPBACK
    port: int = PORT
    #: `None`: a file in the data folder.
    database: str | None = None
    backend: str = "virtual"
    #: `None`: as many as the example needs, or a few.
    gpus: int | None = None
    #: A file with Nodes, instead of a number of GPUs.
    nodes: Path | None = None
    namespace: str = "default"
    example: bool = False
    #: Who may say in headers who somebody is; nobody, unless it is switched on.
    trusted_proxies: tuple[Network, ...] = ()
    maximum_body_bytes: int = MAXIMUM_BODY_BYTES

    @property
    def address(self) -> str:
        """The database: a URL, or the path of a file."""
        return self.database or str(self.data / DATABASE_FILE)

    @property
    def admin_token_file(self) -> Path:
        """Where the first administrator finds the token."""
        return self.data / ADMIN_TOKEN_FILE
