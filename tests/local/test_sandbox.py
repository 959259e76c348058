"""What a task sees of the machine, tried by real tasks in each kind of view."""

# ruff: noqa: S108 - these paths are the ones that tasks see

from __future__ import annotations

import ctypes
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from bough.backends.local.options import LocalOptions
from bough.backends.local.preparation.prepare_task import Place, prepare
from bough.backends.local.sandbox import sandbox_probe as probe
from bough.backends.local.sandbox import syscalls
from bough.backends.local.sandbox.root_filesystem import find_running
from bough.backends.local.sandbox.sandbox import choose_sandbox
from bough.backends.local.task_command import Mount, SandboxKind, TaskCommand
from bough.model.backend import Launch
from bough.model.task_template import FileSpec, InputSpec, TaskTemplate
from tests.local.entering import UNSTARTABLE, Running, processes_with, wait_for, wait_until_gone

NOBODY = 65_534
IS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(
    not IS_ROOT and os.environ.get("CI") != "true",
    reason="NOT TESTED: this view is for a server that is root",
)
needs_bubblewrap = pytest.mark.skipif(
    shutil.which("bwrap") is None and os.environ.get("CI") != "true",
    reason="BUBBLEWRAP IS NOT INSTALLED: this view is not tested",
)
KINDS = (
    pytest.param(SandboxKind.NAMESPACES, marks=needs_root),
    pytest.param(SandboxKind.USER_NAMESPACES),
    pytest.param(SandboxKind.BUBBLEWRAP, marks=needs_bubblewrap),
)


class Room:
    """Runs tasks in views of one kind; the server's folder is in a place that tasks can see."""

    def __init__(self, kind: SandboxKind, path: Path, **options) -> None:
        self.kind = kind
        self.path = path
        self.user = NOBODY if IS_ROOT and kind is not SandboxKind.NAMESPACES else None
        self.options = LocalOptions(path / "local", **options)
        self._numbers = itertools.count()

    def prepare(self, script: str, *, user: str = "", **template) -> TaskCommand:
        folder = self.options.folder / "attempts" / str(next(self._numbers)) / "task"
        folder.mkdir(parents=True)
        launch = Launch(
            "task/0",
            "task",
            "node",
            user=user,
            spec=TaskTemplate(command=("sh", "-c", script), **template),
        )
        command = prepare(Place(self.options, self.kind, folder, "flow-1"), launch)
        if self.user is not None:
            for each in (self.path, *self.path.rglob("*")):
                os.chown(each, self.user, self.user, follow_symlinks=False)
        return command

    def start(self, script: str, **template) -> Running:
        return Running(self.prepare(script, **template), self.user)

    def run(self, script: str, **template) -> tuple[int, str, str]:
        return self.start(script, **template).end()

    def read(self, script: str, **template) -> str:
        code, out, error = self.run(script, **template)
        assert (0, "") == (code, error)
        return out

    def folder(self, command: TaskCommand) -> Path:
        assert command.sandbox is not None
        return Path(command.sandbox.temporary).parent


@pytest.fixture(params=KINDS)
def room(request) -> Iterator[Room]:
    yield from _open(request.param)


@pytest.fixture
def root_room() -> Iterator[Room]:
    yield from _open(SandboxKind.NAMESPACES)


def _open(kind: SandboxKind) -> Iterator[Room]:
    # Not in /tmp, which tasks do not see anyway.
    base = "/var/lib" if IS_ROOT else str(Path.home())
    with tempfile.TemporaryDirectory(prefix="bough-", dir=base) as name:
        yield Room(kind, Path(name).resolve())


def test_a_task_writes_nothing_but_its_own_files(room):
    command = room.prepare(
        "for each in / /tmp /var/tmp /osmo/work /osmo/data/output /new /dev/shm; do "
        '(: > "$each/bough-test") && echo "$each"; done; '
        "for each in /etc /usr /usr/bin /var /var/lib /home /root /opt /sys /dev /boot; do "
        '(: > "$each/bough-test") 2>/dev/null && echo "$each" && rm "$each/bough-test"; done; true',
        files=(FileSpec("/new/file", ""),),
    )

    code, out, error = Running(command, room.user).end()

    assert (0, "") == (code, error)
    own = ["/", "/tmp", "/var/tmp", "/osmo/work", "/osmo/data/output", "/new", "/dev/shm"]
    assert own == out.split()
    folder = room.folder(command)
    for name in ("tmp", "work", "output", "root/new"):
        assert (folder / name / "bough-test").exists()


