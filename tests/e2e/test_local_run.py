"""`bough run` with real processes: output, exit codes, waiting, and an interruption."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.e2e.local import Local, serving_locally
from tests.e2e.served import PATIENCE_S, PROGRAM


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    with serving_locally(tmp_path_factory.mktemp("run"), 2) as local:
        yield local


@pytest.fixture
def local(host: Local) -> Iterator[Local]:
    """A pool `p` of two GPUs."""
    host.pool("p", 2)
    yield host
    host.clear()


def run(local: Local, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, "run", "--pool", "p", *arguments],
        env=local.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def start(local: Local, *arguments: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PROGRAM, "run", "--pool", "p", *arguments],
        env=local.environment,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_command_prints_what_it_writes_and_ends_as_it_ends(local: Local):
    script = 'echo "out {{not a template}} $GREETING"; echo err >&2; exit 7'
    done = run(local, "--gpus", "1", "-e", "GREETING=hi", "--", "sh", "-c", script)
    assert 7 == done.returncode, done
    assert {"out {{not a template}} hi", "err"} == set(done.stdout.splitlines())


def test_a_command_that_is_killed_ends_as_a_shell_would_say(local: Local):
    assert 128 + 9 == run(local, "sh", "-c", "kill -9 $$").returncode


def test_a_command_that_does_not_exist_is_no_failure_of_a_command(local: Local):
    done = run(local, "/no/such/program")
    assert 125 == done.returncode
    assert "/no/such/program" in done.stderr


def test_it_says_what_it_waits_for(local: Local):
    holder = local.run("p", 2, "HIGH")
    waiting = start(local, "--gpus", "2", "echo", "done")
    assert waiting.stderr is not None
    told = [waiting.stderr.readline() for _ in range(2)]
    assert "waits" in told[1], told
    local.finish(holder)
    output, _ = waiting.communicate(timeout=PATIENCE_S)
    assert (0, "done\n") == (waiting.returncode, output)


def test_interrupted_it_goes_on_or_is_cancelled(local: Local):
    for answer, status in ((b"n\n", "RUNNING"), (b"y\n", "FAILED_CANCELED")):
        ours, theirs = pty.openpty()
        process = start(local, "--name", "i", "sh", "-c", "echo on; sleep 1000", stdin=theirs)
        os.close(theirs)
        assert process.stdout is not None
        assert "on\n" == process.stdout.readline()
        process.send_signal(signal.SIGINT)
        os.write(ours, answer)
        process.communicate(timeout=PATIENCE_S)
        os.close(ours)
        assert 130 == process.returncode
        (name, *_) = [each.name for each in local.client.workflows.list().workflows]
        local.until(lambda name=name, status=status: status == local.status(name))
