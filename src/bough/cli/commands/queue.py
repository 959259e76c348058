"""`bough queue`: the quota tree as it is inside, for administrators. Must not know any rule."""

from __future__ import annotations

from typing import Any

import click

from bough.cli.forest import drawing_order
from bough.cli.ruled import NOTHING, render_ruled
from bough.cli.server_commands import ServerGroup, client, echo, format_option
from bough.cli.tables import tree_stems

_FIELDS = ("name", "parent", "leaf", "quota", "used", "used_guaranteed", "pool", "state")


@click.group(cls=ServerGroup)
def queue() -> None:
    """The tree of queues behind pools and subpools."""


@queue.command("list")
@format_option
def list_queues(format_type: str) -> None:
    """Show every queue with its quota and what is used at it and below it."""
    answer: Any = client().queues.list()
    rows = [{field: each.get(field) for field in _FIELDS} for each in answer]
    echo(rows, format_type, render_queues)


def render_queues(queues: Any) -> str:
    """The queues as a drawn tree."""
    order = drawing_order(queues)
    stems = tree_stems([depth for _, depth in order])
    rows = [
        (
            first + each["name"],
            "leaf" if each["leaf"] else NOTHING,
            "no limit" if each["quota"] is None else each["quota"],
            each["used"],
            each["used_guaranteed"],
            each["pool"],
            each["state"],
        )
        for (each, _), (first, _) in zip(order, stems, strict=True)
    ]
    header = ("Queue", "Kind", "Quota", "Used", "Guaranteed", "Pool", "State")
    return render_ruled(header, rows)
