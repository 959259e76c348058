"""A fork server that is root and may not make devices, as in containers of Podman."""

from __future__ import annotations

import sys
from pathlib import Path

from bough.backends.local.sandbox import syscalls
from bough.backends.local.supervisor import fork_server

_CAP_MKNOD = 27
_ALL = frozenset(range(64))


def drop_mknod() -> None:
    """Let this process, and all that it starts, make no devices any more."""
    syscalls.keep_capabilities(_ALL - {_CAP_MKNOD})


def may_mknod() -> bool:
    """Whether this process may make devices."""
    status = Path("/proc/self/status").read_text()
    (effective,) = (line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective, 16) >> _CAP_MKNOD & 1)


if __name__ == "__main__":
    drop_mknod()
    fork_server.main(int(sys.argv[1]))
