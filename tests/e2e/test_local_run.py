"""`bough run` with real processes: output, exit codes, waiting, and an interruption."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import tempfile
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.local import Hosting, Local, hosting, serving_locally
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


def test_why_it_could_not_be_run_is_said_also_where_little_is(local: Local):
    done = run(local, "--quiet", "/no/such/program")
    assert (125, True) == (done.returncode, "/no/such/program: there is no" in done.stderr), done
    # The programs of the machine do not stand in for an environment that is not there.
    done = run(local, "--quiet", "--venv", "/no/such/venv", "python3", "--version")
    expected = "There is no environment in /no/such/venv where this runs.\n"
    assert (125, expected) == (done.returncode, done.stdout), done


def test_a_command_in_an_environment_finds_its_programs_first(local: Local):
    # A task has a /tmp and a /var/tmp of its own.
    base = "/var/lib" if os.geteuid() == 0 else Path.home()
    with tempfile.TemporaryDirectory(dir=base) as folder:
        program = Path(folder, "bin", "greet")
        program.parent.mkdir()
        program.write_text('#!/bin/sh\necho "$1 from ${VIRTUAL_ENV:-$CONDA_PREFIX}"\n')
        Path(folder).chmod(0o755)
        program.chmod(0o755)
        for option in ("--venv", "--conda"):
            done = run(local, "--quiet", option, folder, "greet", "hi")
            assert (0, f"hi from {folder}\n") == (done.returncode, done.stdout), done


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


def test_an_array_runs_for_each_index_and_what_comes_after_it_waits(local: Local):
    script = 'echo "element {{array}} of $BOUGH_ARRAY_INDEX"; test {{array}} != 3'
    sweep = start(local, "--name", "sweep", "--array", "1-4%2", "--", "sh", "-c", script)
    _, errors = sweep.communicate(timeout=PATIENCE_S)
    assert (1, True) == (sweep.returncode, "1 FAILED" in errors), errors
    (name,) = {line.partition(":")[0] for line in errors.splitlines()}
    found = local.client.workflows.array(name)
    assert ({"COMPLETED": 3, "FAILED": 1}, "FAILED") == (found.statuses, found.status)
    lines = list(local.client.workflows.logs(f"{name}-4"))
    assert ["element 4 of 4"] == [line.split("] ", 1)[1].strip() for line in lines]
    assert 0 == run(local, "--after", name, "true").returncode
    failed = run(local, "--afterok", name, "true")
    assert (125, True) == (failed.returncode, "It starts only after" in failed.stderr), failed


def test_a_command_that_fails_is_tried_again(local: Local):
    script = "echo try $BOUGH_RETRY_ID; test $BOUGH_RETRY_ID = 2"
    done = run(local, "--retries", "2", "--", "sh", "-c", script)
    assert (0, ["try 0", "try 1", "try 2"]) == (done.returncode, done.stdout.splitlines()), done


def test_a_log_is_followed_to_the_exit_code_through_a_restart_of_the_server(tmp_path: Path):
    with hosting(tmp_path, 1) as host:
        local = host.start()
        local.pool("p", 1)
        follow_through_a_restart(host, local)


def follow_through_a_restart(host: Hosting, local: Local) -> None:
    script = "for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.5; done; exit 5"
    name = run(local, "--detach", "-t", "json", "--", "sh", "-c", script).stdout
    name = json.loads(name)["name"]
    following = subprocess.Popen(
        [PROGRAM, "workflow", "logs", name],
        env=local.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert following.stdout is not None
    read = [following.stdout.readline() for _ in range(3)]
    host.stop()
    host.start()
    output, errors = following.communicate(timeout=PATIENCE_S)
    lines = [*read[1:], *output.splitlines()]
    assert [f"line {number}" for number in range(1, 9)] == [
        line.split("] ", 1)[1].strip() for line in lines
    ], errors
    assert 5 == following.returncode


@pytest.mark.parametrize("how", ["key", "signal"])
def test_the_live_view_shows_holders_and_leaves_the_terminal_as_it_was(local: Local, how: str):
    holder = local.run("p", 2, "HIGH")
    waiting = local.submit("p", 1, "NORMAL")
    local.left_waiting(waiting)
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    process = subprocess.Popen(
        [PROGRAM, "top", "--interval", "0.2"],
        env={**local.environment, "TERM": "xterm", "COLUMNS": "80"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    shown = b""
    while b"\x1b[J" not in shown:
        shown += os.read(ours, 1 << 16)
    assert shown.startswith(b"\x1b[?1049h")
    assert (True, True) == (holder.encode() in shown, waiting.encode() in shown), shown
    if how == "key":
        os.write(ours, b"q")
    else:
        process.terminate()
    while b"\x1b[?1049l" not in shown:
        shown += os.read(ours, 1 << 16)
    assert 0 == process.wait(PATIENCE_S)
    assert before == termios.tcgetattr(theirs)
    os.close(ours)
    os.close(theirs)
