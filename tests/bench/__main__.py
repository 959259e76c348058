"""`python -m tests.bench [--quick] [--json FILE] [NAME...]`: the figures of benchmarks.

Without names, all of them; quickly, those of the server's own path, with less of everything. At
the end stand all figures that have a goal, and FILE has them for programs. `python -m tests.bench
peers` compares with other schedulers, `python -m tests.bench page FILE` writes the documentation.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from tests.bench import page, peers
from tests.bench.report import Goal, Growth, Report, Run

NAMES = (
    "quota",
    "place",
    "cycle",
    "kueue_replay",
    "fair",
    "startup",
    "server",
    "line",
    "why",
    "shapes",
    "restart",
    "memory",
    "local",
    "sessions",
    "kubernetes",
    "pod_scheduler",
    "workflows",
    "usage",
    "history",
)
#: What takes about three minutes together on a quiet machine of two cores.
QUICK = ("startup", "server", "line", "shapes", "restart", "local", "history")
#: Commands of their own.
COMMANDS = {"peers": peers.main, "page": page.main}


def main(arguments: list[str]) -> int:
    if arguments and arguments[0] in COMMANDS:
        return COMMANDS[arguments[0]](arguments[1:])
    parser = argparse.ArgumentParser("python -m tests.bench", description="Print figures.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="the server's own path, in minutes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write figures with goals there")
    asked = parser.parse_args(arguments)
    unknown = [name for name in asked.names if name not in NAMES]
    if unknown:
        print(f"unknown benchmark {unknown[0]}; there are: {', '.join(NAMES)}", file=sys.stderr)
        return 2
    print(f"{_machine()}; CPU time, best of some; compare within one run")
    goals: list[Goal] = []
    growths: list[Growth] = []
    for name in asked.names or (QUICK if asked.quick else NAMES):
        report = Report(name, quick=asked.quick)
        try:
            importlib.import_module(f"tests.bench.{name}").run(report)
        except Exception:  # the figures of all others would be lost
            traceback.print_exc()
            report.line("NOT MEASURED TO ITS END: see the error")
        goals += report.goals
        growths += report.growths
    print(f"\n{page.table(goals)}")
    if asked.json is not None:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        found = Run(_machine(), at, asked.quick, goals, growths)
        asked.json.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
    return 0


def _machine() -> str:
    load = os.getloadavg()[0]
    return f"Python {platform.python_version()}, {os.cpu_count()} cores, load {load:.0f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
