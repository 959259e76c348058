"""Which devices a task can use: the GPUs that it was given, shown on devices that stand for them.

They have numbers without a driver: to open one that is allowed gives "No such device or address",
and one that is not "Operation not permitted".
"""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from bough.backends.local.options import LocalOptions
from bough.backends.local.sandbox import devices as devices_module
from bough.backends.local.sandbox import limits as limits_module
from bough.backends.local.sandbox import syscalls
from bough.backends.local.sandbox.cgroup_mounts import DEVICES, find_hierarchies
from bough.backends.local.sandbox.devices import apply_rules, find_gpu_devices, plan_devices
from bough.backends.local.sandbox.limits import choose_limits
from bough.backends.local.sandbox.syscalls import read_mounts
from bough.backends.local.task_command import DeviceRules, SandboxKind
from tests.local.bench import Bench
from tests.local.entering import Running
from tests.local.plain_account import in_another_process
from tests.local.test_sandbox import Room
from tests.local.without_mknod import drop_mknod

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="devices are made by root")

ALLOWED, DENIED = "No such device or address", "Operation not permitted"
#: A range that the kernel leaves to experiments.
MAJOR, SHARED_MAJOR = 240, 241


def make_device(path: Path, major: int, minor: int) -> None:
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(major, minor))
    path.chmod(0o666)


@pytest.fixture(params=["version 1", "version 2"])
def group(request) -> Iterator[Path]:
    """A control group of each version."""
    unified = request.param == "version 2"
    trees = [each for each in find_hierarchies() if each.unified == unified]
    tree = next((each for each in trees if unified or DEVICES in each.controllers), None)
    if tree is None and os.environ.get("CI") != "true":
        pytest.skip(f"NO CONTROL GROUPS OF {request.param.upper()} FOR DEVICES HERE")
    assert tree is not None
    made = tree.mount / f"bough-test-{uuid.uuid4().hex}"
    made.mkdir()
    yield made
    made.rmdir()


def test_processes_of_a_group_use_the_devices_that_are_allowed_and_no_others(group, tmp_path):
    for minor in range(3):
        make_device(tmp_path / f"gpu{minor}", MAJOR, minor)
    make_device(tmp_path / "shared", SHARED_MAJOR, 7)

    def opened(rules: DeviceRules) -> list[bool]:
        """Which of them can be opened, of the three, the shared one, null and random."""
        apply_rules(group, rules)
        names = [*(tmp_path / name for name in ("gpu0", "gpu1", "gpu2", "shared")), "/dev/null"]
        script = f"echo $$ > {group}/cgroup.procs; " + "".join(
            f"(: < {each}) 2>&1 || true; echo done; " for each in (*names, "/dev/random")
        )
        told = subprocess.run(("/bin/sh", "-c", script), capture_output=True, text=True, check=True)
        answers = told.stdout.split("done")[:-1]
        assert all(not each.strip() or ALLOWED in each or DENIED in each for each in answers)
        return [DENIED not in each for each in answers]

    only = DeviceRules(((1, 3), (MAJOR, 1), (SHARED_MAJOR, None)), rest=False)
    assert [False, True, False, True, True, False] == opened(only)
    # As another supervisor does, after the first one was killed.
    (group / "inner").mkdir()
    try:
        assert [False, True, False, True, True, False] == opened(only)
    finally:
        (group / "inner").rmdir()


def test_without_a_sandbox_only_the_devices_of_other_gpus_are_denied(group, tmp_path):
    make_device(tmp_path / "gpu0", MAJOR, 0)
    make_device(tmp_path / "gpu1", MAJOR, 1)
    apply_rules(group, DeviceRules(denied=((MAJOR, 1),)))

    script = f"echo $$ > {group}/cgroup.procs; cat {tmp_path}/gpu0; cat {tmp_path}/gpu1; exit 0"
    told = subprocess.run(("/bin/sh", "-c", script), capture_output=True, text=True, check=True)

    first, second = told.stderr.splitlines()
    assert (True, True) == (ALLOWED in first, DENIED in second)


