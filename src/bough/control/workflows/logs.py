"""What the tasks of a workflow wrote, as one log in order of time, as far as it is written.

Reads from the backends part by part and keeps little in memory, however long the logs are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heapreplace, nlargest
from typing import NamedTuple

import msgspec

from bough.control.records.event_stream import Recent
from bough.control.site import Site
from bough.control.workflows import query
from bough.errors import NotFound
from bough.model.access import Actor
from bough.model.backend import Backend, LogLine, LogPart
from bough.model.workflow import Task, Workflow

#: Lines that are given at once.
AT_ONCE = 1_000
#: Lines that are kept in memory for all attempts together, and for each of them at least.
MOST_KEPT = 20_000
LEAST_KEPT = 64
#: Requests for more of the last lines get all of them.
MOST_LAST_LINES = 10_000
#: How often an ended attempt may have nothing new before no more is expected of it.
LAST_LOOKS = 4
#: Every so often the attempts are looked up, whether or not something is known to have happened.
LOOK_ANYWAY = 32
NEVER = -1


class LogSelection(msgspec.Struct, frozen=True):
    """Which part of a workflow's log to read."""

    #: `None`: all tasks.
    task: str | None = None
    #: `None`: every attempt, or, of one task, the latest and those that follow.
    retry_id: int | None = None
    #: Only what was written to standard error.
    errors: bool = False
    #: Only so many lines of what was written before; `None`: all.
    last_lines: int | None = None


class LogEntry(NamedTuple):
    """A line, and whose it is."""

    at_ms: int
    task: str
    retry_id: int
    text: str


