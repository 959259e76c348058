"""Where the output goes: under which name, in colour or not, in which time zone.

`bough` prints tables for people. Under the name `osmo` tables, times and errors keep the form that
scripts for it parse.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NamedTuple

import click

#: The width of a terminal that does not say how wide it is.
_COLUMNS = 80
_GOOD = ("RUNNING", "COMPLETED", "ONLINE", "ACTIVE", "READY")
_WAITING = (
    "CORDONED",
    "DELETING",
    "DRAINING",
    "INITIALIZING",
    "MAINTENANCE",
    "PENDING",
    "PROCESSING",
    "RESCHEDULED",
    "SCHEDULING",
    "SUBMITTING",
    "WAITING",
)
_BAD = ("FAILED", "OFFLINE", "LOST")
_COLOURS = {
    **dict.fromkeys(_GOOD, "green"),
    **dict.fromkeys(_WAITING, "yellow"),
    **dict.fromkeys(_BAD, "red"),
}


class Screen(NamedTuple):
    """What the output depends on besides the answer."""

    osmo: bool = False
    colour: bool = False
    error_colour: bool = False
    #: Times in UTC instead of the reader's time zone.
    utc: bool = False
    #: Columns of the terminal; `None` in a pipe, where nothing is cut.
    width: int | None = None


def find_screen(program: str) -> Screen:
    """The screen of this process, for a program of this name."""
    is_terminal = sys.stdout.isatty()
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return Screen(
        osmo=program == "osmo",
        colour=is_terminal and not plain,
        error_colour=sys.stderr.isatty() and not plain,
        width=terminal_columns() if is_terminal else None,
    )


def screen() -> Screen:
    """The screen of the command that runs."""
    context = click.get_current_context(silent=True)
    found = context.find_root().obj if context is not None else None
    return found if isinstance(found, Screen) else Screen()


def program() -> str:
    """The name under which the program runs, for commands that a text names."""
    return "osmo" if screen().osmo else "bough"


def paint_status(status: str) -> str:
    """A status in the colour of what it means, where there are colours."""
    colour = _COLOURS.get(status.strip().partition("_")[0])
    return click.style(status, fg=colour) if colour and screen().colour else status


def paint_heading(text: str) -> str:
    """A line that names what stands below it."""
    return click.style(text, bold=True) if screen().colour else text


def terminal_columns() -> int:
    """As `shutil.get_terminal_size`, which imports what is needed to unpack archives."""
    with suppress(ValueError):
        if (columns := int(os.environ.get("COLUMNS", "0"))) > 0:
            return columns
    if sys.__stdout__ is not None:
        with suppress(OSError, ValueError):
            return os.get_terminal_size(sys.__stdout__.fileno()).columns or _COLUMNS
    return _COLUMNS


def _use_utc(context: click.Context, _: click.Parameter, value: bool) -> None:
    root = context.find_root()
    if value and isinstance(root.obj, Screen):
        root.obj = root.obj._replace(utc=True)


utc_option = click.option(
    "--utc",
    is_flag=True,
    expose_value=False,
    callback=_use_utc,
    help="Times in UTC instead of your time zone.",
)
