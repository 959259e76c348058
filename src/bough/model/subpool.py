"""Subpools, and every transition between their states.

      create    ┌────────┐   delete   ┌──────────┐   drained   ┌──────────┐
     ─────────► │ ACTIVE │ ─────────► │ DELETING │ ──────────► │ ARCHIVED │
                └────────┘            └──────────┘             └──────────┘
                  ▲    └───── delete, when nothing is left ───────►  │
                  └──────────────────── create ──────────────────────┘

No other file says what may follow what.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from bough.model.names import canonical_name


class SubpoolState(StrEnum):
    """Where a subpool is in its life."""

    ACTIVE = "ACTIVE"
    #: Takes nothing new; what it has goes on.
    DELETING = "DELETING"
    #: Empty, kept for ever; its name can be used again.
    ARCHIVED = "ARCHIVED"


class SubpoolStep(StrEnum):
    """What can be asked of a subpool, or happen to it."""

    CREATE = "create"
    UPDATE = "update"
    SUBMIT = "submit"
    #: Deleted while nothing is in it, and while something is.
    DELETE_EMPTY = "delete_empty"
    DELETE_BUSY = "delete_busy"
    DRAINED = "drained"


#: The state that follows; what is not here is refused. `None` is a subpool that never was.
TRANSITIONS: dict[tuple[SubpoolState | None, SubpoolStep], SubpoolState] = {
    (None, SubpoolStep.CREATE): SubpoolState.ACTIVE,
    (SubpoolState.ACTIVE, SubpoolStep.UPDATE): SubpoolState.ACTIVE,
    (SubpoolState.ACTIVE, SubpoolStep.SUBMIT): SubpoolState.ACTIVE,
    (SubpoolState.ACTIVE, SubpoolStep.DELETE_EMPTY): SubpoolState.ARCHIVED,
    (SubpoolState.ACTIVE, SubpoolStep.DELETE_BUSY): SubpoolState.DELETING,
    (SubpoolState.DELETING, SubpoolStep.DRAINED): SubpoolState.ARCHIVED,
    (SubpoolState.ARCHIVED, SubpoolStep.CREATE): SubpoolState.ACTIVE,
}


def next_state(state: SubpoolState | None, step: SubpoolStep) -> SubpoolState | None:
    """The state after a step; `None`: the step is refused."""
    return TRANSITIONS.get((state, step))


class Subpool(msgspec.Struct, frozen=True):
    """A guaranteed slice of a pool. Everything else about it is the pool's."""

    #: The pool, by the stored edge.
    parent: str
    #: The short name, unique within the pool.
    subpool: str
    state: SubpoolState
    #: What it was last given; it counts only while the subpool is ACTIVE.
    quota: int

    @property
    def name(self) -> str:
        """The name under which work is submitted to it."""
        return canonical_name(self.parent, self.subpool)

    @property
    def counted(self) -> int:
        """What it takes from its pool now."""
        return self.quota if self.state is SubpoolState.ACTIVE else 0

    @property
    def visible(self) -> bool:
        """Whether it has a queue, and a row in the list of pools."""
        return self.state is not SubpoolState.ARCHIVED
