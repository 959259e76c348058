"""CPU, memory, process and device limits of tasks, enforced by the kernel's control groups.

Each attempt has its own group, below one that is named after the backend's folder. With version 1
that is a group in the tree of each controller, below the group of this process, so that its limits
hold for its tasks, too. With version 2 a group with processes cannot have groups with controllers
below it, so the nearest group above that can have them is used. What the machine does not allow is
not enforced.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
import signal
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from urllib.parse import unquote

import msgspec

from bough.backends.local.data.locations import safe_name
from bough.backends.local.errors import TOO_LITTLE_MEMORY, Unstartable
from bough.backends.local.options import LocalOptions
from bough.backends.local.sandbox.cgroup_mounts import (
    CPU,
    DEVICES,
    MEMORY,
    PIDS,
    Hierarchy,
    controlling,
    find_hierarchies,
)
from bough.backends.local.sandbox.devices import apply_rules
from bough.backends.local.task_command import DeviceRules, TaskLimits

_PREFIX = "task-"
#: The group that holds its processes. A task in a namespace can mount its own group and write to
#: it, so the limits are in the group above, which it cannot reach.
INNER = "inner"
_PERIOD_US = 100_000
#: The kernel accepts no less.
_LEAST_QUOTA_US = 1_000
_SWEEPS = 1_000
_READ_BYTES = 65_536
_TRIES = 100
#: By importance, where not all can be used.
_CONTROLLERS = (MEMORY, PIDS, CPU, DEVICES)
_SHOWN = {
    CPU: "CPUs are counted but not enforced",
    MEMORY: "memory is counted but not enforced",
    PIDS: "tasks may have as many processes as they like",
    DEVICES: "tasks can use GPUs that they were not given",
}
#: One task can have at most this fraction (1/n) of the machine's processes.
_SHARE = 4
_KERNEL = "/proc/sys/kernel"
#: A rule that changes nothing that is used, to see whether rules can be made.
_TRIED_DEVICES = DeviceRules(denied=((254, 255),))


class CgroupSetup(msgspec.Struct, frozen=True):
    """How limits are enforced here, in plain values."""

    #: The parent of the attempts' groups, by controller; missing: not enforced.
    parents: dict[str, str]
    name: str
    #: Mounts that may have parents of that name from other processes.
    mounts: tuple[str, ...] = ()


class Cgroup(msgspec.Struct, frozen=True):
    """The group of one attempt, by its paths."""

    #: By controller; with version 2 they are the same.
    folders: dict[str, str]

    def add(self, pid: int) -> None:
        """Move a process into it, with all children that it will have."""
        self._move(lambda inner: _write(f"{inner}/cgroup.procs", str(pid)))

    def join(self) -> None:
        """Move this process, which has one thread, into it, with all children that it will have."""
        self._move(join_group)

    def _move(self, move: Callable[[str], None]) -> None:
        """Move a process, tree by tree, into the group that holds the processes."""
        try:
            for folder in self._distinct():
                inner = f"{folder}/{INNER}"
                with contextlib.suppress(FileExistsError):
                    os.mkdir(inner)
                move(inner)
        except OSError as error:
            if error.errno != errno.ENOMEM:
                raise
            raise Unstartable(TOO_LITTLE_MEMORY) from None

    def kill(self) -> bool:
        """Kill all processes in it; whether none is left."""
        if PIDS in self.folders:
            # So that nothing new starts meanwhile.
            _write_if_there(f"{self.folders[PIDS]}/pids.max", "0")
        for folder in self._distinct():
            _write_if_there(f"{folder}/cgroup.kill", "1")
        for _ in range(_SWEEPS):
            pids = self.processes()
            if not pids:
                return True
            for each in pids:
                # A set-user-ID program cannot be killed by us.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(each, signal.SIGKILL)
            os.sched_yield()
        return False

    def processes(self) -> tuple[int, ...]:
        """The processes in it, and in groups that a task has made below it."""
        found: set[int] = set()
        for folder in self._distinct():
            for each in _with_all_below(folder):
                text = _read(f"{each}/cgroup.procs")
                found.update(int(each) for each in text.split() if int(each) > 0)
        return tuple(sorted(found))

    def remove(self, *, parents: bool = True) -> bool:
        """Remove it, and its parents if it was the last; whether it is gone."""
        gone = True
        for folder in self._distinct():
            try:
                for each in reversed(_with_all_below(folder)):
                    os.rmdir(each)
            except OSError:
                gone = gone and not os.path.exists(folder)
            if parents:
                with contextlib.suppress(OSError):
                    os.rmdir(os.path.dirname(folder))
        return gone

    def memory_killed(self) -> bool:
        """Whether the kernel killed something in it for exceeding the memory limit."""
        files = ("memory.events", "memory.oom_control")
        return any(self._count(MEMORY, each, "oom_kill") for each in files)

    def memory_told(self) -> tuple[int | None, int | None]:
        """The limit of its memory, and the most that it has used, in bytes, where it is known."""
        limit = self._bytes(MEMORY, ("memory.max", "memory.limit_in_bytes"))
        return limit, self._bytes(MEMORY, ("memory.peak", "memory.max_usage_in_bytes"))

    def processes_refused(self) -> bool:
        """Whether something in it could not be started because of the process limit."""
        return self._count(PIDS, "pids.events", "max") > 0

    def _count(self, controller: str, name: str, event: str) -> int:
        """How often something has happened, by a file of the group."""
        folder = self.folders.get(controller)
        if folder is None:
            return 0
        # With version 1 a group does not count what happens in its children.
        texts = [_read(f"{above}/{name}") for above in (folder, f"{folder}/{INNER}")]
        pairs = (line.partition(" ")[::2] for line in "".join(texts).splitlines())
        return sum(int(number) for word, number in pairs if word == event and number.isdigit())

    def _bytes(self, controller: str, names: tuple[str, str]) -> int | None:
        """A number of the group, by its name in either version of control groups."""
        folder = self.folders.get(controller)
        texts = () if folder is None else (_read(f"{folder}/{each}").strip() for each in names)
        return next((int(each) for each in texts if each.isdigit()), None)

    def _distinct(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.folders.values()))


def choose_limits(options: LocalOptions) -> tuple[CgroupSetup | None, tuple[str, ...]]:
    """How limits can be enforced on this machine, and warnings about what cannot."""
    if not options.limits:
        return None, ()
    name = parent_name(options)
    parents: dict[str, str] = {}
    faults: dict[str, str] = {}
    wanted = [each for each in _CONTROLLERS if each != PIDS or options.processes is not None]
    trees = {each: controlling(find_hierarchies(), each) for each in wanted}
    for controllers, tree in _attempts(trees):
        if parents.keys().isdisjoint(controllers):
            found, fault = _find_parent(tree, controllers, name)
            if found is None:
                faults |= dict.fromkeys(controllers, fault)
            else:
                parents |= dict.fromkeys(controllers, found)
    warnings = tuple(
        f"{_SHOWN[each]}: {faults[each]}" for each in sorted(wanted) if each not in parents
    )
    mounts = {str(each.mount): None for each in trees.values() if each is not None}
    return (CgroupSetup(parents, name, tuple(mounts)) if parents else None), warnings


def parent_name(options: LocalOptions) -> str:
    """The name of the parent of all attempts' groups: one for each backend folder."""
    digest = hashlib.sha256(os.fsencode(options.folder.resolve())).hexdigest()[:16]
    return f"bough-{digest}"


