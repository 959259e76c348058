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
import hashlib
import os
import signal
import subprocess
from itertools import combinations
from pathlib import Path
from urllib.parse import unquote

import msgspec

from bough.backends.local.command import DeviceRules, TaskLimits
from bough.backends.local.data.locations import safe_name
from bough.backends.local.errors import TOO_LITTLE_MEMORY, Unstartable
from bough.backends.local.options import LocalOptions
from bough.backends.local.sandbox.cgroups import (
    CPU,
    DEVICES,
    MEMORY,
    PIDS,
    Hierarchy,
    controlling,
    find_hierarchies,
)
from bough.backends.local.sandbox.devices import apply_rules

_PREFIX = "task-"
#: The group that holds its processes. A task in a namespace can mount its own group and write to
#: it, so the limits are in the group above, which it cannot reach.
_INNER = "inner"
_PERIOD_US = 100_000
#: The kernel accepts no less.
_LEAST_QUOTA_US = 1_000
_SWEEPS = 1_000
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
_KERNEL = Path("/proc/sys/kernel")
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
        try:
            for folder in self._distinct():
                inner = Path(folder, _INNER)
                inner.mkdir(exist_ok=True)
                (inner / "cgroup.procs").write_text(str(pid))
        except OSError as error:
            if error.errno != errno.ENOMEM:
                raise
            raise Unstartable(TOO_LITTLE_MEMORY) from None

    def kill(self) -> bool:
        """Kill all processes in it; whether none is left."""
        if PIDS in self.folders:
            # So that nothing new starts meanwhile.
            _write_if_there(Path(self.folders[PIDS], "pids.max"), "0")
        for folder in self._distinct():
            with contextlib.suppress(OSError):
                Path(folder, "cgroup.kill").write_text("1")
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
            for above, _, _ in os.walk(folder):
                text = _read(Path(above, "cgroup.procs"))
                found.update(int(each) for each in text.split() if int(each) > 0)
        return tuple(sorted(found))

    def remove(self) -> bool:
        """Remove it, and its parent if it was the last; whether it is gone."""
        for folder in self._distinct():
            with contextlib.suppress(OSError):
                _remove_below(Path(folder))
                Path(folder).parent.rmdir()
        return not any(Path(each).exists() for each in self._distinct())

    def memory_killed(self) -> bool:
        """Whether the kernel killed something in it for exceeding the memory limit."""
        files = ("memory.events", "memory.oom_control")
        return any(self._count(MEMORY, each, "oom_kill") for each in files)

    def processes_refused(self) -> bool:
        """Whether something in it could not be started because of the process limit."""
        return self._count(PIDS, "pids.events", "max") > 0

    def _count(self, controller: str, name: str, event: str) -> int:
        """How often something has happened, by a file of the group."""
        folder = self.folders.get(controller)
        if folder is None:
            return 0
        # With version 1 a group does not count what happens in its children.
        texts = [_read(Path(folder, below, name)) for below in ("", _INNER)]
        pairs = (line.partition(" ")[::2] for line in "".join(texts).splitlines())
        return sum(int(number) for word, number in pairs if word == event and number.isdigit())

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
        {
            each: str(Path(parent, _PREFIX + safe_name(attempt)))
            for each, parent in setup.parents.items()
        }
    )


def make_group(group: Cgroup, limits: TaskLimits) -> None:
    """Make the group if it does not exist, and set its limits."""
    folders = group.folders
    for controller, folder in folders.items():
        _make(Path(folder), controller)
    if limits.memory_bytes is not None and MEMORY in folders:
        _limit_memory(Path(folders[MEMORY]), limits.memory_bytes)
    if limits.cpu_milli is not None and CPU in folders:
        _limit_cpu(Path(folders[CPU]), limits.cpu_milli)
    if limits.processes is not None and PIDS in folders:
        _limit_processes(Path(folders[PIDS]), limits.processes)
    if limits.devices is not None and DEVICES in folders:
        apply_rules(Path(folders[DEVICES]), limits.devices)


def most_processes() -> int:
    """How many processes and threads one task can have, whatever the options say."""
    kernel = (int((_KERNEL / each).read_text()) for each in ("pid_max", "threads-max"))
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


def _make(folder: Path, controller: str) -> None:
    """Make a group, and its parent, which others remove when it is empty."""
    for _ in range(_TRIES):
        # Another process may remove the parent at any moment.
        with contextlib.suppress(FileNotFoundError, FileExistsError):
            folder.parent.mkdir(exist_ok=True)
            if (folder.parent / "cgroup.subtree_control").exists():
                _delegate(folder.parent, (controller,), change=True)
            folder.mkdir(exist_ok=True)
            return
    raise OSError(f"{folder} cannot be made")


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


def _limit_memory(folder: Path, memory_bytes: int) -> None:
    """Limit memory, without swap in addition."""
    if (folder / "memory.max").exists():
        (folder / "memory.max").write_text(str(memory_bytes))
        _write_if_there(folder / "memory.swap.max", "0")
        _write_if_there(folder / "memory.oom.group", "1")
        return
    # The limit with swap must never be lower: set before it if it rises, after it if it falls.
    _write_if_there(folder / "memory.memsw.limit_in_bytes", str(memory_bytes))
    (folder / "memory.limit_in_bytes").write_text(str(memory_bytes))
    _write_if_there(folder / "memory.memsw.limit_in_bytes", str(memory_bytes))


def _limit_cpu(folder: Path, cpu_milli: int) -> None:
    quota_us = max(_LEAST_QUOTA_US, cpu_milli * _PERIOD_US // 1_000)
    if (folder / "cpu.max").exists():
        (folder / "cpu.max").write_text(f"{quota_us} {_PERIOD_US}")
        return
    (folder / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
    # With version 1 more than the limit of a group above is refused; then that limit holds.
    _write_if_there(folder / "cpu.cfs_quota_us", str(quota_us))


def _limit_processes(folder: Path, processes: int) -> None:
    """Limit processes, also to a fraction of the limits of the groups above."""
    above = (_read(each / "pids.max").strip() for each in folder.parents)
    others = (int(each) // _SHARE for each in above if each.isdigit())
    (folder / "pids.max").write_text(str(max(1, min(processes, most_processes(), *others))))


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


def _remove_below(folder: Path) -> None:
    """Remove a group with all below it."""
    for each in folder.iterdir():
        if each.is_dir():
            _remove_below(each)
    folder.rmdir()


def _write_if_there(path: Path, text: str) -> None:
    with contextlib.suppress(OSError):
        path.write_text(text)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
