"""Rsync in a task: its own program, as a daemon for one connection, with the task's rights.

Existing clients know the module `osmo`, which is the working folder here; the others are named
after what they hold.
"""

from __future__ import annotations

import os
import socket

from bough.backends.local.preparation.layout import SEEN_OUTPUT, SEEN_TEMPORARY
from bough.backends.local.sessions.joining import RunningTask
from bough.backends.local.sessions.task_process import CommandInTask

PROGRAM = "rsync"
#: Newer versions read their configuration from nothing but a plain file, which the task itself
#: writes; it is gone when the connection is.
_SCRIPT = """
file=$(mktemp) || exit 1
printf %s "$1" > "$file"
rsync --server --daemon --config="$file" .
code=$?
rm -f "$file"
exit $code
"""


def modules(task: RunningTask) -> dict[str, str]:
    """The folders that can be reached, by the names of their modules."""
    command = task.command
    environment = command.environment
    return {
        "osmo": command.working_folder,
        "output": environment.get("BOUGH_OUTPUT", SEEN_OUTPUT),
        "tmp": environment.get("TMPDIR", SEEN_TEMPORARY),
    }


def rsync_command(task: RunningTask, stream: socket.socket) -> CommandInTask:
    """The command that serves one connection."""
    argv = ("/bin/sh", "-c", _SCRIPT, PROGRAM, _configuration(task))
    return CommandInTask(argv, stream=stream.fileno())


def _configuration(task: RunningTask) -> str:
    lines = [
        "use chroot = no",
        "munge symlinks = no",
        "log file = /dev/null",
        "reverse lookup = no",
    ]
    account = task.command.account
    if os.geteuid() == 0 and account is None:
        # It would become another user by itself.
        lines += ["uid = 0", "gid = 0"]
    for name, path in modules(task).items():
        lines += [f"[{name}]", f"path = {path}", "read only = no"]
    return "\n".join(lines) + "\n"
