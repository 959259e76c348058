"""A server comes and goes, and what runs goes on: found again, and ended when that is asked for."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from pathlib import Path

from tests.e2e.local import FAIL, FINISH, Attempt, Hosting, Local, hosting


def test_the_example_is_found_again_as_it_was_left(tmp_path: Path):
    with hosting(tmp_path, 8, "--example") as host:
        local = host.start()
        running = [each["name"] for each in listed(local, "RUNNING", 7)]
        before = local.mains()
        assert 8 == len({gpu for each in before for gpu in each.gpus})

        printed = host.stop(signal.SIGINT)
        assert before == local.mains()
        try_all(printed, host)

        assert before == local.mains()
        local = host.start()
        assert before == local.mains()
        assert running == [each["name"] for each in listed(local, "RUNNING", 7)]
        assert all("retry-" not in line for name in running for line in local.log(name))
        local.done("workflow", "cancel", *running)
        local.over(*running)
        assert {"FAILED_CANCELED"} == set(local.statuses(*running))
        assert "told to end" in local.log(running[0])[-1]


def listed(local: Local, status: str, count: int) -> list[dict[str, str]]:
    """So many workflows of a status, once there are."""

    def found() -> list[dict[str, str]]:
        page = local.json("workflow", "list", "--all-users", "--status", status)
        return page["workflows"]

    local.until(lambda: count <= len(found()), found)
    return found()


def try_all(printed: str, host: Hosting) -> None:
    """Start again, and run what a server says that one can run."""
    commands = [line.strip() for line in printed.splitlines() if line.startswith("  ")]
    assert len(commands) > 3
    host.start()
    script = "\n".join(("set -e", *commands))
    environment = {"PATH": os.environ["PATH"], "HOME": str(host.folder)}
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=host.folder,
    )
    assert 0 == done.returncode, (shlex.join(commands), done)
    assert "vision--training" in done.stdout
    host.stop(signal.SIGINT)


def test_what_ends_while_no_server_is_there_is_written_down_by_the_next(host: Hosting):
    local = host.start()
    local.pool("p", 100)
    good, bad, stays = (local.run("p", 20, "NORMAL") for _ in range(3))
    waits = local.submit("p", 60, "NORMAL")
    local.left_waiting(waits)
    (first,), (second,), (third,) = map(local.mains, (good, bad, stays))
    host.stop(signal.SIGKILL)
    local.tell(first, FINISH)
    local.tell(second, FAIL)
    local.until(lambda: [third] == local.mains())

    local = host.start()
    local.settle(COMPLETED=[good], FAILED=[bad], RUNNING=[stays, waits])
    assert [third] == local.mains(stays)
    assert [Attempt(0, "COMPLETED", 0)] == local.attempts(good)
    assert [Attempt(0, "FAILED", 7)] == local.attempts(bad)
    assert "[main] finished" == local.log(good)[-1]
    assert "[main] failed" == local.log(bad)[-1]
    assert 1 == sum("holds GPUs" in line for line in local.log(stays))


def test_what_a_dead_server_was_told_to_end_is_ended_by_the_next(host: Hosting):
    local = host.start()
    local.pool("p", 100)
    deaf = "trap '' TERM; trap 'exit 0' USR1; echo deaf; while :; do sleep 1000 & wait $!; done"
    name = local.run("p", 100, "NORMAL", script=deaf)
    after = local.submit("p", 100, "NORMAL")
    local.done("config", "set", "WORKFLOW", "termination_grace=2s")
    local.done("workflow", "cancel", name)
    host.stop(signal.SIGKILL)
    local = host.start()
    local.settle(FAILED_CANCELED=[name], RUNNING=[after])
    local.over(name)
