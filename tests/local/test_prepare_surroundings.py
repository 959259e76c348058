"""From a launch to a command: what is seen, as which account it runs, and in which image."""

# ruff: noqa: S108 - these paths are the ones that tasks see

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path

import pytest

from bough.backends.local.options import LocalOptions
from bough.backends.local.preparation.accounts import account_warnings
from bough.backends.local.preparation.prepare_task import clean_up
from bough.backends.local.task_command import TaskLimits
from bough.model.task_template import (
    CheckpointSpec,
    CredentialUse,
    FileSpec,
    TaskTemplate,
)
from tests.local.desk import SANDBOX, Desk

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 and os.environ.get("CI") != "true",
    reason="NOT TESTED: only root can run tasks as others",
)


@pytest.fixture
def desk(tmp_path) -> Desk:
    return Desk(tmp_path)


def test_the_view_hides_the_data_of_the_server(tmp_path):
    desk = Desk(tmp_path, hidden=(tmp_path / "database",))

    sandbox = desk.prepare().sandbox

    assert (str(desk.path / "local"), str(desk.path / "database")) == sandbox.hidden
    assert (str(desk.folder / "tmp"), str(desk.path / "local" / "view")) == (
        sandbox.temporary,
        sandbox.root,
    )


def test_new_top_level_folders_are_mounted_also_those_for_checkpoints(desk):
    template = TaskTemplate(
        command=("true",),
        files=(FileSpec("/workspace/a", ""), FileSpec("/b", ""), FileSpec("/osmo/c", "")),
        checkpoints=(CheckpointSpec("/models/latest", "s3://b", 1),),
    )

    mounts = desk.prepare(template).sandbox.mounts

    assert ["/b", "/models", "/osmo", "/workspace", "/osmo/work", "/osmo/data/output"] == [
        each.target for each in mounts if each.writable
    ]
    assert str(desk.folder / "root" / "models") == mounts[1].source


@needs_root
def test_a_task_runs_as_its_user_who_owns_its_folders(tmp_path):
    nobody = pwd.getpwnam("nobody")
    desk = Desk(tmp_path, as_user=True)
    template = TaskTemplate(
        command=("true",),
        files=(FileSpec("a/b", ""),),
        credentials=(CredentialUse("key", "/keys"),),
    )

    command = desk.prepare(template, user="nobody", secrets={"key": {"a": "b"}})

    account = command.account
    assert (nobody.pw_uid, nobody.pw_gid) == (account.user_id, account.group_id)
    assert nobody.pw_gid in account.groups
    assert "nobody" == command.environment["USER"]
    for name in ("work", "output", "tmp", "root", "work/a", "work/a/b", "secrets/0/a"):
        assert (name, nobody.pw_uid) == (name, (desk.folder / name).stat().st_uid)
    assert 0 == desk.folder.stat().st_uid


@needs_root
@pytest.mark.parametrize(
    ("user", "sandbox", "why"),
    [
        ("no-such-user", SANDBOX, "this machine has no user 'no-such-user'"),
        ("", SANDBOX, "this machine has no user ''"),
        ("a\0b", SANDBOX, "this machine has no user"),
        ("root", SANDBOX, "'root' is the superuser of this machine, as which no task runs"),
        ("nobody", None, "only possible with a private view of the machine"),
    ],
)
def test_an_account_that_no_task_can_run_as_is_refused(user, sandbox, why, tmp_path):
    desk = Desk(tmp_path, as_user=True)

    assert why in desk.refuse(TaskTemplate(command=("true",)), sandbox, user=user)


@needs_root
def test_what_is_missing_to_run_tasks_as_their_users_is_told_at_the_start(tmp_path, monkeypatch):
    options = LocalOptions(tmp_path, as_user=True)

    (warning,) = account_warnings(LocalOptions(tmp_path), SANDBOX)
    assert warning.startswith("tasks run as root, and can read every file of this machine")
    assert () == account_warnings(options, SANDBOX)
    (warning,) = account_warnings(options, None)
    assert warning.endswith("they need a private view: none starts")
    monkeypatch.setattr(os, "geteuid", lambda: 1_000)
    (warning,) = account_warnings(options, SANDBOX)
    assert warning.endswith("the server must be root: none starts")
    assert () == account_warnings(LocalOptions(tmp_path), SANDBOX)