@pytest.mark.parametrize("private", [True, False])
def test_each_task_sees_and_uses_its_own_gpus_alone(tmp_path, private):
    _, warnings = choose_limits(LocalOptions(tmp_path))
    if warnings and os.environ.get("CI") != "true":
        pytest.skip(f"CONTROL GROUPS CANNOT BE USED HERE: {warnings}")

    def work() -> str:
        _stand_in_for_gpus()
        bench = Bench(tmp_path, private=private, limits=True)
        script = (
            "echo $CUDA_VISIBLE_DEVICES; cd /dev; echo nvidia*; "
            "for each in nvidia0 nvidia1 nvidia2 nvidiactl; do (: < $each); done 2>&1; "
            "echo x > /dev/null; head -c 1 /dev/urandom | wc -c; sleep 1000"
        )
        attempts = [bench.run_shell(script, gpus=count) for count in (1, 2, 0)]
        for each in attempts:
            bench.wait_running(each)
        found = [bench.wait_text(each, "1") for each in attempts]
        bench.stop(*attempts)
        for each in attempts:
            bench.wait_over(each)
        bench.backend.close()
        return "\n".join("|".join(each) for each in found)

    def expected(own: str, gpus: set[int]) -> str:
        seen = [f"nvidia{each}" for each in range(3) if each in gpus or not private]
        lines = [own, " ".join((*seen, "nvidiactl"))]
        for name, given in (
            *((f"nvidia{each}", each in gpus) for each in range(3)),
            ("nvidiactl", 1),
        ):
            there = given or not private
            fault = (ALLOWED if given else DENIED) if there else "No such file"
            lines.append(f"/bin/sh: 1: cannot open {name}: {fault}")
        return "|".join((*lines, "1"))

    told = (expected("0", {0}), expected("1,2", {1, 2}), expected("", set()))
    assert "\n".join(told) == in_another_process(work)


@pytest.mark.parametrize("kernel", ["new", "old"])
@pytest.mark.parametrize("devices", ["made", "mounted"])
def test_no_task_changes_the_mode_or_owner_of_a_device(folder, devices, kernel):
    """Neither of a usual device, nor of an accelerator, nor of what is shown for a hidden file."""
    secret = folder / "secret"
    secret.touch()
    names = ("null", "zero", "nvidiactl", "nvidia-caps/nvidia-cap1")
    shown = (*(f"/dev/{each}" for each in names), str(secret))
    script = f"for each in {' '.join(shown)}; do "
    script += "chmod 600 $each; chown 1:1 $each; head -c 1 $each; done 2>/dev/null | wc -c; "
    script += "for each in /dev/nvidiactl /dev/nvidia-caps/*; do (: > $each); done 2>&1; "
    script += "cat /proc/self/mountinfo"

    def work() -> str:
        _stand_in_for_gpus()
        Path("/dev/nvidia-caps").mkdir()
        make_device(Path("/dev/nvidia-caps/nvidia-cap1"), SHARED_MAJOR, 1)
        if devices == "mounted":
            drop_mknod()
        before = _modes_and_owners()
        command = Room(SandboxKind.NAMESPACES, folder, hidden=(secret,)).prepare(script)
        code, out, error = Running(command, old=kernel == "old").end()
        return "\n".join((str(before == _modes_and_owners()), f"{code}{error}", out))

    same, ended, read, *faults = in_another_process(work).splitlines()
    faults, mounts = faults[:2], read_mounts("\n".join(faults[2:]))
    assert ("True", "0", "1") == (same, ended, read)
    assert [True, True] == [each.endswith(ALLOWED) for each in faults]
    changeable = {each.path for each in mounts if "rw" in each.options}
    assert {"/dev/pts", "/dev/shm"} == {  # noqa: S108
        each for each in changeable if each.startswith("/dev")
    }
    assert str(secret) not in changeable


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that tasks see."""
    with tempfile.TemporaryDirectory(prefix="bough-", dir="/var/lib") as name:
        yield Path(name).resolve()


def _modes_and_owners() -> list[tuple[str, int, int, int]]:
    found = [(str(each), each.lstat()) for each in sorted(Path("/dev").rglob("*"))]
    return [(path, each.st_mode, each.st_uid, each.st_gid) for path, each in found]


def _stand_in_for_gpus() -> None:
    """Have a /dev of one's own, with three GPUs and what they share."""
    syscalls.unshare(syscalls.CLONE_NEWNS)
    syscalls.mount("none", "/", "", syscalls.MS_REC | syscalls.MS_PRIVATE)
    names = ("null", "zero", "urandom", "tty", "net/tun")
    usual = {each: os.stat(f"/dev/{each}").st_rdev for each in names if Path("/dev", each).exists()}
    syscalls.mount("none", "/dev", "tmpfs", 0, "mode=755")
    Path("/dev/net").mkdir()
    for name, number in usual.items():
        make_device(Path("/dev", name), os.major(number), os.minor(number))
    for minor in range(3):
        make_device(Path(f"/dev/nvidia{minor}"), MAJOR, minor)
    make_device(Path("/dev/nvidiactl"), MAJOR, 255)


