"""Sessions with running tasks: where a client opens the websocket."""

from __future__ import annotations

import msgspec


class RouterAnswer(msgspec.Struct, frozen=True):
    """Where to open the websocket, and its key, which is valid once and for one minute."""

    router_address: str
    key: str
    #: Existing clients send it back; there is one router, so it is empty.
    cookie: str = ""


class RsyncPath(msgspec.Struct, frozen=True):
    """A folder of a task that rsync can reach, besides the working folder."""

    path: str
    writable: bool


class RsyncConfig(msgspec.Struct, frozen=True):
    """What clients need to know about rsync."""

    enabled: bool
    allowed_paths: dict[str, RsyncPath]


class PluginConfigs(msgspec.Struct, frozen=True):
    """What clients need to know about optional parts of a site."""

    rsync: RsyncConfig
