"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

import click

from bough.errors import Invalid

_FORMATS = click.Choice(["text", "json"])
_FORMAT_HELP = "Text for people, or JSON for programs."

format_option = click.option(
    "--format-type",
    "-t",
    type=_FORMATS,
    default="text",
    show_default=True,
    help=_FORMAT_HELP,
)
#: For commands whose `-t` is `--task`, as scripts for `osmo` have it.
long_format_option = click.option(
    "--format-type", type=_FORMATS, default="text", show_default=True, help=_FORMAT_HELP
)
count_option = click.option(
    "--count",
    "-c",
    type=click.IntRange(1, 1_000),
    default=20,
    show_default=True,
    help="How many to show.",
)
offset_option = click.option(
    "--offset", "-f", type=click.IntRange(0), default=0, help="How many to skip first."
)
_Decorated = TypeVar("_Decorated", bound=Callable[..., object])


def together(
    *options: Callable[[Callable[..., object]], Callable[..., object]],
) -> Callable[[_Decorated], _Decorated]:
    """Several options as one decorator, in the order of the help."""

    def decorate(function: _Decorated) -> _Decorated:
        for option in reversed(options):
            option(function)
        return function

    return decorate


plan_option = click.option("--plan", is_flag=True, help="Only show what the change would do.")


class Capitals(click.Choice):  # of text; older versions of click cannot say so
    """One of some words in capitals, however it is written."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """The word in capitals."""
        return super().convert(str(value).upper(), param, ctx)


PRIORITIES = Capitals(["HIGH", "NORMAL", "LOW"])

# The statuses are those of the model, which is too heavy to import for a command; a test compares
# them.
_FAILURES = (
    "FAILED",
    "FAILED_SERVER_ERROR",
    "FAILED_EXEC_TIMEOUT",
    "FAILED_QUEUE_TIMEOUT",
    "FAILED_CANCELED",
    "FAILED_BACKEND_ERROR",
    "FAILED_IMAGE_PULL",
    "FAILED_EVICTED",
    "FAILED_START_ERROR",
    "FAILED_START_TIMEOUT",
    "FAILED_PREEMPTED",
)
WORKFLOW_STATUSES = Capitals(
    ("PENDING", "RUNNING", "WAITING", "COMPLETED", "FAILED_SUBMISSION", *_FAILURES)
)
TASK_STATUSES = Capitals(
    (
        "SUBMITTING",
        "WAITING",
        "PROCESSING",
        "SCHEDULING",
        "INITIALIZING",
        "RUNNING",
        "COMPLETED",
        "RESCHEDULED",
        *_FAILURES,
        "FAILED_UPSTREAM",
    )
)


def read_text(file: str, *, dash: bool = False) -> str:
    """What is in a file; with `dash`, `-` is standard input."""
    try:
        if dash and file == "-":
            return sys.stdin.read()
        with open(file, encoding="utf-8") as stream:
            return stream.read()
    except OSError as error:
        raise Invalid(f"{file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise Invalid(f"{file} is not UTF-8 text.") from None


def read_pairs(what: str, pairs: tuple[str, ...]) -> dict[str, str]:
    """`NAME=VALUE`, several times."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise click.UsageError(f"{what}: expected NAME=VALUE, not {pair!r}.")
        found[name] = value
    return found
