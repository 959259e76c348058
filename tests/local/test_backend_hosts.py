"""How a server has its local backend: what no task may see, and what it is told."""

from __future__ import annotations

import ipaddress
import os
import pwd
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bough.backends.local.data.locations import results_folder
from bough.backends.local.options import LocalOptions
from bough.backends.local.sandbox.sandbox import choose_sandbox
from bough.errors import BoughError
from bough.model.backend import Launch, Sight, Start
from bough.model.task_template import CredentialUse, FileSpec, InputSpec, OutputSpec, TaskTemplate
from bough.server.backend_hosts import open_hosts
from bough.server.settings import TASK_USER, Settings
from tests.local.bench import now_ms, until
from tests.local.plain_account import PLAIN, as_plain_account

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="the server is not root")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that tasks can see: not in /tmp, of which they have their own."""
    base = "/var/lib" if os.geteuid() == 0 else str(Path.home())
    with tempfile.TemporaryDirectory(prefix="bough-", dir=base) as name:
        Path(name).chmod(0o755)
        yield Path(name).resolve()


def outcome(settings: Settings, script: str, **spec: Any) -> list[str]:
    """What a task wrote."""
    secrets = spec.pop("secrets", {})
    with open_hosts(settings, now_ms, lambda: None, "site") as (host,):
        node = host.backend.nodes()[0].name
        template = TaskTemplate(command=("sh", "-c", script), **spec)
        launch = Launch("task/0", "task", node, spec=template, secrets=secrets)
        host.backend.start(Start("flow", "group", (launch,)))
        until(lambda: [each.sight for each in host.backend.observe()] == [Sight.ENDED])
        part = host.backend.read_log("task/0")
        host.backend.forget(("task/0",))
    assert part is not None
    return [line.text for line in part.lines]


def test_it_is_said_that_tasks_can_be_everybody_where_their_machine_is_believed(
    folder: Path,
) -> None:
    networks = ("10.0.0.0/8", "127.0.0.1/32", "::/0")
    settings = Settings(folder, gpus=1, trusted_proxies=tuple(map(ipaddress.ip_network, networks)))
    with open_hosts(settings, now_ms, lambda: None, "site") as (host,):
        told = [each for each in host.warnings if "can act as any user" in each]
    assert ["127.0.0.1/32", "::/0"] == [each.split()[2] for each in told]


@pytest.mark.parametrize("url", ["{}", "sqlite:///{}"])
@pytest.mark.parametrize("relative", [False, True])
def test_a_task_sees_neither_the_data_nor_a_database_elsewhere_nor_the_servers_login(
    folder: Path, monkeypatch: pytest.MonkeyPatch, url: str, *, relative: bool
) -> None:
    sandbox, warnings = choose_sandbox(LocalOptions(folder))
    if sandbox is None and os.environ.get("CI") != "true":
        pytest.skip(f"TASKS HAVE NO VIEW OF THEIR OWN HERE: {warnings}")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    secrets = ["data/admin-token", "db/bough.db", "db/bough.db-wal", "config/bough/login.json"]
    for each in (*secrets, "db/beside"):
        path = folder / each
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("secret\n")
    monkeypatch.chdir(folder)
    base = Path() if relative else folder
    settings = Settings(base / "data", gpus=1, database=url.format(base / "db" / "bough.db"))

    found = outcome(settings, f"cd {folder}; cat {' '.join(secrets)} 2>/dev/null; cat db/beside")

    assert ["secret"] == found


@needs_root
def test_tasks_of_a_server_that_is_root_run_as_an_account_without_rights(folder: Path) -> None:
    token = folder / "other" / "admin-token"
    token.parent.mkdir(mode=0o755)
    token.write_text("secret of another installation")
    token.chmod(0o600)
    script = (
        "id -un; echo $USER; grep CapEff /proc/self/status; ls -A /root; "
        f"cat /etc/shadow {token} {folder}/data/admin-token 2>/dev/null || echo refused; "
        "cat /keys/key; cat script; echo made > {{output}}/file && echo x > /tmp/x && echo y > y; "
        "touch /etc/x 2>/dev/null || echo refused; echo to stderr >&2; echo again > /dev/stdout"
    )
    settings = Settings(folder / "data", gpus=1)
    (folder / "data").mkdir(mode=0o700)
    (folder / "data" / "admin-token").write_text("secret")
    with open_hosts(settings, now_ms, lambda: None, "site") as (host,):
        assert not [each for each in host.warnings if "run as root" in each]

    found = outcome(
        settings,
        script,
        secrets={"store": {"key": "of the user\n"}},
        credentials=(CredentialUse("store", "/keys"),),
        files=(FileSpec("script", "a file\n"),),
        outputs=(OutputSpec("s3://bucket/result"),),
    )

    assert [
        TASK_USER,
        TASK_USER,
        f"CapEff:\t{'0' * 16}",
        "refused",
        "of the user",
        "a file",
    ] == found[:6]
    assert sorted(["refused", "to stderr", "again"]) == sorted(found[6:])
    local = LocalOptions(folder / "data" / "local")
    assert "made\n" == (results_folder(local, "flow", "task") / "file").read_text()
    assert ["made\n"] == [each.read_text() for each in local.folder.glob("data/s3/*/result/file")]


@needs_root
def test_results_that_an_earlier_version_made_as_root_are_read_by_tasks_of_the_account(
    folder: Path,
) -> None:
    settings = Settings(folder / "data", gpus=1)
    made = results_folder(LocalOptions(folder / "data" / "local"), "flow", "before")
    (made / "closed").mkdir(parents=True)
    (made / "closed").chmod(0o700)
    (made / "closed" / "file").write_text("of root\n")
    (made / "closed" / "file").chmod(0o600)

    found = outcome(settings, "cat {{input:0}}/closed/file", inputs=(InputSpec(task="before"),))

    assert ["of root"] == found


@needs_root
def test_the_account_of_tasks_is_named_by_an_option_made_if_missing_and_root_if_told(
    folder: Path,
) -> None:
    name = f"bough-t{os.getpid()}"
    try:
        assert [name] == outcome(Settings(folder / "a", gpus=1, task_user=name), "id -un")
        entry = pwd.getpwnam(name)
        assert ("/nonexistent", "/usr/sbin/nologin") == (entry.pw_dir, entry.pw_shell)
    finally:
        subprocess.run(("/usr/sbin/userdel", name), check=False, capture_output=True)
    settings = Settings(folder / "b", gpus=1, task_user="root")
    with open_hosts(settings, now_ms, lambda: None, "site") as (host,):
        assert [each for each in host.warnings if each.startswith("tasks run as root, and can")]
    assert ["0"] == outcome(settings, "id -u")
    for options, expected in (
        ({"task_user": "no:name"}, "The account no:name, which tasks run as, cannot be made: "),
        (
            {"task_user": name, "as_user": True},
            "--task-user and --as-user cannot be used together.",
        ),
    ):
        with pytest.raises(BoughError) as caught:
            outcome(Settings(folder / "c", gpus=1, **options), "true")
        assert caught.value.message.startswith(expected)


@needs_root
def test_without_a_view_the_account_must_be_able_to_enter_the_data_folder(folder: Path) -> None:
    (folder / "data").mkdir(mode=0o700)
    settings = Settings(folder / "data", gpus=1, private=False)
    with pytest.raises(BoughError) as caught:
        outcome(settings, "true")
    assert (
        f"Tasks run as the account {TASK_USER}, which cannot enter {folder}/data, and they have no "
        "private view of this machine."
    ) == caught.value.message

    (folder / "data").chmod(0o711)
    (folder / "data" / "admin-token").write_text("secret")
    (folder / "data" / "admin-token").chmod(0o600)
    script = f"id -un; cat {folder}/data/admin-token 2>/dev/null || echo refused; echo x > y; cat y"
    assert [TASK_USER, "refused", "x"] == outcome(settings, script)


@needs_root
def test_a_server_that_is_not_root_runs_tasks_as_itself_and_no_other(folder: Path) -> None:
    (folder / "plain").mkdir(mode=0o700)
    os.chown(folder / "plain", PLAIN, PLAIN)

    def serve() -> str:
        settings = Settings(folder / "plain" / "data", gpus=1)
        return " ".join(outcome(settings, "id -u; cat /etc/shadow 2>/dev/null || echo refused"))

    def refused() -> str:
        settings = Settings(folder / "plain" / "data", gpus=1, task_user="games")
        with pytest.raises(BoughError) as caught:
            outcome(settings, "true")
        return caught.value.message

    assert f"{PLAIN} refused" == as_plain_account(serve)
    expected = "Only a server that is root can run tasks as another account (games)."
    assert expected == as_plain_account(refused)


def test_a_task_sees_no_files_of_others_where_the_folder_of_the_tasks_is_elsewhere(
    folder: Path,
) -> None:
    sandbox, warnings = choose_sandbox(LocalOptions(folder))
    if sandbox is None and os.environ.get("CI") != "true":
        pytest.skip(f"TASKS HAVE NO VIEW OF THEIR OWN HERE: {warnings}")
    other = folder / "tasks" / "attempts" / "other-0"
    other.mkdir(parents=True)
    (other / "log.0").write_text("secret\n")
    settings = Settings(folder / "data", gpus=1, tasks=folder / "tasks")

    found = outcome(settings, f"cat {other}/log.0 2>/dev/null; ls {other.parent}; echo end")

    assert ["end"] == found[-1:]
    assert "secret" not in found
    assert "other-0" not in found