def test_what_only_a_running_task_needs_is_removed(desk):
    template = TaskTemplate(
        command=("true",),
        files=(FileSpec("/tmp/a", ""), FileSpec("/new/b", ""), FileSpec("{{output}}/c", "c")),
        credentials=(CredentialUse("key", "/keys"),),
    )
    desk.prepare(template, secrets={"key": {"a": "b"}})
    (desk.folder / "work" / "closed" / "deeper").mkdir(parents=True)
    (desk.folder / "work" / "closed").chmod(0)

    for _ in range(2):
        clean_up(desk.folder)

    assert {"output/c": b"c"} == desk.files()
    assert ["output"] == [each.name for each in desk.folder.iterdir()]


@pytest.fixture
def runner(tmp_path) -> Path:
    """A container runner that only writes down how it was called."""
    program = tmp_path / "docker"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "${0}.called"; env > "${0}.environment"\n')
    program.chmod(0o755)
    return program


def test_an_image_is_run_by_the_container_runner(runner, tmp_path):
    desk = Desk(tmp_path / "desk", container_runner=str(runner), processes=500)
    template = TaskTemplate(
        image="nvcr.io/nvidia/pytorch:24.03-py3",
        command=("bash", "-c"),
        args=("ls {{output}}",),
        environment={"LD_PRELOAD": "evil.so", "TEXT": "two\nlines", "PATH": "/opt/bin"},
        files=(FileSpec("/tmp/run.sh", ""), FileSpec("/etc/motd", "hi")),
        checkpoints=(CheckpointSpec("/models", "s3://b", 60),),
        credentials=(CredentialUse("key", None, {"TOKEN": "t"}),),
    )

    command = desk.prepare(
        template, cpu_milli=1_500, memory_bytes=2**30, secrets={"key": {"t": "geheim"}}
    )
    subprocess.run(command.argv, env=command.environment, cwd=command.working_folder, check=True)

    called = Path(f"{runner}.called").read_text()
    task = desk.folder
    expected = [
        *("run", "--rm", "--name", "bough-task-1-0-7e502d5f697b", "--network", "host"),
        *("--workdir", "/osmo/work"),
        *("--volume", f"{task}/tmp:/tmp"),
        *("--volume", f"{task}/work:/osmo/work"),
        *("--volume", f"{task}/output:/osmo/data/output"),
        *("--volume", f"{task}/root/etc/motd:/etc/motd"),
        *("--volume", f"{task}/root/models:/models"),
        *("--env-file", f"{task}/secrets/environment", "--env", "TEXT=two", "lines"),
        *("--cpus", "1.500", "--memory", str(2**30), "--pids-limit", "500"),
        *("--entrypoint", "bash"),
        *("nvcr.io/nvidia/pytorch:24.03-py3", "-c", "ls /osmo/data/output"),
    ]
    assert expected == called.splitlines()
    assert "evil" not in Path(f"{runner}.environment").read_text()
    told = (task / "secrets/environment").read_text().splitlines()
    assert {"LD_PRELOAD=evil.so", "PATH=/opt/bin", "TOKEN=geheim"} <= set(told)
    assert "HOME=/osmo/work" not in told
    assert (str(runner), "rm", "--force", "bough-task-1-0-7e502d5f697b") == command.clean_up
    assert (None, TaskLimits()) == (command.sandbox, command.limits)


def test_an_image_without_a_command_runs_its_own(runner, tmp_path):
    desk = Desk(tmp_path / "desk", container_runner=str(runner))

    assert ("ubuntu:24.04",) == desk.prepare(TaskTemplate(image="ubuntu:24.04")).argv[-1:]


@pytest.mark.parametrize("image", ["--privileged", "-v", "a b", "x\n", "/x", "a" * 600])
def test_what_is_no_name_of_an_image_is_refused(image, runner, tmp_path):
    desk = Desk(tmp_path / "desk", container_runner=str(runner))

    message = desk.refuse(TaskTemplate(image=image))

    assert message.startswith("image: ")
    assert message.endswith(" is not the name of an image")


def test_a_task_without_an_image_runs_on_the_machine_also_with_a_container_runner(runner, tmp_path):
    desk = Desk(tmp_path / "desk", container_runner=str(runner))

    assert ("true",) == desk.prepare().argv
