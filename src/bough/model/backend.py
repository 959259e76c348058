"""What every backend meets: the one seam between what is decided and what runs.

Every call may be repeated and does no harm the second time. A backend reports what it sees, as
often as it is asked; it decides nothing. Must not know quota, pools or the store.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

import msgspec

from bough.model.pool import Json, Machine


class Launch(msgspec.Struct, frozen=True):
    """One attempt of a task that is to run."""

    #: The identity of the attempt.
    attempt: str
    name: str
    node: str
    gpus: int = 0
    #: How long to hold the GPUs where nothing really runs; `None`: until told to end.
    hold_s: int | None = None
    #: Since when it runs, where it was started before and this is only a reminder.
    started_ms: int | None = None
    spec: Json = None


class Start(msgspec.Struct, frozen=True):
    """Tasks of one group that start together, or none of them does."""

    workflow_id: str
    group: str
    launches: tuple[Launch, ...]


class Stop(msgspec.Struct, frozen=True):
    """Attempts that are to end."""

    attempts: tuple[str, ...]
    #: What the tasks are told: `preempted` or `cancelled`.
    reason: str
    grace_s: int = 0


class Sight(StrEnum):
    """What a backend sees of an attempt."""

    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"
    #: It could not be started at all.
    UNSTARTABLE = "unstartable"


class Observation(msgspec.Struct, frozen=True):
    """How far an attempt is, as seen by the backend."""

    attempt: str
    sight: Sight
    at_ms: int
    exit_code: int | None = None
    message: str = ""


class Backend(Protocol):
    """Runs what it is told to."""

    @property
    def name(self) -> str:
        """The name that pools refer to."""
        ...

    def machines(self) -> tuple[Machine, ...]:
        """The nodes that it has now."""
        ...

    def start(self, start: Start) -> None:
        """Start tasks together; those that are known already are left alone."""
        ...

    def stop(self, stop: Stop) -> None:
        """End attempts; those that are unknown count as ended."""
        ...

    def observe(self) -> tuple[Observation, ...]:
        """All attempts that it knows, also those that ended, until they are forgotten."""
        ...

    def forget(self, attempts: tuple[str, ...]) -> None:
        """The end of these was written down; they need not be told again."""
        ...
