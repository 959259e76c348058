"""A task that is ready to run, in plain values: what the supervisor needs to know of it."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class SandboxKind(StrEnum):
    """How a task is given a view of its own."""

    #: By the server itself, which is root.
    NAMESPACES = "namespaces"
    #: Likewise, in a namespace of users, where the kernel lets everybody have one.
    USER_NAMESPACES = "user namespaces"
    BUBBLEWRAP = "bubblewrap"


class UserAccount(msgspec.Struct, frozen=True):
    """A user of this machine."""

    user_id: int
    group_id: int
    groups: tuple[int, ...] = ()


class Mount(msgspec.Struct, frozen=True):
    """A folder or file of this machine that a task sees, and where."""

    source: str
    target: str
    writable: bool = False


class Sandbox(msgspec.Struct, frozen=True):
    """What a task sees of the machine: everything read-only, but for what is mounted here."""

    #: The folder that is to be the task's `/tmp`.
    temporary: str
    #: An empty folder, over which its `/` is put together.
    root: str
    kind: SandboxKind = SandboxKind.NAMESPACES
    mounts: tuple[Mount, ...] = ()
    #: Folders and files that are empty for it: the server's data.
    hidden: tuple[str, ...] = ()


class TaskLimits(msgspec.Struct, frozen=True):
    """What a task may use where the machine can enforce it; `None`: as much as there is."""

    cpu_milli: int | None = None
    memory_bytes: int | None = None
    #: With all their threads.
    processes: int | None = None


class Bounds(msgspec.Struct, frozen=True):
    """How much is copied at once at most."""

    files: int = 100_000
    bytes: int = 2**40


class Copy(msgspec.Struct, frozen=True):
    """Files that are copied before, while or after a task runs."""

    source: str
    target: str
    #: Only files whose path below the source matches.
    regex: str | None = None
    #: Again and again while it runs; `None`: once.
    every_s: int | None = None
    #: A folder keeps its name below the target; else what is in it goes there. A file always does.
    named: bool = False
    #: Nothing is wrong if there is no such source.
    optional: bool = False
    #: The folder itself becomes the target, in place of what was there.
    move: bool = False
    bounds: Bounds = Bounds()


class Command(msgspec.Struct, frozen=True):
    """A task with every placeholder filled in."""

    attempt: str
    name: str
    argv: tuple[str, ...]
    environment: dict[str, str]
    #: Where it starts, as it sees it.
    working_folder: str
    #: `None`: it sees the machine as it is.
    sandbox: Sandbox | None = None
    limits: TaskLimits = TaskLimits()
    #: `None`: the server's own.
    account: UserAccount | None = None
    #: Before it starts; what fails here is a failure to start.
    inputs: tuple[Copy, ...] = ()
    #: While it runs and once when it has ended, however it did.
    checkpoints: tuple[Copy, ...] = ()
    #: When it has ended well, in this order.
    outputs: tuple[Copy, ...] = ()
    #: To be run when it was killed, where that does not end everything: its container.
    clean_up: tuple[str, ...] = ()
