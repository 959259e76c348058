"""What tests share: a server that answers as it is told, and files that are planned."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bough.cli.main import run
from bough.client import transport
from bough.tools.load_snapshot import Scene, load_scene
from tests.answering import Answering, answering


class Ended(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    output: str
    errors: str


Osmo = Callable[..., Ended]


@pytest.fixture
def login_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nobody's real login is read or written."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("BOUGH_SERVER", raising=False)
    monkeypatch.delenv("BOUGH_TOKEN", raising=False)
    monkeypatch.setattr(transport, "PAUSE_S", 0)
    return tmp_path / "bough" / "login.json"


@pytest.fixture
def server() -> Iterator[Answering]:
    with answering() as found:
        yield found


@pytest.fixture
def osmo(
    server: Answering,
    login_file: Path,  # noqa: ARG001  keeps the real one out
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Osmo:
    """Run a command of `osmo` against the server."""
    monkeypatch.setenv("BOUGH_SERVER", server.address)
    monkeypatch.setenv("BOUGH_TOKEN", "secret")
    monkeypatch.setenv("TZ", "UTC")

    def run_command(*arguments: str) -> Ended:
        code = run(list(arguments), "osmo")
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    return run_command


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Write documents to a file and give it to a command; `FILE` stands for its name."""

    def ask(command: str, *documents: str) -> Any:
        path = tmp_path / "objects.yaml"
        path.write_text("\n---\n".join(documents), encoding="utf-8")
        arguments = command.replace("FILE", str(path)).split()
        code = run([*arguments, "--format-type", "json"])
        found = capsys.readouterr()
        assert code in {0, 3}, found.err
        return json.loads(found.out)

    return ask


@pytest.fixture
def scene(tmp_path: Path):
    """What documents become that are planned together."""

    def load(*documents: str) -> Scene:
        path = tmp_path / "objects.yaml"
        path.write_text("\n---\n".join(documents), encoding="utf-8")
        return load_scene([str(path)])

    return load
