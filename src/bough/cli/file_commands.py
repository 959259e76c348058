"""What all commands that read files have in common. They need no server."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from bough.cli.output import echo
from bough.cli.text.problems import problem_line

if TYPE_CHECKING:
    from bough.api.file_answers import FileProblem

#: What is wrong with a file is for the tool to say; the type is for shell completion.
files_argument = click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(allow_dash=True)
)
policy_option = click.option(
    "--policy",
    metavar="FILE",
    type=click.Path(allow_dash=True),
    help="A policy file, or the name of a preset (default: the preset that suits the objects).",
)
lenient_option = click.option(
    "--lenient", is_flag=True, help="Treat unknown fields as warnings, not as errors."
)


def tool(name: str) -> Any:
    """The module `bough.tools.NAME`, imported when a command runs and not before."""
    return importlib.import_module(f"bough.tools.{name}")


class _Answer(Protocol):
    @property
    def problems(self) -> list[FileProblem]: ...


Answer = TypeVar("Answer", bound=_Answer)


def echo_found(answer: Answer, format_type: str, render: Callable[[Answer], str]) -> None:
    """Print an answer, and beside the text of one the warnings about what was read."""
    if format_type == "text":
        echo_warnings(answer.problems)
    echo(answer, format_type, render)


def echo_warnings(problems: Sequence[FileProblem]) -> None:
    """Print problems where they do not get into the way of an answer."""
    for problem in problems:
        click.echo(problem_line(problem), err=True)
