"""Moves a process from the server's namespaces into those of a running task."""

from __future__ import annotations

import fcntl
import os
import select
from pathlib import Path
from typing import NamedTuple

from bough.backends.local.errors import Unstartable
from bough.backends.local.sandbox import syscalls
from bough.backends.local.sandbox.limits import Cgroup
from bough.backends.local.task_command import TaskCommand

#: In the order in which they can be entered.
_KINDS = {
    "net": syscalls.CLONE_NEWNET,
    "ipc": syscalls.CLONE_NEWIPC,
    "pid": syscalls.CLONE_NEWPID,
    "mnt": syscalls.CLONE_NEWNS,
    "user": syscalls.CLONE_NEWUSER,
}
_GONE = "the task is ending"
_NS_GET_USERNS = 0xB701


class RunningTask(NamedTuple):
    """A running task, as its supervisor knows it."""

    command: TaskCommand
    #: A process that lives as long as the task; see `find_inner`.
    pid: int
    #: A pidfd of that process, which stays valid when the process id is reused.
    process: int
    group: Cgroup | None
    #: Its limit on open files.
    limit: tuple[int, int]


def find_inner(task: RunningTask) -> RunningTask:
    """The same task, with a process that is inside its namespaces.

    Bubblewrap stays outside; its child is the init process of the namespace, and appears a moment
    after bubblewrap started. If no such process is found, the session is refused: namespaces
    outside of the sandbox are never entered instead.
    """
    if task.command.sandbox is None:
        return task
    try:
        if not _is_outside(task.pid):
            return task
        for text in Path(f"/proc/{task.pid}/task/{task.pid}/children").read_text().split():
            process = os.pidfd_open(int(text))
            if not _is_outside(int(text)):
                return task._replace(pid=int(text), process=process)
            os.close(process)
    except OSError:
        raise Unstartable(_GONE) from None
    raise Unstartable("the task is not in its sandbox yet; try again")


def shares_network(task: RunningTask) -> bool:
    """Whether the task uses the network of this machine."""
    try:
        return _identity("self", "net") == _identity(str(task.pid), "net")
    except OSError:
        raise Unstartable(_GONE) from None


def join_network(task: RunningTask) -> None:
    """Enter the task's network, for good."""
    _join(task, ("net",))


def join_all(task: RunningTask) -> None:
    """Enter all namespaces of the task; only new children get into its process namespace."""
    if task.command.sandbox is not None:
        syscalls.leave_keyring()
    _join(task, tuple(_KINDS))


def _join(task: RunningTask, names: tuple[str, ...]) -> None:
    opened: dict[str, int] = {}
    try:
        for name in names:
            if _identity("self", name) != _identity(str(task.pid), name):
                path = f"/proc/{task.pid}/ns/{name}"
                opened[name] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        _check_alive(task)
    except OSError:
        raise Unstartable(_GONE) from None
    try:
        _enter(opened)
    except OSError as error:
        raise Unstartable(f"the task cannot be entered: {error.strerror}") from None
    finally:
        for descriptor in opened.values():
            os.close(descriptor)


def _enter(opened: dict[str, int]) -> None:
    """Enter namespaces, each through the user namespace that it belongs to.

    User namespaces are nested: the group's, and within it those that bubblewrap makes for the task.
    So the task's own comes last; from within it the others can no longer be entered.
    """
    current = os.stat("/proc/self/ns/user")
    for name, descriptor in opened.items():
        owner = descriptor if name == "user" else fcntl.ioctl(descriptor, _NS_GET_USERNS)
        found = os.fstat(owner)
        if not os.path.samestat(found, current):
            syscalls.set_namespace(owner, syscalls.CLONE_NEWUSER)
            current = found
        if name != "user":
            os.close(owner)
            syscalls.set_namespace(descriptor, _KINDS[name])


def _check_alive(task: RunningTask) -> None:
    """Check that it is still the same process, so that what was opened by its id is its own."""
    poll = select.poll()
    poll.register(task.process, select.POLLIN)
    if poll.poll(0):
        raise ProcessLookupError


def _is_outside(pid: int) -> bool:
    """Whether a process shares this one's process or mount namespace."""
    return any(_identity("self", each) == _identity(str(pid), each) for each in ("pid", "mnt"))


def _identity(process: str, name: str) -> str:
    return os.readlink(f"/proc/{process}/ns/{name}")
