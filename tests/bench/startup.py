"""What starting a command costs, against an interpreter that imports what every command needs.

Whole processes, in turn, so that all see the same load; CPU time, the least of
some rounds.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.answering import answering
from tests.bench.report import Report

#: `osmo pool list` may cost this many times an interpreter that imports click, json and socket.
POOL_LIST = 1.4
#: `bough --help`, and what a shell completes without a server, against one that imports click.
HELP = 1.3
ROUNDS = 15
USAGE = {
    "quota_used": "5",
    "quota_limit": "30",
    "quota_free": "25",
    "total_usage": "5",
    "total_capacity": "100",
    "total_free": "95",
}


def run(report: Report) -> None:
    taken = _measure()
    for name, seconds in taken.items():
        report.line(f"{name}: {seconds * 1e3:.0f} ms of CPU")
    few = taken["python -c 'import click'"]
    for name, limit, bare in (
        ("osmo pool list", POOL_LIST, taken["python -c 'import click, json, socket'"]),
        ("bough --help", HELP, few),
        ("completion without a server", HELP, few),
    ):
        ratio = taken[name] / bare
        report.goal(name, f"{ratio:.2f} of its floor", f"at most {limit}", met=ratio <= limit)


def _measure() -> dict[str, float]:
    folder = Path(sys.executable).parent
    with answering() as server:
        server.answer("GET", "/api/pool_quota", _pools())
        # Compiled modules are kept, as where the program is installed.
        known = {**os.environ, "BOUGH_SERVER": server.address, "BOUGH_TOKEN": "x"}
        known.pop("PYTHONDONTWRITEBYTECODE", None)
        nowhere = {**known, "BOUGH_SERVER": "", "XDG_CONFIG_HOME": os.devnull}
        shell = {
            **nowhere,
            "_BOUGH_COMPLETE": "bash_complete",
            "COMP_WORDS": "bough workflow logs ",
            "COMP_CWORD": "3",
        }
        commands = {
            "python -c pass": ([sys.executable, "-c", "pass"], known),
            "python -c 'import click'": ([sys.executable, "-c", "import click"], known),
            "python -c 'import click, json, socket'": (
                [sys.executable, "-c", "import click, json, socket"],
                known,
            ),
            "bough --help": ([str(folder / "bough"), "--help"], known),
            "completion without a server": ([str(folder / "bough")], shell),
            "osmo pool list": ([str(folder / "osmo"), "pool", "list"], known),
        }
        taken = dict.fromkeys(commands, float("inf"))
        for _ in range(ROUNDS):
            for name, (command, environment) in commands.items():
                taken[name] = min(taken[name], _cpu_seconds(command, environment))
    return taken


def _cpu_seconds(command: list[str], environment: dict[str, str]) -> float:
    """The CPU time of a whole process, from its start to its end."""
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    process = os.posix_spawn(command[0], command, environment, file_actions=silent)
    _, status, used = os.wait4(process, 0)
    if status:
        raise RuntimeError(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime


def _pools() -> object:
    def pool(name: str, parent: str | None = None) -> object:
        state = None if parent is None else "ACTIVE"
        more = {"parent_pool": parent, "subpool_state": state}
        return {"name": name, "status": "ONLINE", "resource_usage": USAGE, **more}

    pools = [pool("team"), *(pool(f"team--{letter}", "team") for letter in "abc")]
    return {"node_sets": [{"pools": pools}], "resource_sum": USAGE}
