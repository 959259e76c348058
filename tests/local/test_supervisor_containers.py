"""Tasks in containers, with a runner that only pretends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bough.backends.local.attempt_state import read_state
from bough.backends.local.preparation.container import container_name
from bough.model.backend import Sight
from tests.local.bench import Bench, kill

#: Runs the arguments after the image, and writes down whatever else it is asked to do.
_RUNNER = """#!/bin/sh
echo "$@" >> "$HOME/asked"
test "$1" = run || exit 0
echo "$HOME $XDG_RUNTIME_DIR $SECRET"
while [ "$1" != image ]; do shift; done
shift
exec "$@"
"""


@pytest.fixture(params=["runner", "programs/runner"])
def bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Bench]:
    """A server that finds the runner as its user does."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "runner").write_text(_RUNNER)
    (programs / "runner").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    monkeypatch.setenv("SECRET", "geheim")
    monkeypatch.chdir(tmp_path)
    bench = Bench(tmp_path, container_runner=request.param)
    try:
        yield bench
    finally:
        bench.end()


def asked(bench: Bench) -> list[str]:
    return (bench.path / "asked").read_text().splitlines()


def test_a_runner_finds_what_it_needs_of_the_servers_environment(bench: Bench) -> None:
    attempt = bench.run(image="image", args=("true",))
    assert 0 == bench.wait_over(attempt).exit_code
    assert [f"{bench.path} /run/user/1 "] == bench.texts(attempt)


def test_the_container_of_a_finished_task_is_removed(bench: Bench) -> None:
    attempt = bench.run(image="image", args=("true",))
    bench.wait_over(attempt)
    assert f"rm --force {container_name(attempt)}" == asked(bench)[-1]
    assert "" == (bench.options.folder / "keepers.log").read_text()


@pytest.mark.parametrize("restarted", [False, True])
def test_the_container_of_a_task_whose_supervisor_is_killed_is_removed(
    bench: Bench, *, restarted: bool
) -> None:
    attempt = bench.run(image="image", args=("sleep", "1000"))
    bench.wait_running(attempt)
    state = read_state(bench.options.folder / "attempts" / attempt.replace("/", "-") / "state")
    assert state is not None
    assert state.supervisor is not None
    if restarted:
        bench.backend.close()
    kill(state.supervisor.pid)
    if restarted:
        bench.backend = bench.open()
    assert Sight.LOST is bench.wait_over(attempt).sight
    assert f"rm --force {container_name(attempt)}" == asked(bench)[-1]