def plan_group(setup: CgroupSetup, attempt: str) -> Cgroup:
    """The group for an attempt, which need not exist yet."""
    return Cgroup(
        {each: f"{parent}/{_PREFIX}{safe_name(attempt)}" for each, parent in setup.parents.items()}
    )


def make_group(group: Cgroup, limits: TaskLimits) -> None:
    """Make the group if it does not exist, and set its limits."""
    folders = group.folders
    for controller, folder in folders.items():
        _make(folder, controller)
    if limits.memory_bytes is not None and MEMORY in folders:
        _limit_memory(folders[MEMORY], limits.memory_bytes)
    if limits.cpu_milli is not None and CPU in folders:
        _limit_cpu(folders[CPU], limits.cpu_milli)
    if limits.processes is not None and PIDS in folders:
        _limit_processes(folders[PIDS], limits.processes)
    if limits.devices is not None and DEVICES in folders:
        apply_rules(folders[DEVICES], limits.devices)


def join_group(folder: str) -> None:
    """Move this process, which has one thread, into the group of a folder.

    With version 1 a thread that moves itself waits for no other process. To move a process by its
    id, the kernel first stops every fork and exit of the machine, which takes up to 20 ms.
    """
    try:
        _write(f"{folder}/tasks", "0")
    except FileNotFoundError:
        _write(f"{folder}/cgroup.procs", "0")


