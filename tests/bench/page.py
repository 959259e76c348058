"""`python -m tests.bench page FILE`: the figures of a run, as FILE has them, in the documentation.

FILE becomes docs/benchmarks.json. The table of docs/benchmarks.md is made from that by `make docs`,
and docs/growth.svg by this command.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from tests.bench.plot import draw
from tests.bench.report import Goal, Run

DOCS = Path(__file__).parents[2] / "docs"
KEPT = DOCS / "benchmarks.json"
PLOT = DOCS / "growth.svg"
OPENING, CLOSING = "<!-- figures -->", "<!-- /figures -->"


def main(arguments: list[str]) -> int:
    """Take the figures of a run over into the documentation."""
    if len(arguments) != 1:
        print("usage: python -m tests.bench page FILE", file=sys.stderr)
        return 2
    try:
        run = read_run(Path(arguments[0]))
    except (OSError, msgspec.MsgspecError) as error:
        print(f"{arguments[0]}: {error}", file=sys.stderr)
        return 2
    KEPT.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=2) + b"\n")
    PLOT.write_text(draw(run.growths))
    print(f"wrote {KEPT.name} and {PLOT.name}; `make docs` writes the page")
    return 0


def read_run(path: Path) -> Run:
    """A run from its file."""
    return msgspec.json.decode(path.read_bytes(), type=Run)


def lines() -> list[str]:
    """What the page shows of the run that is kept."""
    run = read_run(KEPT)
    names = " ".join(dict.fromkeys(each.benchmark for each in run.figures))
    how = f"python -m tests.bench {'--quick ' if run.quick else ''}{names}"
    day = run.at.partition("T")[0]
    return ["", f"`{how}` of {day}; {run.machine}:", "", *table(run.figures).splitlines(), ""]


def table(goals: list[Goal]) -> str:
    """All figures that have a goal, as Markdown."""
    lines = ["| benchmark | what | figure | goal | |", "|---|---|---|---|---|"]
    for each in goals:
        met = "met" if each.met else "MISSED"
        lines.append(f"| {each.benchmark} | {each.what} | {each.figure} | {each.goal} | {met} |")
    return "\n".join(lines)
