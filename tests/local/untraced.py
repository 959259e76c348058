"""A warden on a machine where no process may be held at its beginning."""

from __future__ import annotations

import sys

from bough.backends.local.supervisor import fork_server as wardenship
from bough.backends.local.supervisor import supervised_task as kept


def never(pid: int) -> bool:
    return pid < 0


if __name__ == "__main__":
    kept.seize = never
    wardenship.main(int(sys.argv[1]))
