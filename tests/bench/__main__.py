"""`python -m tests.bench [NAME...]`: print the figures of all benchmarks, or of those named."""

from __future__ import annotations

import importlib
import platform
import sys

from tests.bench.report import Report

NAMES = (
    "quota",
    "place",
    "cycle",
    "kueue_replay",
    "fair",
    "startup",
    "server",
    "line",
    "local",
    "kubernetes",
    "workflows",
    "usage",
    "history",
)


def main(wanted: list[str]) -> int:
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        print(f"unknown benchmark {unknown[0]}; there are: {', '.join(NAMES)}", file=sys.stderr)
        return 2
    print(f"Python {platform.python_version()}; CPU time, best of some; compare within one run")
    for name in wanted or NAMES:
        report = Report(name)
        importlib.import_module(f"tests.bench.{name}").run(report)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
