"""Who changed what, as text: the history of configuration and subpools, and the audit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bough.cli.tables import NOTHING, cell_text, render_table
from bough.cli.times import show_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bough.api.common import Json
    from bough.api.configs import AuditLine, ConfigDiff, ConfigRevision

#: How much of a value stands in a table; JSON has all of it.
MAXIMUM_SHOWN = 60


def render_revisions(revisions: Sequence[ConfigRevision]) -> str:
    """A line for each change of a configuration."""
    if not revisions:
        return "There are no revisions."
    rows = [
        (
            each.config_type,
            each.revision,
            each.name,
            each.username,
            show_time(each.created_at),
            each.description,
        )
        for each in revisions
    ]
    header = ("Config Type", "Revision", "Name", "Username", "Created At", "Description")
    return render_table(header, rows, numbers=(1,), cut=5)


def render_differences(answer: ConfigDiff) -> str:
    """A line for each field in which two revisions differ."""
    if not answer.differences:
        return "There is no difference."
    rows = [(each.field, _short(each.before), _short(each.after)) for each in answer.differences]
    return render_table(("Field", "Before", "After"), rows)


def render_subpool_history(answer: Sequence[ConfigRevision]) -> str:
    """A line for each change of a subpool, in order."""
    rows = [
        (
            each.revision,
            show_time(each.created_at),
            each.username,
            _state(each.data),
            each.description or NOTHING,
        )
        for each in answer
    ]
    header = ("Revision", "Time", "User", "After", "Description")
    return render_table(header, rows, numbers=(0,), cut=4)


def render_audit(entries: Sequence[AuditLine]) -> str:
    """A line for each entry."""
    if not entries:
        return "There are no entries."
    rows = [
        (
            each.number,
            show_time(each.at),
            each.actor,
            each.action,
            each.subject,
            each.origin,
        )
        for each in entries
    ]
    header = ("Number", "Time", "User", "Action", "Subject", "From")
    return render_table(header, rows, numbers=(0,))


def _short(value: Json) -> str:
    text = json.dumps(value) if isinstance(value, (dict, list)) else cell_text(value)
    return text if len(text) <= MAXIMUM_SHOWN else f"{text[: MAXIMUM_SHOWN - 1]}…"


def _state(data: Json) -> str:
    if not isinstance(data, dict):
        return "deleted" if data is None else str(data)
    state = data.get("state") or data.get("subpool_state")
    return f"{state}, quota {data.get('quota')}"