class LogReader:
    """Reads the log of one workflow on and on. For one thread at a time."""

    def __init__(
        self,
        site: Site,
        backends: Mapping[str, Backend],
        recent: Recent,
        name: str,
        wanted: LogSelection,
    ) -> None:
        self._site = site
        self._backends = backends
        self._recent = recent
        self._name = name
        self._wanted = wanted
        self._workflow: Workflow | None = None
        self._seen = NEVER
        self._reads = 0
        self._first_retry: int | None = None
        #: It is about one task, whose last attempt has ended.
        self._task_over = False
        self._sources: dict[str, _Source] = {}
        self._tail: int | None = wanted.last_lines

    def open(self, actor: Actor) -> None:
        """Find the workflow and the task; raises what is wrong with the question."""
        self._name = self._look(actor).workflow_id
        # What happened under its proper name meanwhile is not known.
        self._seen = NEVER
        if self._tail is not None and self._tail > MOST_LAST_LINES:
            self._tail = None

    def read(self, actor: Actor) -> list[LogEntry]:
        """The next lines; none: nothing more is written so far."""
        self._reads += 1
        if self._recent.latest(self._name) != self._seen or self._reads % LOOK_ANYWAY == 0:
            self._look(actor)
        for source in self._sources.values():
            source.dry = False
        if self._tail is not None:
            count, self._tail = self._tail, None
            return self._last(count)
        found: list[LogEntry] = []
        for entry in self._merged():
            found.append(entry)
            if len(found) == AT_ONCE:
                break
        return found

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        if self._workflow is None or not all(each.closed for each in self._sources.values()):
            return False
        return self._workflow.status.finished or self._task_over or self._keeps_nothing()

    @property
    def missing(self) -> tuple[str, ...]:
        """The tasks of which nothing is kept."""
        return tuple(sorted({each.task for each in self._sources.values() if each.missing}))

    @property
    def backend(self) -> str:
        """Where the workflow runs."""
        return "" if self._workflow is None else self._workflow.backend

    def _keeps_nothing(self) -> bool:
        """Whether something runs whose backend keeps nothing of it, nor will it of what follows."""
        return any(each.missing and not each.finished for each in self._sources.values())

    # Which attempts there are

    def _look(self, actor: Actor) -> Workflow:
        seen = self._recent.latest(self._name)
        view = query.get_workflow(self._site, actor, self._name, every_attempt=True)
        tasks = [task for group in view.groups for task in view.tasks[group.name]]
        selected = self._selected(tasks)
        self._task_over = self._wanted.task is not None and all(
            each.status.finished for each in selected
        )
        for task in selected:
            known = self._sources.get(task.attempt)
            if known is None and task.scheduled_ms is not None:
                known = _Source(task.attempt, task.name, task.retry_id, len(self._sources))
                self._sources[task.attempt] = known
            if known is not None:
                known.running = task.started_ms is not None
                known.finished = task.status.finished
        self._workflow, self._seen = view.workflow, seen
        return view.workflow

    def _selected(self, tasks: list[Task]) -> list[Task]:
        wanted = self._wanted
        found = sorted(tasks, key=lambda each: (each.scheduled_ms or 0, each.name, each.retry_id))
        if wanted.task is not None:
            found = [each for each in found if each.name == wanted.task]
            if not found:
                raise NotFound(f"Workflow {self._name} has no task {wanted.task}.")
        if wanted.retry_id is not None:
            chosen = [each for each in found if each.retry_id == wanted.retry_id]
            if not chosen:
                whose = "" if wanted.task is None else f" of task {wanted.task}"
                raise NotFound(f"Workflow {self._name} has no retry {wanted.retry_id}{whose}.")
            return chosen
        if wanted.task is None:
            return found
        if self._first_retry is None:
            self._first_retry = max(each.retry_id for each in found)
        first = self._first_retry
        return [each for each in found if each.retry_id >= first]

    # Reading

    def _last(self, count: int) -> list[LogEntry]:
        """The last lines of all attempts together; one attempt is in memory at a time."""
        kept: list[tuple[int, int, int, LogEntry]] = []
        for source in self._sources.values():
            lines = self._last_of(source, count)
            kept += [
                (line.at_ms, source.order, number, source.entry(line))
                for number, line in enumerate(lines)
            ]
            kept = nlargest(count, kept)
        return [entry for *_, entry in reversed(kept)]

    def _last_of(self, source: _Source, count: int) -> list[LogLine]:
        if self._wanted.errors:
            lines: deque[LogLine] = deque(maxlen=count)
            while self._fill(source, MOST_KEPT):
                lines.extend(source.buffer)
                source.buffer.clear()
            return list(lines)
        part = self._part(source, last_lines=count)
        if part is None:
            return []
        source.position, source.complete = part.position, part.complete
        return list(part.lines[-count:]) if count else []

    def _merged(self) -> Iterator[LogEntry]:
        """Lines in the order of time; of an attempt that is silent, nothing is waited for."""
        kept = max(LEAST_KEPT, MOST_KEPT // max(1, len(self._sources)))
        heads = [
            (source.buffer[0].at_ms, source.order, source)
            for source in self._sources.values()
            if source.buffer or self._fill(source, kept)
        ]
        heapify(heads)
        while heads:
            source = heads[0][2]
            yield source.entry(source.buffer.popleft())
            if source.buffer or (not source.dry and self._fill(source, kept)):
                heapreplace(heads, (source.buffer[0].at_ms, source.order, source))
            else:
                heappop(heads)

    def _fill(self, source: _Source, kept: int) -> bool:
        """Read on; whether anything was there, wanted or not."""
        while not source.closed:
            part = self._part(source)
            if part is None:
                return False
            lines = part.lines[source.skipped :]
            if len(lines) > kept:
                source.skipped += kept
                lines = lines[:kept]
            else:
                source.position, source.skipped = part.position, 0
                source.complete = part.complete
            source.look(found=bool(lines))
            source.buffer.extend(line for line in lines if line.error or not self._wanted.errors)
            if source.buffer:
                return True
            if not lines:
                return False
        return False

    def _part(self, source: _Source, last_lines: int | None = None) -> LogPart | None:
        backend = self._backends.get(self.backend)
        part = None
        if backend is not None:
            part = backend.read_log(source.attempt, source.position, last_lines=last_lines)
        if part is None:
            # What is only being started may not be known to the backend yet.
            source.missing = source.running or source.finished
            source.look(found=False)
        return part


class _Source:
    """One attempt: how far it was read, and what was read and not given yet."""

    def __init__(self, attempt: str, task: str, retry_id: int, order: int) -> None:
        self.attempt = attempt
        self.task = task
        self.retry_id = retry_id
        self.order = order
        self.position = 0
        #: Lines after the position that were given already.
        self.skipped = 0
        self.buffer: deque[LogLine] = deque()
        self.running = False
        self.finished = False
        self.complete = False
        self.missing = False
        #: There was nothing when it was looked at last.
        self.dry = False
        self._looks = 0

    @property
    def closed(self) -> bool:
        """Whether everything was read."""
        if self.buffer:
            return False
        return self.complete or self.missing or (self.finished and self._looks >= LAST_LOOKS)

    def look(self, *, found: bool) -> None:
        """It was looked at, and something was found or not."""
        self.dry = not found
        self._looks = self._looks + 1 if self.finished and not found else 0

    def entry(self, line: LogLine) -> LogEntry:
        """A line as its own."""
        return LogEntry(line.at_ms, self.task, self.retry_id, line.text)
