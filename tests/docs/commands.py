"""Runs the commands that a page may show, as a reader would: from the root of the repository.

Only the program's own commands are run, in an environment that is the same everywhere.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bough.cli.main import run as run_program

ROOT = Path(__file__).parents[2]
PROGRAMS = ("bough", "osmo")
MAKE_HELP = ("make", "help")
#: The width of the terminal that the pages show.
COLUMNS = 100
TIMEOUT_S = 120
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
    if command[-1:] == ("--help",) and command[0] in PROGRAMS:
        return _ask_for_help(command)
    done = subprocess.run(
        _resolve(command),
        cwd=ROOT,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=TIMEOUT_S,
        check=False,
    )
    output = done.stdout.decode()
    if BUG in output:
        raise CommandError(f"`{' '.join(command)}` crashed:\n{output}")
    return Ran(output, done.returncode)


def _ask_for_help(command: tuple[str, ...]) -> Ran:
    """In this process: there are a hundred of them, and help depends on nothing but the width."""
    printed = io.StringIO()
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(_environment())
    try:
        with redirect_stdout(printed), redirect_stderr(printed):
            code = run_program(list(command[1:]), command[0])
    finally:
        os.environ.clear()
        os.environ.update(before)
    return Ran(printed.getvalue(), code)


def _resolve(command: tuple[str, ...]) -> list[str]:
    if command == MAKE_HELP:
        return list(command)
    if not command or command[0] not in PROGRAMS:
        shown = f"`{' '.join(command)}` is not run: only bough, osmo and `make help` are"
        raise CommandError(f"{shown}; show other commands in a block fenced as sh")
    program = Path(sys.executable).with_name(command[0])
    if not program.exists():
        raise CommandError(f"{program} does not exist; run `make setup`")
    return [str(program), *command[1:]]


def _environment() -> dict[str, str]:
    """What the program needs, and nothing by which its output could differ."""
    kept = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
    return {**kept, "COLUMNS": str(COLUMNS), "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
