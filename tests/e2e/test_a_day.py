"""A day of a user whose laptop has nothing of the server's disk, with real processes.

A project is uploaded, swept over as an array, watched, looked into by a shell and by a forwarded
port; the best result is downloaded, and a webhook tells that it is over.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

from bough.errors import NotFound
from tests.api.receiving import Hooks, receiving_hooks
from tests.e2e.local import Local, hosting
from tests.e2e.served import PATIENCE_S, PROGRAM
from tests.e2e.sessions import Forwarded, token_of

BEST, STUCK = 37, 20
ELEMENTS = 50
#: Leaves what it found. One of them goes on only when a user looks into it.
TRAIN = f"""\
import json, os, pathlib, sys, time
rate = int(sys.argv[1])
while rate == {STUCK} and not pathlib.Path("go").exists():
    time.sleep(0.1)
loss = (rate - {BEST}) ** 2
result = pathlib.Path(os.environ["BOUGH_OUTPUT"], "result.json")
result.write_text(json.dumps({{"rate": rate, "loss": loss}}))
print("loss", loss)
"""
#: Entered before each command: what is mounted over the server's folder hides all of it.
HIDE = 'mount -t tmpfs none "$0" && exec "$@"'


class Laptop:
    """Commands as a user gives them who has the server's address and a token, and no more."""

    def __init__(self, local: Local, home: Path, token: str) -> None:
        as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
        hidden = str(local.folder / "data")
        self._command = ["unshare", "--mount", *as_root, "sh", "-c", HIDE, hidden, PROGRAM]
        self.project = home / "project"
        self.project.mkdir(parents=True)
        self._environment = local.environment | {"BOUGH_TOKEN": token, "XDG_CONFIG_HOME": str(home)}

    @contextlib.contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """A command that goes on; killed at the end, if it still does."""
        process = subprocess.Popen(
            [*self._command, *arguments],
            cwd=self.project,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def done(self, *arguments: str) -> str:
        """Run a command that must succeed; what it printed."""
        with self.started(*arguments) as process:
            output, errors = process.communicate(timeout=PATIENCE_S * 5)
        assert 0 == process.returncode, errors.decode()
        return output.decode()


def test_a_day_of_a_user_who_has_a_laptop_and_a_token(tmp_path: Path):
    with receiving_hooks() as hooks:
        rules = tmp_path / "notifications.yaml"
        rules.write_text(f"webhooks: ['{hooks.address}']\n")
        with hosting(tmp_path, 2, "--notifications", str(rules)) as host:
            local = host.start()
            local.pool("p", 2)
            laptop = Laptop(local, tmp_path / "laptop", token_of(local, "ann", "osmo-p-user"))
            url = f"url={hooks.address}/ann"
            laptop.done("credential", "set", "webhook", "--type", "GENERIC", "--payload", url)
            laptop.done("profile", "set", "notifications", "webhook")
            laptop.done("profile", "set", "pool", "p")

            write_project(laptop)
            sweep_and_look_into_one(local, laptop)
            see_a_page_of_a_task(laptop)
            download_the_best(laptop)
            told = [("sweep-1", "COMPLETED"), ("page-1", "FAILED_CANCELED")]
            local.until(lambda: told == ended(hooks), lambda: hooks.got)


def ended(hooks: Hooks) -> list[tuple[str, str]]:
    """What was told to have ended, and how; an array is told of once."""
    return [(each["workflow"], each["status"]) for path, each in hooks.got if path == "/ann"]


def write_project(laptop: Laptop) -> None:
    (laptop.project / "train.py").write_text(TRAIN)
    (laptop.project / ".gitignore").write_text("large/\n")
    (laptop.project / "large").mkdir()
    (laptop.project / "large" / "data").write_text("not to be sent")


def sweep_and_look_into_one(local: Local, laptop: Laptop) -> None:
    command = ("--upload", ".", "--array", f"0-{ELEMENTS - 1}%8", "--", "python3", "train.py")
    with laptop.started("run", "--name", "sweep", *command, "{{array}}") as sweep:
        others = {"COMPLETED": ELEMENTS - 1, "RUNNING": 1}
        local.until(lambda: others == statuses_of_sweep(local), lambda: statuses_of_sweep(local))
        assert f"sweep-1-{STUCK} " in laptop.done(
            "workflow", "list", "--mine", "--status", "RUNNING"
        )
        seen = laptop.done("workflow", "exec", f"sweep-1-{STUCK}", "main", "--", "ls", "-A")
        assert {"train.py", ".gitignore"} <= set(seen.split())
        assert "large" not in seen
        laptop.done("workflow", "exec", f"sweep-1-{STUCK}", "main", "--", "touch", "go")
        sweep.communicate(timeout=PATIENCE_S)
        assert 0 == sweep.returncode


def statuses_of_sweep(local: Local) -> dict[str, int]:
    """How many of the array have which status; none before the project is uploaded."""
    try:
        return local.client.workflows.array("sweep-1").statuses
    except NotFound:
        return {}


def see_a_page_of_a_task(laptop: Laptop) -> None:
    server = ("python3", "-u", "-m", "http.server", "8000", "--bind", "127.0.0.1")
    options = ("--name", "page", "--upload", ".", "--detach", "-t", "json")
    name = json.loads(laptop.done("run", *options, "--", *server))["name"]
    with laptop.started("workflow", "logs", name) as log:
        assert log.stdout is not None
        # It says when it listens.
        while b"Serving HTTP" not in log.stdout.readline():
            assert log.poll() is None
    with laptop.started("workflow", "port-forward", name, "main", "0:8000") as process:
        port = Forwarded(process).port
        with urlopen(f"http://127.0.0.1:{port}/train.py", timeout=PATIENCE_S) as page:
            assert TRAIN == page.read().decode()
    laptop.done("workflow", "cancel", name)


def download_the_best(laptop: Laptop) -> None:
    losses = {}
    for number in range(ELEMENTS):
        log = laptop.done("workflow", "logs", f"sweep-1-{number}", "--no-follow")
        losses[number] = int(log.rpartition("loss ")[2])
    best = min(losses, key=lambda each: losses[each])
    laptop.done("workflow", "download", f"sweep-1-{best}", "main", "-o", "best")
    found = json.loads((laptop.project / "best" / "result.json").read_text())
    assert {"rate": BEST, "loss": 0} == found