def remove_parents(setup: CgroupSetup) -> None:
    """Remove the parents of all attempts' groups, where they have none now."""
    for parent in dict.fromkeys(setup.parents.values()):
        with contextlib.suppress(OSError):
            os.rmdir(parent)


def most_processes() -> int:
    """How many processes and threads one task can have, whatever the options say."""
    kernel = (int(_read(f"{_KERNEL}/{each}")) for each in ("pid_max", "threads-max"))
    return max(1, min(kernel) // _SHARE)


def find_groups(setup: CgroupSetup) -> dict[str, Cgroup]:
    """The groups of all attempts, those of other processes and places included."""
    found: dict[str, dict[str, str]] = {}
    for mount in setup.mounts:
        for above, folders, _ in os.walk(mount):
            if Path(above).name == setup.name:
                for each in (name for name in folders if name.startswith(_PREFIX)):
                    attempt = unquote(each.removeprefix(_PREFIX))
                    controllers = _controllers(Path(above, each))
                    paths = dict.fromkeys(controllers, str(Path(above, each)))
                    found.setdefault(attempt, {}).update(paths)
                folders.clear()
    return {attempt: Cgroup(paths) for attempt, paths in found.items()}


def _make(folder: str, controller: str) -> None:
    """Make a group, and its parent, which others remove when it is empty."""
    parent = os.path.dirname(folder)
    for _ in range(_TRIES):
        try:
            if _is_unified(os.path.dirname(parent)) and os.path.exists(parent):
                _delegate(Path(parent), (controller,), change=True)
            os.mkdir(folder)
        except FileExistsError:
            return
        except FileNotFoundError:
            # Another process may remove the parent at any moment.
            with contextlib.suppress(FileExistsError):
                os.mkdir(parent)
        else:
            return
    raise OSError(f"{folder} cannot be made")


@functools.cache
def _is_unified(group: str) -> bool:
    """Whether a group is one of version 2; that of the server, or one above it, stays as it is."""
    return os.path.exists(f"{group}/cgroup.subtree_control")


def _attempts(
    trees: dict[str, Hierarchy | None],
) -> list[tuple[tuple[str, ...], Hierarchy | None]]:
    """What to try, in order: with version 2 a process has one group for all controllers."""
    unified = [each for each, tree in trees.items() if tree is not None and tree.unified]
    sizes = range(len(unified), 1, -1)
    together = [each for size in sizes for each in combinations(unified, size)]
    return [(each, trees[each[0]]) for each in (*together, *((alone,) for alone in trees))]


def _find_parent(
    tree: Hierarchy | None, controllers: tuple[str, ...], name: str
) -> tuple[str | None, str]:
    """A parent for the attempts' groups, or why there is none."""
    if tree is None:
        return None, "this machine has no control groups"
    fault = ""
    for above in tree.ancestors() if tree.unified else (tree.own,):
        try:
            if tree.unified:
                _delegate(above, controllers, change=above == tree.own)
            _try_out(CgroupSetup(dict.fromkeys(controllers, str(above / name)), name))
        except OSError as error:
            fault = fault or f"{above} cannot be used ({error.strerror or error})"
        else:
            return str(above / name), ""
    return None, fault


def _delegate(group: Path, controllers: tuple[str, ...], *, change: bool) -> None:
    """Enable controllers for groups below this one."""
    control = group / "cgroup.subtree_control"
    # With version 2 devices are no controller: every group can have programs for them.
    missing = set(controllers) - {DEVICES} - set(control.read_text().split())
    if missing and not change:
        raise OSError(f"its {' and '.join(sorted(missing))} are not delegated")
    if missing:
        control.write_text(" ".join(f"+{each}" for each in sorted(missing)))


def _try_out(setup: CgroupSetup) -> None:
    """Make a group, put a process into it, and remove it."""
    import subprocess  # noqa: PLC0415 - see supervisor.fork_server

    group = plan_group(setup, f"trial {os.getpid()}")
    try:
        make_group(group, TaskLimits(1_000, 64 * 2**20, 64, _TRIED_DEVICES))
        with subprocess.Popen(("/bin/cat",), stdin=subprocess.PIPE) as child:
            group.add(child.pid)
            if child.pid not in group.processes():
                raise OSError("processes cannot be moved into it")
    finally:
        group.kill()
        group.remove()


def _limit_memory(folder: str, memory_bytes: int) -> None:
    """Limit memory, without swap in addition."""
    if os.path.exists(f"{folder}/memory.max"):
        _write(f"{folder}/memory.max", str(memory_bytes))
        _write_if_there(f"{folder}/memory.swap.max", "0")
        _write_if_there(f"{folder}/memory.oom.group", "1")
        return
    # The limit with swap must never be lower: set before it if it rises, after it if it falls.
    _write_if_there(f"{folder}/memory.memsw.limit_in_bytes", str(memory_bytes))
    _write(f"{folder}/memory.limit_in_bytes", str(memory_bytes))
    _write_if_there(f"{folder}/memory.memsw.limit_in_bytes", str(memory_bytes))


def _limit_cpu(folder: str, cpu_milli: int) -> None:
    quota_us = max(_LEAST_QUOTA_US, cpu_milli * _PERIOD_US // 1_000)
    if os.path.exists(f"{folder}/cpu.max"):
        _write(f"{folder}/cpu.max", f"{quota_us} {_PERIOD_US}")
        return
    _write(f"{folder}/cpu.cfs_period_us", str(_PERIOD_US))
    # With version 1 more than the limit of a group above is refused; then that limit holds.
    _write_if_there(f"{folder}/cpu.cfs_quota_us", str(quota_us))


def _limit_processes(folder: str, processes: int) -> None:
    """Limit processes, also to a fraction of the limits of the groups above."""
    bounds = [processes, most_processes()]
    above = os.path.dirname(folder)
    # The group at the root of the tree has no such file.
    while text := _read(f"{above}/pids.max").strip():
        bounds += [int(text) // _SHARE] if text.isdigit() else []
        above = os.path.dirname(above)
    _write(f"{folder}/pids.max", str(max(1, min(bounds))))


def _controllers(folder: Path) -> tuple[str, ...]:
    """The controllers of a group, by its files."""
    return tuple(
        controller
        for controller, names in (
            (CPU, ("cpu.max", "cpu.cfs_quota_us")),
            (MEMORY, ("memory.max", "memory.limit_in_bytes")),
            (PIDS, ("pids.max",)),
            (DEVICES, ("devices.list", "cgroup.events")),
        )
        if any((folder / name).exists() for name in names)
    )


def _with_all_below(folder: str) -> list[str]:
    """A group and all groups below it, each after the one that it is in."""
    found = [folder]
    for each in found:
        with contextlib.suppress(OSError):
            # Two names are its own, and each folder in it is one more: most groups need no search.
            names = os.stat(each).st_nlink
            if names == 2:
                continue
            if names == 3 and os.path.isdir(f"{each}/{INNER}"):
                found.append(f"{each}/{INNER}")
                continue
            with os.scandir(each) as entries:
                found += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    return found


def _write_if_there(path: str, text: str) -> None:
    with contextlib.suppress(OSError):
        _write(path, text)


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _read(path: str) -> str:
    """The text of a small file; empty: there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        parts: list[bytes] = []
        while part := os.read(descriptor, _READ_BYTES):
            parts.append(part)
        return b"".join(parts).decode()
    except OSError:
        return ""
    finally:
        os.close(descriptor)
