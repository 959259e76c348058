"""Finished workflows as they are archived and exported: everything about one in one value."""

from __future__ import annotations

import msgspec

from bough.model.workflow import Group, Task, Workflow


class PastWorkflow(msgspec.Struct, frozen=True):
    """A finished workflow with everything below it."""

    workflow: Workflow
    #: As it was submitted, rendered and before that.
    spec: str = ""
    template: str | None = None
    #: By position.
    groups: tuple[Group, ...] = ()
    #: All attempts, by name and attempt.
    tasks: tuple[Task, ...] = ()


class HistoryPlace(msgspec.Struct, frozen=True, order=True):
    """Where a finished workflow stands in the order of the history; it never changes."""

    ended_ms: int
    uuid: str
