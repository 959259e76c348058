"""Changes of subpools and their drains as text: what happened, and which workflows it concerns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bough.cli.output import printable

#: So many workflows are named in a text; JSON has more.
NAMED = 10


def render_change(answer: Any, what: str) -> str:
    """A subpool that was created or updated, or would be."""
    quota = answer["quota"]
    gpus = f"{quota} GPU{'' if quota == 1 else 's'}"
    verb = "would be" if answer.get("planned") else "is"
    first = f"Subpool {answer['name']} {verb} {what}: {answer['subpool_state']}, quota {gpus}."
    return "\n".join([first, *_consequences(answer)])


def render_deletion(answer: Any) -> str:
    """A subpool that was deleted, or would be."""
    name, state = answer["name"], answer["subpool_state"]
    verb = "would be" if answer.get("planned") else "is"
    first = f"Subpool {name} {verb} {state}."
    if state == "DELETING":
        first = f"Subpool {name} {verb} {state}: it is archived when its workflows have ended."
    return "\n".join([first, *_consequences(answer)])


def drain_lines(drain: Any) -> Iterator[str]:
    """What keeps a drain open."""
    count = drain["workflow_count"]
    yield f"kept open by {count} workflow{'' if count == 1 else 's'}:"
    shown = drain["workflows"][:NAMED]
    for each in shown:
        gpus = each["gpus"]
        amount = f"{gpus} GPU{'' if gpus == 1 else 's'}"
        yield printable(
            f"  {each['workflow_id']} ({each['status']}, {each['priority']}, {amount}, "
            f"{each['submitted_by']}) {each['message']}"
        )
    yield from _rest(count - len(shown))


def _consequences(answer: Any) -> Iterator[str]:
    for key in ("stranded", "delayed"):
        shown = (answer.get(key) or [])[:NAMED]
        for each in shown:
            yield printable(
                f"  {each['workflow_id']} ({each['priority']}, {each['gpus']} GPUs, in "
                f"{each['pool']}) {each['message']}"
            )
        yield from _rest(answer.get(f"{key}_count", 0) - len(shown))


def _rest(number: int) -> Iterator[str]:
    if number > 0:
        yield f"  and {number} more"
