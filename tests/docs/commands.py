"""Runs the commands that a page may show, as a reader would: from the root of the repository.

Only the program's own commands are run, in an environment that is the same everywhere.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bough.cli.main import run as run_program

ROOT = Path(__file__).parents[2]
PROGRAMS = ("bough", "osmo")
MAKE_HELP = ("make", "help")
#: The width of the terminal that the pages show.
COLUMNS = 100
BUG = "this is a bug in Bough"


class Ran(NamedTuple):
    """What a command printed, errors among it, and how it ended."""

    output: str
    code: int


class CommandError(Exception):
    """A command that is not run, or whose output must not be shown."""


@cache
def run(command: tuple[str, ...]) -> Ran:
    """Run one command."""
    if command == MAKE_HELP:
        # A `make` that runs these tests says things to others that it starts, by its environment.
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return Ran(done.stdout, done.returncode)
    if not command or command[0] not in PROGRAMS:
        shown = f"`{' '.join(command)}` is not run: only bough, osmo and `make help` are"
        raise CommandError(f"{shown}; show other commands in a block fenced as sh")
    ran = _run_here(command)
    if BUG in ran.output:
        raise CommandError(f"`{' '.join(command)}` crashed:\n{ran.output}")
    return ran


def _run_here(command: tuple[str, ...]) -> Ran:
    """In this process: most of what a command costs is the start of an interpreter."""
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    environment, standard_input = dict(os.environ), sys.stdin
    os.environ.clear()
    os.environ.update(_environment())
    try:
        with (
            Path(os.devnull).open(encoding="utf-8") as sys.stdin,
            chdir(ROOT),
            redirect_stdout(printed),
            redirect_stderr(printed),
        ):
            code = run_program(list(command[1:]), command[0])
    finally:
        sys.stdin = standard_input
        os.environ.clear()
        os.environ.update(environment)
    return Ran(printed.buffer.getvalue().decode(), code)


def _environment() -> dict[str, str]:
    """What the program needs, and nothing by which its output could differ."""
    kept = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
    return {**kept, "COLUMNS": str(COLUMNS), "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
