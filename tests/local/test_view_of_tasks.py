"""All that a task sees of the machine: each mount with its flags, each device, each setting."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bough.backends.local.sandbox.syscalls import Mounted, read_mounts
from bough.backends.local.supervisor import fork_server_client
from tests.local.bench import Bench
from tests.local.test_sandbox import needs_root
from tests.local.without_mknod import may_mknod

#: What a task can write to. Its programs may use no device and no set-user-ID bit of these.
_WRITABLE = {"/", "/tmp", "/var/tmp", "/osmo/work", "/osmo/data/output", "/dev/shm", "/proc"}  # noqa: S108
#: File systems for devices.
_DEVICES = {"/dev", "/dev/pts"}
_SETTINGS = ("acpi", "bus", "fs", "irq", "scsi", "sys", "sysrq-trigger")
_MOUNTS = "cat /proc/self/mountinfo"
_NODES = "cd /dev; stat -c '%n %f %u %g %t %T' full null random tty urandom zero"


@pytest.fixture(params=["devices are made", "devices are mounted"])
def as_root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Tasks that are root, which could change what nothing but a mount protects."""
    if request.param == "devices are mounted":
        monkeypatch.setattr(fork_server_client, "_MODULE", "tests.local.without_mknod")
    bench = Bench(tmp_path, private=True, limits=True)
    try:
        yield bench
    finally:
        bench.end()


def _read(bench: Bench, script: str) -> list[str]:
    attempt = bench.run_shell(script)
    assert 0 == bench.wait_over(attempt).exit_code
    return bench.texts(attempt)


def _mounts(lines: list[str]) -> dict[str, Mounted]:
    return {each.path: each for each in read_mounts("\n".join(lines))}


@needs_root
def test_nothing_but_its_own_folders_is_writable(as_root: Bench) -> None:
    mounts = _mounts(_read(as_root, _MOUNTS))
    devices = {path for path in mounts if path.startswith("/dev/")} - _WRITABLE - _DEVICES
    others = {
        path: each for path, each in mounts.items() if path not in _WRITABLE | _DEVICES | devices
    }
    assert {"/usr", "/etc"} <= others.keys()
    assert {} == {
        path: each.options
        for path, each in others.items()
        if not {"ro", "nosuid", "nodev"} <= each.options
    }
    assert {} == {
        path: mounts[path].options
        for path in _WRITABLE
        if not {"rw", "nosuid", "nodev"} <= mounts[path].options
    }
    for path in ("/dev", *sorted(devices)):
        assert {"ro", "nosuid"} <= mounts[path].options
    assert {"rw", "nosuid"} <= mounts["/dev/pts"].options


@needs_root
def test_settings_of_the_machine_are_read_only(as_root: Bench) -> None:
    mounts = _mounts(_read(as_root, _MOUNTS))
    there = {f"/proc/{each}" for each in _SETTINGS if os.path.exists(f"/proc/{each}")}
    assert there == {path for path in mounts if path.startswith("/proc/")}
    for path in sorted(there):
        assert {"ro", "nosuid", "nodev", "noexec"} <= mounts[path].options
    assert {"rw", "nosuid", "nodev", "noexec"} <= mounts["/proc"].options


@needs_root
def test_devices_are_those_of_the_machine(as_root: Bench) -> None:
    expected = []
    for name in ("full", "null", "random", "tty", "urandom", "zero"):
        found = os.stat(f"/dev/{name}")
        numbers = f"{os.major(found.st_rdev):x} {os.minor(found.st_rdev):x}"
        expected.append(f"{name} {found.st_mode:x} {found.st_uid} {found.st_gid} {numbers}")
    assert expected == _read(as_root, _NODES)


@needs_root
def test_a_server_that_may_not_make_devices_mounts_them(as_root: Bench) -> None:
    usual = {f"/dev/{each}" for each in ("full", "null", "random", "tty", "urandom", "zero")}
    mounted = usual & _mounts(_read(as_root, _MOUNTS)).keys()
    confined = fork_server_client._MODULE == "tests.local.without_mknod"
    assert (usual if confined or not may_mknod() else set()) == mounted


@needs_root
def test_no_task_changes_a_device_of_the_machine(as_root: Bench) -> None:
    # To what they are already, so that a machine on which this fails is as it was.
    change = "chmod $(stat -c %a $each) $each || echo no; chown $(stat -c %u:%g $each) $each"
    script = f"for each in /dev/full /dev/tty /dev/zero; do {change} || echo no; done"
    assert ["no"] * 6 == _read(as_root, f"({script}) 2>&1 | grep -x no")


@needs_root
def test_the_input_of_a_task_is_a_device_of_its_own_view(as_root: Bench) -> None:
    """By another mount, as that of the machine, root could change the mode and owner of it."""
    script = "sed -n 's/^mnt_id:\t//p' /proc/$$/fdinfo/0; cut -d' ' -f1,5 /proc/self/mountinfo"
    launches = [as_root.shell(script) for _ in range(3)]
    as_root.start(launches[0])
    as_root.start(*launches[1:])
    for each in launches:
        assert 0 == as_root.wait_over(each.attempt).exit_code
        number, *mounts = as_root.texts(each.attempt)
        assert [number] == [
            mount
            for mount, _, path in (line.partition(" ") for line in mounts)
            if path in {"/dev", "/dev/null"} and mount == number
        ]


def test_a_task_that_starts_alone_sees_the_same_as_one_of_a_gang(as_root: Bench) -> None:
    script = (
        "cut -d' ' -f5- /proc/self/mountinfo; "
        "stat -c '%A %u %g %t %T %N' / /* /dev/* /osmo/* /osmo/data/*"
    )
    alone = as_root.run_shell(script)
    gang = [as_root.shell(script) for _ in range(2)]
    as_root.start(*gang)
    told = []
    for attempt in (alone, *(each.attempt for each in gang)):
        assert 0 == as_root.wait_over(attempt).exit_code
        told.append(as_root.texts(attempt))
    assert told[0] == told[1]
    assert told[0] == told[2]


@needs_root
def test_what_a_task_leaves_in_its_root_is_not_there_for_the_next(as_root: Bench) -> None:
    leave = "mkdir /left; touch /run/left /dev/shm/left /tmp/left /var/tmp/left"
    assert [] == _read(as_root, leave)
    look = "ls -d /left /run/left /dev/shm/left /tmp/left /var/tmp/left 2>/dev/null; true"
    assert [] == _read(as_root, look)