def test_variables_of_a_task_change_nothing_outside_of_its_view(room):
    outside = room.path / "outside"
    outside.mkdir()
    own = {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": f"{outside}/loaded", "ODD": "a\nb=--c", "NO": ""}

    code, out, _ = room.run('printf "%s|" "$LD_DEBUG" "$ODD" "$NO"', environment=own)

    assert (0, True) == (code, "files|a\nb=--c||" in out)
    assert [] == list(outside.iterdir())


def test_the_data_of_the_server_is_empty_for_it(room):
    secret = room.path / "local" / "secret"
    secret.parent.mkdir(parents=True)
    secret.write_text("geheim")
    beside = room.path / "beside"
    beside.write_text("seen")

    out = room.read(f"ls -A {room.path}/local; cat {beside}; ls -d {room.path}/local")

    assert f"seen{room.path}/local\n" == out


def test_a_file_of_the_server_is_empty_for_it(room):
    secret = room.path / "bough.db"
    secret.write_text("geheim")
    missing = room.path / "bough.db-wal"
    room.options = msgspec.structs.replace(room.options, hidden=(secret, missing))

    assert "there\n" == room.read(f"cat {secret}; test -e {secret} && echo there")


def test_it_has_no_keys_of_the_server(room):
    number = syscalls._SYS_KEYCTL.get(os.uname().machine)
    program = f"import ctypes; print(ctypes.CDLL(None).syscall({number}, 0, -3, 0))"
    python = shutil.which("python3", path="/usr/bin:/bin")
    own = ctypes.CDLL(None).syscall(number, 0, -3, 0) if number else -1
    if own < 0 or python is None:
        assert os.environ.get("CI") != "true", (
            "there are no keyrings, or no Python, on this machine"
        )
        pytest.skip("NOT TESTED: there are no keyrings, or no Python, on this machine")

    assert str(own) != room.read(f"{python} -I -S -c '{program}'").strip()


def test_tmp_is_its_own(room, tmp_path):
    first = room.read("ls -A /tmp; echo mine > /tmp/mine; cat /var/tmp/mine; echo $TMPDIR")
    second = room.read("ls -A /tmp")

    assert ("mine\n/tmp\n", "") == (first, second)
    assert tmp_path.exists()


def test_files_are_where_the_spec_says(room):
    files = tuple(FileSpec(path, f"{path} ") for path in ("/tmp/a", "/workspace/b/c", "/d", "e"))

    out = room.read("cat /tmp/a /workspace/b/c /d e; pwd", files=files)

    assert "/tmp/a /workspace/b/c /d e /osmo/work\n" == out


def test_inputs_are_read_only_and_outputs_are_kept(room):
    results = room.path / "local" / "results" / "flow-1" / "first"
    results.mkdir(parents=True)
    (results / "model").write_text("weights")
    command = room.prepare(
        "cat {{input:0}}/model; (echo x > {{input:0}}/model) 2>/dev/null || echo ' kept'; "
        "rm -rf {{input:0}}/model 2>/dev/null || echo again; echo out > {{output}}/x",
        inputs=(InputSpec(task="first"),),
    )

    assert (0, "weights kept\nagain\n", "") == Running(command, room.user).end()
    assert "weights" == (results / "model").read_text()
    assert "out\n" == (room.folder(command) / "output" / "x").read_text()


def test_it_sees_no_processes_but_its_own_and_can_signal_no_others(room):
    out = room.read(
        f"ls /proc | grep -c '^[0-9]*$'; kill -0 {os.getpid()} 2>/dev/null || echo none; "
        "cat /proc/self/comm"
    )

    count, none, name = out.split()
    assert int(count) <= 6
    assert ("none", "cat") == (none, name)


def test_devices_work(room):
    out = room.read(
        "echo x > /dev/null; head -c 2 /dev/zero | wc -c; head -c 3 /dev/urandom | wc -c; "
        "ls -A /dev/shm | wc -l; echo shared > /dev/shm/x; test -c /dev/tty && test -e /dev/ptmx; "
        "ls /dev/fd/0; ls /dev | grep -c '^sd\\|^vd\\|^nvme\\|^loop\\|^mem$\\|^kmsg$' || true"
    )

    assert ["2", "3", "0", "/dev/fd/0", "0"] == out.split()


def test_it_cannot_undo_the_view(room):
    script = """
    mount -t tmpfs none /mnt 2>/dev/null && echo mounted
    umount /tmp 2>/dev/null && echo unmounted
    mount -o remount,rw,bind /usr 2>/dev/null && echo remounted
    mknod /tmp/disk b 254 0 2>/dev/null && echo device
    ls /proc/1/root/ > /dev/null && test "$(stat -c %d:%i /proc/1/root/)" != \
        "$(stat -c %d:%i /)" && echo root
    echo x 2>/dev/null > /proc/sys/kernel/core_pattern && echo setting
    chroot / true 2>/dev/null && echo chroot
    grep -h -e NoNewPrivs -e CapBnd /proc/self/status
    """
    lines = room.read(f"({script}) 2>/dev/null").split("\n")

    kept = "00000000000004fb" if room.kind is SandboxKind.NAMESPACES else "0" * 16
    assert [f"CapBnd:\t{kept}", "NoNewPrivs:\t1", ""] == lines


def test_it_ends_with_the_exit_code_of_the_task(room):
    assert (77, "", "") == room.run("exit 77")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_ends_by_the_signal_that_ended_the_task(number, room):
    told = room.run(f"kill -{number.value} $$")[0]

    assert told == (128 + number if room.kind is SandboxKind.BUBBLEWRAP else -number)


def test_a_notice_reaches_the_task_and_it_has_time_to_act(room):
    running = room.start(
        "trap 'sleep 0.3; echo saved; exit 5' TERM; : > /tmp/ready; while :; do sleep 0.05; done"
    )
    wait_for(room.options.folder / "attempts/0/task/tmp/ready")

    running.signal(signal.SIGTERM)

    code, out, _ = running.end()
    assert (5, "saved\n") == (code, out)


def test_a_task_without_a_handler_ends_by_the_notice(room):
    running = room.start(": > /tmp/ready; while :; do sleep 0.05; done")
    wait_for(room.options.folder / "attempts/0/task/tmp/ready")

    running.signal(signal.SIGTERM)

    code = running.end()[0]
    assert code in {-signal.SIGTERM, 128 + signal.SIGTERM}


def test_what_a_task_leaves_behind_ends_with_it(room):
    mark = f"86400.{uuid.uuid4().int % 10**9}"

    code = room.run(f"setsid sleep {mark} >/dev/null 2>&1 & setsid sleep {mark} & sleep 0.1")[0]

    assert 0 == code
    # Bubblewrap tells the end of its first process before the kernel has ended the others.
    wait_until_gone(mark)


def test_when_it_is_killed_nothing_is_left_not_even_what_went_away(room):
    mark = f"86400.{uuid.uuid4().int % 10**9}"
    running = room.start(f"setsid sleep {mark} & : > /tmp/ready; trap '' TERM; wait")
    wait_for(room.options.folder / "attempts/0/task/tmp/ready")
    assert [] != processes_with(mark)

    running.signal(signal.SIGKILL)

    assert -signal.SIGKILL == running.end()[0]
    wait_until_gone(mark)


@needs_root
def test_a_link_in_the_place_of_data_is_not_followed(root_room):
    secret = root_room.path / "secret"
    secret.mkdir()
    (root_room.path / "link").symlink_to(secret)
    command = root_room.prepare("ls /data")
    for source in (root_room.path / "link", root_room.path / "link" / "below"):
        mounts = (*command.sandbox.mounts, Mount(str(source), "/data"))
        changed = msgspec.structs.replace(command.sandbox, mounts=mounts)

        code, out, error = Running(msgspec.structs.replace(command, sandbox=changed)).end()

        assert (UNSTARTABLE, "") == (code, out)
        assert error.startswith(f"{source} cannot be shown at /data: ")


@needs_root
def test_what_goes_wrong_half_way_is_told_and_the_machine_is_as_before(root_room):
    before = Path("/proc/self/mountinfo").read_text()
    command = root_room.prepare("true")
    shutil.rmtree(command.sandbox.temporary)

    code, _, error = Running(command).end()

    assert UNSTARTABLE == code
    assert error.startswith("the task's own view of the machine cannot be made: No such file")
    assert before == Path("/proc/self/mountinfo").read_text()


@needs_root
def test_mounts_of_a_task_are_not_seen_outside(root_room):
    before = Path("/proc/self/mountinfo").read_text()
    running = root_room.start(": > /tmp/ready; sleep 60")
    wait_for(root_room.options.folder / "attempts/0/task/tmp/ready")

    during = Path("/proc/self/mountinfo").read_text()

    running.signal(signal.SIGKILL)
    running.end()
    assert before == during


@needs_root
def test_mounts_of_a_task_are_not_seen_outside_where_mounts_spread(root_room):
    command = root_room.prepare(": > /tmp/ready; sleep 60")
    program = (
        "import sys, msgspec; from pathlib import Path; from tests.local.entering import *\n"
        "command = msgspec.json.decode(sys.argv[1], type=TaskCommand)\n"
        "print(mounts_spread(command, Path(sys.argv[2])))"
    )
    ready = Path(command.sandbox.temporary) / "ready"
    arguments = (msgspec.json.encode(command).decode(), str(ready))

    told = subprocess.run(
        (sys.executable, "-c", program, *arguments), capture_output=True, text=True, check=False
    )

    assert ("False\n", "") == (told.stdout, told.stderr)


@needs_root
def test_older_kernels_give_the_same_view(root_room):
    command = root_room.prepare(
        "for each in /etc /usr /var/lib /sys /sys/fs/cgroup/memory /tmp /new /; do "
        '(: > "$each/bough-test") 2>/dev/null && echo "$each" && rm "$each/bough-test"; done; true',
        files=(FileSpec("/new/file", ""),),
    )

    assert (0, "/tmp\n/new\n/\n", "") == Running(command, old=True).end()


@needs_root
def test_a_task_of_a_user_has_the_rights_of_that_user_alone():
    name = pwd.getpwuid(NOBODY).pw_name
    with tempfile.TemporaryDirectory(prefix="bough-", dir="/var/lib") as folder:
        room = Room(SandboxKind.NAMESPACES, Path(folder).resolve(), as_user=True)

        out = room.read(
            "id -u; id -G; whoami; echo $USER; : > here && : > {{output}}/x && : > /tmp/y && "
            ": > /new/z; cat /etc/shadow 2>/dev/null || echo refused; "
            "grep CapEff /proc/self/status; stat -c %u {{output}}/x",
            user=name,
            files=(FileSpec("/new/file", ""),),
        )

    groups = " ".join(str(each) for each in os.getgrouplist(name, pwd.getpwuid(NOBODY).pw_gid))
    expected = [str(NOBODY), groups, name, name, "refused", f"CapEff:\t{'0' * 16}", str(NOBODY)]
    assert expected == out.splitlines()


def test_a_task_without_a_view_starts_in_its_folder(tmp_path):
    place = Place(LocalOptions(tmp_path / "local"), None, tmp_path.resolve(), "flow-1")
    command = prepare(
        place, Launch("a", "a", "n", spec=TaskTemplate(command=("sh", "-c", "pwd; exit 3")))
    )

    assert (3, f"{tmp_path.resolve()}/work\n", "") == Running(command).end()


def test_the_resolver_is_found_where_it_is_elsewhere(tmp_path, monkeypatch):
    (tmp_path / "resolv.conf").symlink_to("/run/not/there/resolv.conf")
    monkeypatch.setattr(
        "bough.backends.local.sandbox.root_filesystem._RESOLVER", tmp_path / "resolv.conf"
    )

    assert [] == [each for each in find_running() if "not" in each]


@needs_root
def test_a_server_that_is_root_makes_views_itself(tmp_path):
    assert (SandboxKind.NAMESPACES, ()) == choose_sandbox(LocalOptions(tmp_path))


def test_every_kind_of_view_is_tried_out_before_it_is_used():
    kinds = [kind for kind in SandboxKind if kind is not SandboxKind.NAMESPACES or IS_ROOT]
    if shutil.which("bwrap") is None and os.environ.get("CI") != "true":
        kinds.remove(SandboxKind.BUBBLEWRAP)

    assert dict.fromkeys(kinds) == {kind: probe.try_sandbox(kind) for kind in kinds}


def test_a_bubblewrap_that_does_not_work_is_told(tmp_path, monkeypatch):
    program = tmp_path / "bwrap"
    program.write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    fault = probe.try_sandbox.__wrapped__(SandboxKind.BUBBLEWRAP)

    assert "bwrap: No permissions to create new namespace" == fault


def test_a_server_without_any_view_says_so_and_what_would_help(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1_000)
    monkeypatch.setattr(probe, "try_sandbox", lambda kind: f"no {kind}")

    kind, (warning,) = choose_sandbox(LocalOptions(tmp_path))

    assert kind is None
    assert warning.startswith("tasks have no private view of this machine: they share its /tmp")
    assert "run the server as root, or install bubblewrap" in warning
    assert "user namespaces: no user namespaces; bubblewrap: no bubblewrap" in warning


@needs_root
def test_a_server_that_is_root_but_may_not_is_told_apart(tmp_path):
    program = (
        "import sys; from pathlib import Path; from bough.backends.local.sandbox.sandbox import *\n"
        "print(choose_sandbox(LocalOptions(Path(sys.argv[1]))))"
    )
    confined = ("setpriv", "--bounding-set=-sys_admin", sys.executable, "-c", program)

    told = subprocess.run((*confined, str(tmp_path)), capture_output=True, text=True, check=True)

    assert told.stdout.startswith("(None, (")
    assert "let the server make namespaces (it is root, but without CAP_SYS_ADMIN)" in told.stdout


def test_views_can_be_switched_off(tmp_path):
    assert (None, ()) == choose_sandbox(LocalOptions(tmp_path, private=False))
