"""How a server has its local backend: what no task may see, and what it is told."""

from __future__ import annotations

import ipaddress
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bough.backends.local.options import LocalOptions
from bough.backends.local.sandbox.sandbox import choose_sandbox
from bough.model.backend import Launch, Sight, Start
from bough.model.task_template import TaskTemplate
from bough.server.hosting import open_host
from bough.server.settings import Settings
from tests.local.bench import now_ms, until


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that tasks can see: not in /tmp, of which they have their own."""
    base = "/var/lib" if os.geteuid() == 0 else str(Path.home())
    with tempfile.TemporaryDirectory(prefix="bough-", dir=base) as name:
        yield Path(name).resolve()


def outcome(settings: Settings, script: str) -> list[str]:
    """What a task wrote."""
    with open_host(settings, now_ms, lambda: None) as host:
        node = host.backend.nodes()[0].name
        launch = Launch("task/0", "task", node, spec=TaskTemplate(command=("sh", "-c", script)))
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
    with open_host(settings, now_ms, lambda: None) as host:
        told = [each for each in host.warnings if "every task can act as any user" in each]
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
