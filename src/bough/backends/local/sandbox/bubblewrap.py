"""The same sandbox by bubblewrap, for a server that is not root and cannot use user namespaces.

Bubblewrap stays in the task's process group and would end by signals that are meant for the task,
so it is started with signals ignored; `env --default-signal` resets them inside the sandbox.
"""

from __future__ import annotations

import os
from pathlib import Path

from bough.backends.local.data.paths import shown
from bough.backends.local.errors import Unstartable
from bough.backends.local.sandbox.devices import ACCELERATORS
from bough.backends.local.sandbox.executing import find_program
from bough.backends.local.sandbox.root_filesystem import OWN, find_resolver, find_running
from bough.backends.local.task_command import Sandbox, TaskCommand

PROGRAM = "bwrap"
_RESTORE = ("/usr/bin/env", "--default-signal", "--")
#: By these the processes of a task are found.
_OUTER = ("BOUGH_ATTEMPT",)
#: A little fewer than bubblewrap accepts.
_MOST_ARGUMENTS = 8_500


def wrap(command: TaskCommand, sandbox: Sandbox) -> tuple[str, ...]:
    """The arguments that run a command in a sandbox."""
    program = find_program(PROGRAM)
    if program is None:
        raise Unstartable("bubblewrap is not installed any more")
    if "=" in command.argv[0]:
        raise Unstartable(f'the program {shown(command.argv[0])} must not have "=" in its name')
    return (
        program,
        "--args",
        str(_tell_variables(command.environment)),
        "--unshare-pid",
        "--unshare-ipc",
        "--die-with-parent",
        "--cap-drop",
        "ALL",
        *_machine(sandbox),
        *_devices(frozenset(sandbox.hidden_devices)),
        *_own(sandbox),
        "--proc",
        "/proc",
        "--chdir",
        command.working_folder,
        "--",
        *_RESTORE,
        *command.argv,
    )


def outer_environment(command: TaskCommand) -> dict[str, str]:
    """What bubblewrap itself is started with.

    It runs outside of the sandbox, where the task's own variables could make it load or write
    anything (`LD_PRELOAD`, `LD_DEBUG_OUTPUT`).
    """
    return {name: command.environment[name] for name in _OUTER if name in command.environment}


def _tell_variables(environment: dict[str, str]) -> int:
    """A file in memory by which bubblewrap sets the task's variables; others cannot read it."""
    words = [word for name, value in environment.items() for word in ("--setenv", name, value)]
    if len(words) > _MOST_ARGUMENTS:
        raise Unstartable(
            f"environment: {len(environment)} variables are more than bubblewrap can set; write "
            "them to a file (files:) instead"
        )
    descriptor = os.memfd_create("variables", 0)
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        file.write(b"".join(os.fsencode(word) + b"\0" for word in words))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _machine(sandbox: Sandbox) -> list[str]:
    taken = OWN | {Path(each.target).parts[1] for each in sandbox.mounts}
    options: list[str] = []
    for entry in sorted(os.scandir("/"), key=lambda each: each.name):
        if entry.name in taken:
            continue
        if entry.is_symlink():
            options += ("--symlink", os.readlink(entry.path), entry.path)
        elif entry.is_dir(follow_symlinks=False):
            options += ("--ro-bind", entry.path, entry.path)
    for each in map(Path, sandbox.hidden):
        if not each.parts[1:2] or each.parts[1] in taken:
            continue
        if each.is_dir():
            options += ("--tmpfs", str(each), "--remount-ro", str(each))
        elif each.exists():
            options += ("--dev-bind", os.devnull, str(each))
    return options


def _devices(hidden: frozenset[str]) -> list[str]:
    options = ["--dev", "/dev", "--tmpfs", "/dev/shm"]  # noqa: S108 - the task's own
    for entry in sorted(os.scandir("/dev"), key=lambda each: each.name):
        if entry.name.startswith(ACCELERATORS) and entry.path not in hidden:
            options += ("--dev-bind", entry.path, entry.path)
    for each in hidden:
        if each.count("/") > 2:
            # In a folder that is shown whole.
            options += ("--bind", os.devnull, each)
    return [*options, "--remount-ro", "/dev"]


def _own(sandbox: Sandbox) -> list[str]:
    options = ["--dir", "/run", "--bind", sandbox.temporary, "/tmp"]  # noqa: S108 - the task's own
    if Path("/var/tmp").is_dir() and not Path("/var/tmp").is_symlink():  # noqa: S108
        options += ("--bind", sandbox.temporary, "/var/tmp")  # noqa: S108
    for each in find_running():
        options += ("--ro-bind", each, each)
    resolver = find_resolver()
    if sandbox.resolver and resolver is not None:
        options += ("--ro-bind", sandbox.resolver, str(resolver))
    for each in sandbox.mounts:
        options += ("--bind" if each.writable else "--ro-bind", each.source, each.target)
    return options
