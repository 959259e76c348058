"""A task that is ready to run, in plain values: what the supervisor needs to know of it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from bough.model.object_store import StoreCredential


class SandboxKind(StrEnum):
    """How a sandbox is made."""

    #: By our own code, for a server that is root.
    NAMESPACES = "namespaces"
    #: By our own code in a user namespace, where the kernel allows these to all users.
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
    """What a task sees of the machine: everything read-only, except for these mounts."""

    #: The folder that becomes the task's `/tmp`.
    temporary: str
    #: A folder of the server, over which its `/` is mounted: each task has mounts of its own.
    root: str
    kind: SandboxKind = SandboxKind.NAMESPACES
    mounts: tuple[Mount, ...] = ()
    #: Folders and files that look empty to it, such as the server's data.
    hidden: tuple[str, ...] = ()
    #: A file that it sees as /etc/resolv.conf; empty: what this machine has.
    resolver: str = ""
    #: The root folder of its image, which replaces the machine's; empty: it sees the machine's.
    image: str = ""
    #: Devices that it does not see: GPUs that others have.
    hidden_devices: tuple[str, ...] = ()


class DeviceRules(msgspec.Struct, frozen=True):
    """Character devices that a task can use, by major and minor number; `None`: every minor."""

    allowed: tuple[tuple[int, int | None], ...] = ()
    #: These not, also where a range of `allowed` has them.
    denied: tuple[tuple[int, int | None], ...] = ()
    #: Whether it can use all that are neither allowed nor denied.
    rest: bool = True


class TaskLimits(msgspec.Struct, frozen=True):
    """Limits of a task, where the machine can enforce them; `None`: no limit."""

    cpu_milli: int | None = None
    memory_bytes: int | None = None
    #: Threads count, too.
    processes: int | None = None
    devices: DeviceRules | None = None
    #: Of its own folders; measured from time to time.
    storage_bytes: int | None = None


class CopyLimits(msgspec.Struct, frozen=True):
    """Limits on one copy."""

    files: int = 100_000
    bytes: int = 2**40


class PoolPlace(msgspec.Struct, frozen=True):
    """A path in the data of a pool."""

    #: The folder of the pool's data.
    folder: str
    path: str
    quota_bytes: int
    #: The name of the pool, for messages.
    pool: str
    #: The user that writes there.
    user: str


class StorePlace(msgspec.Struct, frozen=True):
    """A URL of an object store, and what opens it."""

    url: str
    credential: StoreCredential
    #: A folder that the task does not see, with the progress so far, for a process that resumes.
    progress: str


class Copy(msgspec.Struct, frozen=True):
    """Files to copy before, while or after a task runs."""

    source: str
    target: str
    #: Only files whose path below the source matches.
    regex: str | None = None
    #: Repeatedly while it runs; `None`: once.
    every_s: int | None = None
    #: Whether a folder keeps its name below the target; a file always does.
    named: bool = False
    #: It is no error if the source does not exist.
    optional: bool = False
    #: Rename the folder to the target, and replace what was there.
    move: bool = False
    bounds: CopyLimits = CopyLimits()
    #: The source or the target, where it is in the data of a pool.
    from_pool: PoolPlace | None = None
    to_pool: PoolPlace | None = None
    #: The same where it is in an object store.
    from_store: StorePlace | None = None
    to_store: StorePlace | None = None
    #: The files are only read, so that they need not be copied on the same disk.
    only_read: bool = False
    #: The account that gets the files; `None`: the server's own.
    account: UserAccount | None = None


class TaskCommand(msgspec.Struct, frozen=True):
    """A task with every placeholder filled in."""

    attempt: str
    name: str
    argv: tuple[str, ...]
    environment: dict[str, str]
    #: The folder in which it starts, by the path that it sees.
    working_folder: str
    #: `None`: it sees the machine as it is.
    sandbox: Sandbox | None = None
    limits: TaskLimits = TaskLimits()
    #: `None`: the server's own.
    account: UserAccount | None = None
    #: Before it starts; if one fails, the task does not start.
    inputs: tuple[Copy, ...] = ()
    #: While it runs, and once after its end, however that was.
    checkpoints: tuple[Copy, ...] = ()
    #: After it has ended with exit code 0, in this order.
    outputs: tuple[Copy, ...] = ()
    #: The command that removes its container, for after it was killed.
    clean_up: tuple[str, ...] = ()
