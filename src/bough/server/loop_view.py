"""The scheduler's loop as requests see it, wherever it runs."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Protocol

import msgspec

from bough.control.pools.node_shares import Standings
from bough.control.scheduling.plan_questions import Answers, Question
from bough.model.backend import TaskFiles


class Counts(msgspec.Struct):
    """What the scheduler did since this server started."""

    cycles: int = 0
    seconds: float = 0.0
    planning_seconds: float = 0.0
    last_seconds: float = 0.0
    started: int = 0
    evicted: int = 0
    void: int = 0
    failures: int = 0

    def after(self, before: Counts) -> Counts:
        """These counts, added to those of a process that has ended."""
        return Counts(
            cycles=before.cycles + self.cycles,
            seconds=before.seconds + self.seconds,
            planning_seconds=before.planning_seconds + self.planning_seconds,
            last_seconds=self.last_seconds,
            started=before.started + self.started,
            evicted=before.evicted + self.evicted,
            void=before.void + self.void,
            failures=before.failures + self.failures,
        )


class LoopView(Protocol):
    """The loop, for requests."""

    @property
    def counts(self) -> Counts:
        """Its counters."""
        ...

    @property
    def restarts(self) -> int:
        """How often it had to be restarted."""
        ...

    @property
    def leads(self) -> bool:
        """Whether this server decides."""
        ...

    @property
    def fault(self) -> str:
        """Why this server schedules nothing at the moment; empty: it does."""
        ...

    @property
    def stopping(self) -> threading.Event:
        """Set when the server is told to stop: nothing new starts, and streams end."""
        ...

    @property
    def backends(self) -> Mapping[str, TaskFiles]:
        """The files of tasks, by the name of their backend."""
        ...

    def ask(self, question: Question) -> Answers:
        """What the current plan says about gangs."""
        ...

    def standings(self, user: str) -> Standings:
        """What each node of the quota tree uses and is entitled to, by the loop's policy."""
        ...
