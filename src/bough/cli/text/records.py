"""Who changed what, and what was used, as text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bough.cli.tables import NOTHING, cell_text, render_table
from bough.cli.times import show_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bough.api.common import Json
    from bough.api.configs import AuditLine, ConfigDiff, ConfigRevision
    from bough.api.kube_answers import ClusterDrift, DriftAnswer
    from bough.api.nodes import UsageLine, UsageReport

#: How much of a value stands in a table; JSON has all of it.
MAXIMUM_SHOWN = 60
_USAGE = ("gpu_hours", "guaranteed", "preemptible", "borrowed")


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


def render_drift(answer: DriftAnswer) -> str:
    """For each cluster, what cannot be repaired, and the latest repairs."""
    if not answer.clusters:
        return "There is no cluster whose queues follow Bough's."
    return "\n\n".join(map(_render_cluster, answer.clusters))


def _render_cluster(cluster: ClusterDrift) -> str:
    count = len(cluster.troubles)
    found = f"{count} cannot be repaired" if count else "nothing that cannot be repaired"
    lines = [f"Backend {cluster.backend}: {found}."]
    lines += [f"  {each}" for each in cluster.troubles]
    if not cluster.repairs:
        return "\n".join([*lines, "Nothing was repaired."])
    rows = [(show_time(each.at), each.subject, each.message) for each in cluster.repairs]
    return "\n".join([*lines, "", render_table(("Repaired", "Object", "It Was"), rows, cut=2)])


def render_usage(answer: UsageReport) -> str:
    """A line for each pool or user, and the sums."""
    period = f"From {show_time(answer.since)} to {show_time(answer.until)}."
    if not answer.rows:
        return f"{period} Nothing was used."
    header = (answer.by.title(), "GPU-Hours", "Guaranteed", "Preemptible", "Borrowed")
    rows = [(each.name, *_hours(each)) for each in answer.rows]
    totals = ("", *_hours(answer.total))
    return f"{period}\n\n{render_table(header, rows, totals=totals, numbers=range(1, 5))}"


def render_usage_csv(answer: UsageReport) -> str:
    """A line for each pool or user, without the sums, which tables make themselves."""
    import csv  # noqa: PLC0415  most commands need no CSV
    import io  # noqa: PLC0415

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((answer.by, *_USAGE))
    for each in answer.rows:
        writer.writerow((each.name, *(f"{hours:.4f}" for hours in _usage(each))))
    return text.getvalue().rstrip("\n")


def _hours(each: UsageLine) -> list[str]:
    return [f"{hours:.2f}" for hours in _usage(each)]


def _usage(each: UsageLine) -> tuple[float, ...]:
    """In the order of the columns."""
    return each.gpu_hours, each.guaranteed, each.preemptible, each.borrowed


def _short(value: Json) -> str:
    text = json.dumps(value) if isinstance(value, (dict, list)) else cell_text(value)
    return text if len(text) <= MAXIMUM_SHOWN else f"{text[: MAXIMUM_SHOWN - 1]}…"


def _state(data: Json) -> str:
    if not isinstance(data, dict):
        return "deleted" if data is None else str(data)
    state = data.get("state") or data.get("subpool_state")
    return f"{state}, quota {data.get('quota')}"
