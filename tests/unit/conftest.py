"""What tests of the client and of server commands share: a server that answers as it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from bough.cli.main import run
from bough.client import transport
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
