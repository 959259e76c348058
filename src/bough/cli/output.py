"""How answers and errors reach a person or a program. Must not know what they say."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

#: What a command does with an answer that is not wanted as JSON.
Render = Callable[[Any], str]

format_option = click.option(
    "--format-type",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text for people, or JSON for programs.",
)
lenient_option = click.option(
    "--lenient", is_flag=True, help="Unknown fields are warnings instead of errors."
)
#: What is wrong with a file is for the tool to say; the type is for shell completion.
files_argument = click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(allow_dash=True)
)


def echo_answer(answer: Any, format_type: str, render: Render) -> None:
    """Print an answer, either as JSON or as the text that `render` makes of it."""
    if format_type == "json":
        click.echo(json.dumps(answer, indent=2, ensure_ascii=False))
    else:
        click.echo(render(answer))


def echo_error(message: str, *, details: Sequence[str] = (), hint: str = "") -> None:
    """Print an error, its details on lines of their own, and what can be done about it."""
    click.echo(f"error: {printable(message)}", err=True)
    for line in details:
        click.echo(f"  {printable(line)}", err=True)
    if hint:
        click.echo(f"hint: {printable(hint)}", err=True)


def echo_warnings(problems: Sequence[Any]) -> None:
    """Print problems beside an answer, where they do not get into its way."""
    for problem in problems:
        click.echo(problem_line(problem), err=True)


def problem_line(problem: Any) -> str:
    """One line for a problem: file and line, how bad, whose, which field, what is wrong."""
    place = problem["file"] or ""
    if problem["line"]:
        place = f"{place}:{problem['line']}"
    parts = (
        place,
        problem["severity"],
        problem["subject"],
        problem["field"],
        problem["message"],
    )
    return printable(": ".join(part for part in parts if part))


def render_check(answer: Any) -> str:
    """A line for each problem, then how many objects, errors and warnings there are."""
    lines = [problem_line(problem) for problem in answer["problems"]]
    objects = count(sum(answer["objects"].values()), "object")
    errors, warnings = count(answer["errors"], "error"), count(answer["warnings"], "warning")
    return "\n".join([*lines, f"{objects}, {errors}, {warnings}"])


def count(number: int, noun: str) -> str:
    """A number of things: `1 pod`, `2 pods`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


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
    """Nobody reads any more: let the rest, which is flushed at exit, go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
