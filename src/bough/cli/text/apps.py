"""Apps as text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bough.cli.output import printable
from bough.cli.tables import render_fields, render_table
from bough.cli.times import show_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bough.api.apps import AppAnswer, AppLine

#: Finds the values that can be set in a workflow file, with their comments.
_DEFAULTS = re.compile(
    r"^(?:default-values|\"default-values\"|'default-values')[ \t]*:[^\n]*\n"
    r"(?P<values>(?:(?:[ \t#][^\n]*|[ \t]*)(?:\n|\Z))*)",
    re.MULTILINE,
)


def render_apps(apps: Sequence[AppLine]) -> str:
    """A line for each app."""
    if not apps:
        return "There are no apps to view."
    rows = [
        (
            each.owner,
            each.name,
            each.description,
            show_time(each.created_date),
            each.latest_version,
        )
        for each in apps
    ]
    return render_table(("Owner", "Name", "Description", "Created Date", "Latest Version"), rows)


def render_app(answer: AppAnswer) -> str:
    """An app with its versions."""
    head = render_fields(
        [
            ("Name", answer.name),
            ("UUID", answer.uuid),
            ("Owner", answer.owner),
            ("Created Date", show_time(answer.created_date)),
            ("Description", answer.description),
        ]
    )
    rows = [
        (each.version, each.created_by, show_time(each.created_date), each.status)
        for each in answer.versions
    ]
    return f"{head}\n\n{render_table(('Version', 'Created By', 'Created Date', 'Status'), rows)}"


def render_parameters(answer: AppAnswer, text: str) -> str:
    """What an app does, and the values that can be set, as its file has them."""
    shown = f"DESCRIPTION\n    {printable(answer.description)}"
    found = _DEFAULTS.search(text)
    lines = [] if found is None else found["values"].rstrip().splitlines()
    if not lines:
        return f"{shown}\n\nPARAMETERS\n    none"
    values = "\n".join(f"    {printable(line.expandtabs(4))}".rstrip() for line in lines)
    return f"{shown}\n\nPARAMETERS\n{values}"
