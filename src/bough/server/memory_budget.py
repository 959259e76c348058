"""What requests may take of the memory: the bounds that other modules enforce, in one table.

Each figure is read where it is enforced.
"""

from __future__ import annotations

from typing import NamedTuple

from bough.control import setup_cache
from bough.control.records import event_stream
from bough.control.workflows import logs, rendering
from bough.server import answer_cache, concurrency_limits, connections, settings

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
            f"of requests in progress; {body} for one request, {of_user} for one user",
        ),
        Share(
            "answers",
            connections.Bounds().untaken_bytes,
            "not yet read by clients; above it, those with the most unread are disconnected",
        ),
        Share(
            "lists",
            answer_cache.ALL_BYTES,
            "cached for at most a second, while nothing changes",
        ),
        Share(
            "logs",
            logs.ALL_KEPT,
            f"read but not yet sent; {_mib(logs.MOST_KEPT)} for one stream",
        ),
        Share(
            "templates",
            at_once * (rendering.MEMORY_BYTES + rendering.ANSWER_BYTES),
            f"{at_once} rendered at a time, each by a process with {each}, to at most {answer}",
        ),
    )


def rows() -> list[tuple[str, str]]:
    """The table, as it is printed: names, and figures with what they mean."""
    found = [(each.part, f"{_mib(each.size)}: {each.text}.") for each in shares()]
    total = sum(each.size for each in shares())
    return [
        *found,
        ("total", f"{_mib(total)}."),
        ("besides", _beside()),
        (
            "--workers",
            "these limits hold for all workers together; each worker is another process.",
        ),
    ]


def _beside() -> str:
    return (
        "the server process itself, with its answers and its caches for at most "
        f"{setup_cache.ACTORS:,} tokens and {event_stream.MOST_SUBJECTS:,} workflows; and the "
        "scheduler process, which holds all unfinished workflows."
    )


def _mib(size: int) -> str:
    return f"{size / _MIB:,.0f} MiB"
