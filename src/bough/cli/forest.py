"""Things that name their parents, in the order in which they are drawn.

Must not know what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def drawing_order(nodes: Sequence[Any]) -> list[tuple[Any, int]]:
    """Each node after its parent, with its depth.

    One whose parent is not there stands at the top; so do those on a cycle, last.
    """
    names = {each["name"] for each in nodes}
    below: dict[str | None, list[Any]] = {}
    for each in nodes:
        parent = each["parent"] if each["parent"] in names else None
        below.setdefault(parent, []).append(each)
    order: list[tuple[Any, int]] = []
    seen: set[str] = set()
    for start in (*below.get(None, ()), *nodes):
        pending = [(start, 0)]
        while pending:
            each, depth = pending.pop()
            if each["name"] not in seen:
                seen.add(each["name"])
                order.append((each, depth))
                children = below.get(each["name"], ())
                pending += [(child, depth + 1) for child in reversed(children)]
    return order
