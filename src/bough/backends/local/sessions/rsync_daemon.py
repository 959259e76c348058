"""Runs rsync in a task, as a daemon for one connection with the task's permissions.

The module `osmo`, which existing clients know, is the working folder; the others are named after
their contents.
"""

from __future__ import annotations

import os
import socket

from bough.backends.local.preparation.layout import SEEN_OUTPUT, SEEN_TEMPORARY
from bough.backends.local.sessions.task_namespaces import RunningTask
from bough.backends.local.sessions.task_process import CommandInTask

PROGRAM = "rsync"
#: Newer versions of rsync read their configuration only from a plain file. This script writes one
#: within the task, and removes it after the connection.
_SCRIPT = """
file=$(mktemp) || exit 1
printf %s "$1" > "$file"
rsync --server --daemon --config="$file" .
code=$?
rm -f "$file"
exit $code
"""


def modules(task: RunningTask) -> dict[str, str]:
    """The folders that rsync can reach, by module name."""
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
        # Otherwise rsync would switch to another user by itself.
        lines += ["uid = 0", "gid = 0"]
    for name, path in modules(task).items():
        lines += [f"[{name}]", f"path = {path}", "read only = no"]
    return "\n".join(lines) + "\n"
