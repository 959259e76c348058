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
    """No real login is read or written."""
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
def logged_in(
    server: Answering,
    login_file: Path,  # noqa: ARG001  keeps the real one out
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Commands ask the server that answers as it is told."""
    monkeypatch.setenv("BOUGH_SERVER", server.address)
    monkeypatch.setenv("BOUGH_TOKEN", "secret")
    monkeypatch.setenv("TZ", "UTC")


@pytest.fixture
def osmo(logged_in: None, capsys: pytest.CaptureFixture[str]) -> Osmo:  # noqa: ARG001
    """Run a command of `osmo` against the server."""
    return _runner("osmo", capsys)


@pytest.fixture
def bough(logged_in: None, capsys: pytest.CaptureFixture[str]) -> Osmo:  # noqa: ARG001
    """Run a command of `bough` against the server."""
    return _runner("bough", capsys)


def _runner(program: str, capsys: pytest.CaptureFixture[str]) -> Osmo:
    def run_command(*arguments: str) -> Ended:
        code = run(list(arguments), program)
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
        assert code in {0, 1}, found.err
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
