"""What the kernel takes for a task with a view and limits of its own, whatever starts it.

A program of one process that makes the same calls as the backend, one task after the other: files
of the attempt, control groups, namespaces, mounts, two durable writes, fork and exec. It decides
nothing, supervises nothing and survives nothing. `python -m` this module prints the CPU time of one
task in milliseconds, its processes included.
"""

from __future__ import annotations

import os
import resource
import shutil
import sys
import tempfile
from pathlib import Path

from bough.backends.local.options import LocalOptions
from bough.backends.local.sandbox import syscalls
from bough.backends.local.sandbox.limits import (
    Cgroup,
    CgroupSetup,
    choose_limits,
    make_group,
    plan_group,
    remove_parents,
)
from bough.backends.local.task_command import DeviceRules, TaskLimits

PROGRAM = "/bin/true"
_PAGE = 4_096
#: How many tasks are not counted: everything is done for the first time then.
_FIRST = 5
_FOLDERS = ("", "task", "task/work", "task/output", "task/tmp")
_DEVICES = ("full", "null", "random", "tty", "urandom", "zero")
_SETTINGS = ("bus", "fs", "irq", "sys", "sysrq-trigger")
_LIMITS = TaskLimits(1_000, 2**30, 1_000, DeviceRules(((1, 3), (1, 5), (1, 7), (1, 8)), rest=False))
_BIND = syscalls.MS_BIND | syscalls.MS_REC


def main(count: int) -> None:
    with tempfile.TemporaryDirectory(prefix="bough-floor-") as folder:
        setup, _ = choose_limits(LocalOptions(folder=Path(folder)))
        machine = [
            entry.name
            for entry in os.scandir("/")
            if entry.is_dir(follow_symlinks=False) and entry.name not in {"dev", "proc", "tmp"}
        ]
        os.mkdir(f"{folder}/view")
        try:
            _run(folder, setup, machine, range(_FIRST))
            before = _spent_s()
            _run(folder, setup, machine, range(_FIRST, _FIRST + count))
            print((_spent_s() - before) / count * 1e3)
        finally:
            if setup is not None:
                remove_parents(setup)


def _run(folder: str, setup: CgroupSetup | None, machine: list[str], numbers: range) -> None:
    for number in numbers:
        attempt = f"{folder}/{number}"
        for name in _FOLDERS:
            os.mkdir(f"{attempt}/{name}")
        state = os.open(f"{attempt}/state", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        os.posix_fallocate(state, 0, 5 * _PAGE)
        group = None if setup is None else plan_group(setup, f"floor-{os.getpid()}/{number}")
        if group is not None:
            make_group(group, _LIMITS)
        first = _fork_first(f"{folder}/view", f"{attempt}/task", group, machine)
        _write_durably(state, 3)
        os.waitpid(first, 0)
        if group is not None:
            group.remove(parents=False)
        _write_durably(state, 4)
        os.close(state)
        shutil.rmtree(f"{attempt}/task")


def _fork_first(root: str, own: str, group: Cgroup | None, machine: list[str]) -> int:
    """Fork the first process of a namespace; this process returns to its own."""
    kinds = {"pid": syscalls.CLONE_NEWPID, "mnt": syscalls.CLONE_NEWNS}
    before = {os.open(f"/proc/self/ns/{name}", os.O_RDONLY): each for name, each in kinds.items()}
    syscalls.unshare(sum(kinds.values()))
    _mount_all(root, own, machine)
    first = os.fork()
    if first == 0:
        _be_first(root, group)
    for descriptor, kind in before.items():
        syscalls.set_namespace(descriptor, kind)
        os.close(descriptor)
    return first


def _mount_all(root: str, own: str, machine: list[str]) -> None:
    syscalls.mount("none", "/", "", syscalls.MS_REC | syscalls.MS_PRIVATE)
    syscalls.mount("none", root, "tmpfs")
    syscalls.mount("none", root, "", syscalls.MS_UNBINDABLE)
    for name in machine:
        os.mkdir(f"{root}/{name}")
        syscalls.mount(f"/{name}", f"{root}/{name}", "", _BIND)
    for name in ("dev", "dev/pts", "dev/shm", "proc", "tmp", "osmo", "osmo/work", "osmo/data"):
        os.mkdir(f"{root}/{name}")
        if name == "dev":
            syscalls.mount("none", f"{root}/dev", "tmpfs")
    for name in _DEVICES:
        found = os.stat(f"/dev/{name}")
        os.mknod(f"{root}/dev/{name}", found.st_mode, found.st_rdev)
    syscalls.mount("none", f"{root}/dev/pts", "devpts", 0, "newinstance")
    syscalls.mount("none", f"{root}/dev/shm", "tmpfs")  # noqa: S108 - of the new root
    for source, target in (("tmp", "tmp"), ("work", "osmo/work"), ("output", "osmo/data")):
        syscalls.mount(f"{own}/{source}", f"{root}/{target}", "", syscalls.MS_BIND)


def _be_first(root: str, group: Cgroup | None) -> None:
    """Move into the new root, start the program, and end with it."""
    try:
        if group is not None:
            group.join()
        syscalls.unshare(syscalls.CLONE_NEWIPC)
        syscalls.mount("proc", f"{root}/proc", "proc")
        for name in _SETTINGS:
            path = f"{root}/proc/{name}"
            syscalls.mount(path, path, "", syscalls.MS_BIND)
        processes = os.open(f"{root}/proc", os.O_PATH)
        syscalls.set_mount(processes, add=syscalls.MOUNT_RDONLY, recursive=True)
        syscalls.set_mount(processes, remove=syscalls.MOUNT_RDONLY)
        os.chdir(root)
        syscalls.pivot_here()
        os.waitpid(os.posix_spawn(PROGRAM, [PROGRAM], {}, setsid=True), 0)
    finally:
        os._exit(0)


def _write_durably(descriptor: int, page: int) -> None:
    os.pwrite(descriptor, bytes(_PAGE), page * _PAGE)
    os.fsync(descriptor)


def _spent_s() -> float:
    spent = [resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)


if __name__ == "__main__":
    main(int(sys.argv[1]))