def test_gpus_are_found_by_the_order_of_the_bus_and_not_of_their_minor_numbers(
    tmp_path, monkeypatch
):
    for name, place in (("_DEVICES", "dev"), ("_DRIVER", "driver"), ("_DRM", "drm")):
        monkeypatch.setattr(devices_module, name, tmp_path / place)
    (tmp_path / "dev" / "dri" / "by-path").mkdir(parents=True)
    for name, major, minor in (
        ("nvidia0", 240, 0),
        ("nvidia1", 240, 1),
        ("nvidiactl", 240, 255),
        ("nvidia-uvm", 241, 0),
        ("dri/renderD128", 242, 128),
        ("dri/card7", 242, 7),
        ("video0", 243, 0),
    ):
        make_device(tmp_path / "dev" / name, major, minor)
    for bus, minor in (("0000:41:00.0", 1), ("0000:C1:00.0", 0)):
        (tmp_path / "driver" / bus).mkdir(parents=True)
        text = f"Model: \t GPU\nDevice Minor: \t {minor}\n"
        (tmp_path / "driver" / bus / "information").write_text(text)
        (tmp_path / "bus" / bus.lower()).mkdir(parents=True)
    (tmp_path / "drm" / "renderD128").mkdir(parents=True)
    (tmp_path / "drm" / "renderD128" / "device").symlink_to(tmp_path / "bus" / "0000:41:00.0")

    found = find_gpu_devices()
    rules, hidden = plan_devices((1,), sandboxed=True)

    names = {
        index: [str(each.relative_to(tmp_path / "dev")) for each in paths]
        for index, paths in found.items()
    }
    assert {0: ["nvidia1", "dri/renderD128"], 1: ["nvidia0"]} == names
    assert ((240, 1), (242, 128)) == rules.denied
    assert (242, 7) in rules.allowed
    assert {(240, 0), (240, 255), (241, 0)} < set(rules.allowed)
    assert not {(240, 1), (242, 128), (243, 0)} & set(rules.allowed)
    assert [f"{tmp_path}/dev/nvidia1", f"{tmp_path}/dev/dri/renderD128"] == list(hidden)


def test_where_devices_cannot_be_bounded_it_is_said_at_the_start(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(limits_module, "apply_rules", refuse)

    setup, warnings = choose_limits(LocalOptions(tmp_path))

    assert setup is None or DEVICES not in setup.parents
    (warning,) = (each for each in warnings if "GPUs" in each)
    assert warning.startswith("tasks can use GPUs that they were not given: ")
