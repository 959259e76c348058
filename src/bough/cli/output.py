"""How answers, warnings and errors reach a person or a program, whatever they say."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from bough.cli.exit_codes import REFUSED, exit_code
from bough.cli.screen import screen
from bough.errors import BoughError, Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

Answer = TypeVar("Answer")


def echo(
    answer: Answer,
    format_type: str,
    render: Callable[[Answer], str],
    *,
    key: str | None = None,
) -> None:
    """Print an answer, either as JSON or as the text that `render` makes of it.

    With `key`, the JSON is an object that has the answer under it.
    """
    if format_type == "json":
        from msgspec import to_builtins  # noqa: PLC0415  text needs no encoder

        plain = to_builtins(answer, str_keys=True)
        shown = plain if key is None else {key: plain}
        click.echo(_json(shown))
        return
    text = render(answer)
    if text:
        click.echo(text)


def echo_error(error: BoughError, format_type: str = "text") -> None:
    """Print what went wrong: as JSON where the answer would be, else where errors go."""
    # What did not come from a server has no status of its own.
    code = vars(error).get("http_status", exit_code(error))
    code = REFUSED if isinstance(error, Refused) else code
    message = _message(error)
    if format_type == "json":
        told: dict[str, object] = {"message": message, "code": code}
        if error.details:
            told["details"] = list(error.details)
        if error.hint:
            told["hint"] = error.hint
        click.echo(_json(told))
        return
    # The message may have the first detail, so that one alone says nothing new.
    details = error.details if "".join(error.details) not in message else ()
    echo_problem(message, details=details, hint=error.hint, code=code)


def echo_problem(
    message: str, *, details: Iterable[str] = (), hint: str = "", code: int | None = None
) -> None:
    """Print an error, its details on lines of their own, and what can be done about it."""
    first, *rest = message.splitlines() or [""]
    osmo = screen().osmo and code is not None
    _tell("Error message:" if osmo else "error:", first, "red")
    for line in (*rest, *(f"  {detail}" for detail in details)):
        click.echo(printable(line), err=True)
    if osmo:
        click.echo(f"Error code: {code}", err=True)
    if hint:
        _tell("Hint:" if osmo else "hint:", hint, "cyan")


def echo_usage_error(error: click.UsageError) -> None:
    """Print what is wrong with the arguments of a command, and how they should be."""
    echo_problem(error.format_message())
    if error.ctx is None:
        return
    click.echo(error.ctx.get_usage().replace("Usage:", "usage:", 1), err=True)
    _tell("hint:", f"`{error.ctx.command_path} --help` explains it", "cyan")


def count(number: int, noun: str) -> str:
    """A number of things: `1 pod`, `2 pods`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def some_of(names: Sequence[str], most: int) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(map(printable, names[:most]))}{more}"


def printable(text: str) -> str:
    """Write out characters that would do something to a terminal instead of being seen."""
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1] for character in text
    )


def guard_streams() -> None:
    """Never fail on a character that the terminal cannot show."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def silence_standard_output() -> None:
    """The reader has gone: what is still flushed at exit must not fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def _json(value: object) -> str:
    import json  # noqa: PLC0415  text needs none

    return json.dumps(value, indent=2, ensure_ascii=False)


def _tell(word: str, text: str, colour: str) -> None:
    shown = click.style(word, fg=colour, bold=True) if screen().error_colour else word
    click.echo(f"{shown} {printable(text)}", err=True)


def _message(error: BoughError) -> str:
    if not isinstance(error, Refused):
        return error.message
    name = f" {error.workflow_id}" if error.workflow_id else ""
    return f"Workflow{name} {error.request} failed: {error.message}"
