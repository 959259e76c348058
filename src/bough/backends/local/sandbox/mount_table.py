"""What is mounted, as the kernel tells it. Must not know what it is needed for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Mounted(NamedTuple):
    """One line of /proc/self/mountinfo."""

    #: The part of the file system that is mounted.
    root: str
    path: str
    #: Of this mount, as `ro` and `nosuid`.
    options: frozenset[str]
    kind: str
    #: Of the file system.
    system_options: frozenset[str]


def read_mounts(text: str) -> Iterator[Mounted]:
    """The mounts in their order; a later one at the same place covers an earlier one."""
    for line in text.splitlines():
        first, _, second = line.partition(" - ")
        words, rest = first.split(" "), [*second.split(" "), "", "", ""]
        if len(words) >= 6:
            yield Mounted(
                _unescape(words[3]),
                _unescape(words[4]),
                frozenset(words[5].split(",")),
                rest[0],
                frozenset(rest[2].split(",")),
            )


def _unescape(text: str) -> str:
    for code, plain in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, plain)
    return text
