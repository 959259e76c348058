"""Sessions with running tasks: where a client opens the websocket of one."""

from __future__ import annotations

import msgspec


class RouterAnswer(msgspec.Struct, frozen=True):
    """Where to open a websocket, and with what key; the key is good for one, and for a minute."""

    router_address: str
    key: str
    #: Existing clients send it back; there is one router, so it is empty.
    cookie: str = ""


class RsyncPath(msgspec.Struct, frozen=True):
    """A folder of tasks that rsync reaches, beside the working folder."""

    path: str
    writable: bool


class RsyncConfig(msgspec.Struct, frozen=True):
    """What clients must know of rsync."""

    enabled: bool
    allowed_paths: dict[str, RsyncPath]


class PluginConfigs(msgspec.Struct, frozen=True):
    """What clients must know of parts that a site may have or not."""

    rsync: RsyncConfig
