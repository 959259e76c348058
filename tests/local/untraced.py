"""A fork server on a machine where no process may be held at its beginning."""

from __future__ import annotations

import sys

from bough.backends.local.supervisor import fork_server, supervised_task


def never(pid: int) -> bool:
    return pid < 0


if __name__ == "__main__":
    supervised_task.seize = never
    fork_server.main(int(sys.argv[1]))
