"""Which group was preempted for which, at which level, by which rule: stored as an event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from bough.control.pools.pool_words import PoolWords
from bough.control.workflows.lifecycle import GIVE_BACK, is_victim
from bough.model.change_record import EventKind, StoredEvent
from bough.model.plan import Eviction, EvictionRule
from bough.model.workflow import Task, Workflow
from bough.store import change_records as record_store

#: How many preemptions of one group are shown, the latest ones.
MOST = 10
_BY_ITSELF = {
    EvictionRule.STALE: "its group had less than it needs",
    EvictionRule.DRAIN: "its queue takes nothing any more",
}


class PreemptionRecord(msgspec.Struct, frozen=True):
    """Tasks of a group that were told to end, and why."""

    at_ms: int
    group: str
    tasks: tuple[str, ...]
    rule: str
    #: All of it in one phrase, for people.
    message: str
    #: The group is elastic, gave these back and went on.
    given_back: bool = False
    #: For which group, as `workflow/group`; with its user, pool and priority. `None`: for none.
    preemptor: str | None = None
    preemptor_user: str | None = None
    preemptor_pool: str | None = None
    preemptor_priority: str | None = None
    #: The pool, or what is above pools, at which it was decided.
    level: str | None = None


def preemption_of(
    eviction: Eviction,
    group: str,
    tasks: Iterable[str],
    reason: str,
    preemptor: Workflow | None,
    words: PoolWords,
    now_ms: int,
) -> PreemptionRecord:
    """The record of an eviction for the group that it concerns."""
    level = None if eviction.level is None else words.node(eviction.level)
    return PreemptionRecord(
        at_ms=now_ms,
        group=group,
        tasks=tuple(tasks),
        rule=eviction.rule.value,
        message=_say(eviction, level, preemptor),
        given_back=reason == GIVE_BACK,
        preemptor=eviction.preemptor,
        preemptor_user=None if preemptor is None else preemptor.submitted_by,
        preemptor_pool=None if preemptor is None else preemptor.pool,
        preemptor_priority=None if preemptor is None else preemptor.priority.value,
        level=level,
    )


def read_preemptions(
    connection: sa.Connection, workflow: Workflow, tasks: Iterable[Task]
) -> dict[str, tuple[PreemptionRecord, ...]]:
    """By group, the latest in order; nothing is looked up where no task was ever told to end."""
    if not any(task.releasing is not None and is_victim(task.releasing) for task in tasks):
        return {}
    found: dict[str, list[PreemptionRecord]] = {}
    kind, name = EventKind.PREEMPTED, workflow.workflow_id
    for event in record_store.events_of(connection, name, kind):
        if isinstance(event.data, dict):
            preemption = _read(event, event.data)
            found.setdefault(preemption.group, []).append(preemption)
    return {group: tuple(each[-MOST:]) for group, each in found.items()}


def preemptions_of(
    connection: sa.Connection, workflows: Sequence[str]
) -> dict[tuple[str, str], list[PreemptionRecord]]:
    """By the identifier of a workflow and the name of a group: all of them, in order."""
    found: dict[tuple[str, str], list[PreemptionRecord]] = {}
    for event in record_store.events_of_many(connection, workflows, EventKind.PREEMPTED):
        if isinstance(event.data, dict):
            preemption = _read(event, event.data)
            found.setdefault((event.subject, preemption.group), []).append(preemption)
    return found


def preemption_data(preemption: PreemptionRecord) -> dict[str, Any]:
    """What the event carries."""
    data = msgspec.to_builtins(preemption)
    del data["at_ms"]
    return data


def _read(event: StoredEvent, data: Mapping[str, Any]) -> PreemptionRecord:
    """An event as it is written today, or was before all of this was."""
    known = {name: data[name] for name in PreemptionRecord.__struct_fields__ if name in data}
    known["tasks"] = tuple(data.get("tasks") or ())
    known.setdefault("group", "")
    known.setdefault("rule", event.message)
    known.setdefault("message", event.message)
    known.setdefault("preemptor", data.get("for"))
    return PreemptionRecord(**{**known, "at_ms": event.at_ms})


def _say(eviction: Eviction, level: str | None, preemptor: Workflow | None) -> str:
    rule = eviction.rule
    if eviction.preemptor is None:
        return f"{rule}: {_BY_ITSELF[rule]}" if rule in _BY_ITSELF else rule.value
    text = rule.value if level is None else f"{rule} at {level}"
    text += f", for {eviction.preemptor}"
    if preemptor is None:
        return text
    return f"{text} of {preemptor.submitted_by} ({preemptor.priority} in pool {preemptor.pool})"
