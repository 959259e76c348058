"""What requests may take of the memory: the bounds that other modules enforce, in one table.

Each figure is read where it is enforced.
"""

from __future__ import annotations

from typing import NamedTuple

from bough.control import kept
from bough.control.records import event_stream
from bough.control.workflows import logs, rendering
from bough.server import concurrency_limits, connections, kept_answers, settings

_MIB = 1 << 20


class Share(NamedTuple):
    """What a part of the server may take."""

    part: str
    size: int
    #: What it is, and what happens beyond it.
    text: str


def shares() -> tuple[Share, ...]:
    """What each part may take at most."""
    of_user = _mib(concurrency_limits.BODIES_BYTES)
    body = _mib(settings.MAXIMUM_BODY_BYTES)
    at_once, each = rendering.AT_ONCE, _mib(rendering.MEMORY_BYTES)
    answer = _mib(rendering.ANSWER_BYTES)
    return (
        Share(
            "bodies",
            concurrency_limits.ALL_BODIES_BYTES,
            f"of requests that are not answered yet; {body} of one, {of_user} of one user",
        ),
        Share(
            "answers",
            connections.Bounds().untaken_bytes,
            "that clients do not take; those with the most are cut, within a second",
        ),
        Share(
            "lists",
            kept_answers.ALL_BYTES,
            "that are sent again while nothing changes, for a second at most",
        ),
        Share(
            "logs",
            logs.ALL_KEPT,
            f"that were read and not sent yet, {_mib(logs.MOST_KEPT)} for one stream",
        ),
        Share(
            "templates",
            at_once * (rendering.MEMORY_BYTES + rendering.ANSWER_BYTES),
            f"{at_once} at a time, each rendered by a process with {each} into {answer}",
        ),
    )


def rows() -> list[tuple[str, str]]:
    """The table, as it is printed: names, and figures with what they mean."""
    found = [(each.part, f"{_mib(each.size)}: {each.text}.") for each in shares()]
    total = sum(each.size for each in shares())
    return [
        *found,
        ("together", f"{_mib(total)}."),
        ("beside it", _beside()),
        ("--workers", "all of that holds for all workers together; each is a process beside it."),
    ]


def _beside() -> str:
    return (
        "the process itself, with the answers that it makes and what it remembers, of at most "
        f"{kept.ACTORS:,} tokens and {event_stream.MOST_SUBJECTS:,} workflows; and the scheduler's "
        "process, which has all that waits and runs."
    )


def _mib(size: int) -> str:
    return f"{size / _MIB:,.0f} MiB"
