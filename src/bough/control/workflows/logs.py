"""What the tasks of a workflow wrote, as one log in order of time, as far as it is written.

Reads from the backends part by part and keeps little in memory, however long the logs are, and
however many readers there are: what a reader keeps to be quick, it can read again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heapreplace, nlargest

import msgspec

from bough.control.records.event_stream import Recent
from bough.control.site import Site
from bough.control.workflows import query
from bough.control.workflows.attempt_log import LogEntry, LogPlace, LogSource, weigh
from bough.control.workflows.output_locations import find_elsewhere
from bough.errors import NotFound
from bough.model.access import Actor
from bough.model.backend import LogPart, TaskFiles
from bough.model.pool import BackendRecord
from bough.model.workflow import Task, Workflow

#: What is given at once.
AT_ONCE = 32 << 10
#: What a reader keeps of all attempts together, and of each of them at least beside one line.
MOST_KEPT = 2 << 20
LEAST_KEPT = 2 << 10
#: What all readers keep together.
ALL_KEPT = 64 << 20
#: Requests for more of the last lines get all of them.
MOST_LAST_LINES = 10_000
#: How often the attempts are looked up even if no event says that something happened.
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


class _KeptLines:
    """Lines that all readers keep.

    Where it is too much, the reader idle the longest drops its part.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: The one that was read last is the last one.
        self._weights: dict[LogReader, int] = {}
        self.total = 0
        #: Among how many processes of a server the room is divided.
        self.processes = 1

    @property
    def _most(self) -> int:
        return ALL_KEPT // self.processes

    def keep(self, reader: LogReader, weight: int) -> None:
        """Note how much a reader keeps now."""
        with self._lock:
            self._replace(reader, weight)
            if self.total > self._most:
                self._give_up()

    def _give_up(self) -> None:
        for each in list(self._weights):
            if self.total > self._most and each.give_up():
                self._replace(each, 0)

    def _replace(self, reader: LogReader, weight: int) -> None:
        self.total += weight - self._weights.pop(reader, 0)
        if weight:
            self._weights[reader] = weight


KEPT = _KeptLines()


class LogReader:
    """Reads the log of one workflow on and on. For one thread at a time."""

    def __init__(
        self,
        site: Site,
        backends: Mapping[str, TaskFiles],
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
        self._sources: dict[str, LogSource] = {}
        self._tail: int | None = wanted.last_lines
        #: Held while it reads: another reader may tell it to give up what it keeps.
        self._lock = threading.RLock()

    def open(self, actor: Actor) -> None:
        """Find the workflow and the task; raises what is wrong with the question."""
        self._name = self._look(actor).workflow_id
        # What happened under its proper name meanwhile is not known.
        self._seen = NEVER
        if self._tail is not None and self._tail > MOST_LAST_LINES:
            self._tail = None

    def read(self, actor: Actor) -> list[LogEntry]:
        """The next lines; none: nothing more is written so far."""
        with self._lock:
            found = self._read(actor)
            KEPT.keep(self, sum(each.weight for each in self._sources.values()))
        return found

    def give_up(self) -> bool:
        """Drop all lines until the next read.

        Whether that was possible, as it is not being read now.
        """
        if not self._lock.acquire(blocking=False):
            return False
        try:
            for source in self._sources.values():
                source.rewind()
        finally:
            self._lock.release()
        return True

    def close(self) -> None:
        """Nothing more will be read."""
        with self._lock:
            self._sources.clear()
            KEPT.keep(self, 0)

    def _read(self, actor: Actor) -> list[LogEntry]:
        self._reads += 1
        if self._recent.latest(self._name) != self._seen or self._reads % LOOK_ANYWAY == 0:
            self._look(actor)
        for source in self._sources.values():
            source.dry = False
        if self._tail is not None:
            count, self._tail = self._tail, None
            self._begin_with_last(count)
        found: list[LogEntry] = []
        weight = 0
        for entry in self._merged():
            found.append(entry)
            weight += weigh(entry.text)
            if weight >= AT_ONCE:
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

    def elsewhere(self) -> BackendRecord | None:
        """The backend of the workflow, where it belongs to a machine that is not this server's."""
        return find_elsewhere(self._site, self._backends, self.backend)

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
                known = LogSource(task.attempt, task.name, task.retry_id, len(self._sources))
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

    def _begin_with_last(self, count: int) -> None:
        """Go to where the last lines of all attempts together begin; the lines are read later."""
        places = self._last_errors if self._wanted.errors else self._last_lines
        kept: list[LogPlace] = []
        for source in self._sources.values():
            kept = nlargest(count, [*kept, *places(source, count)])
        # The largest comes first, so what is left for each attempt is its first line.
        first = {place.order: place for place in kept}
        for source in self._sources.values():
            place = first.get(source.order)
            if place is not None:
                source.go(place.position, place.line)

    def _last_lines(self, source: LogSource, count: int) -> Iterable[LogPlace]:
        part = self._part(source, last_lines=count)
        if part is None:
            return ()
        source.go(part.position, complete=part.complete)
        places = source.places(part.start, enumerate(part.lines))
        return places[-count:] if count else ()

    def _last_errors(self, source: LogSource, count: int) -> Iterable[LogPlace]:
        found: deque[LogPlace] = deque(maxlen=count)
        while self._fill(source, MOST_KEPT):
            found.extend(source.places(source.part_position, source.buffer))
            source.clear()
        return found

    def _merged(self) -> Iterator[LogEntry]:
        """Lines in the order of time; of an attempt that is silent, nothing is waited for."""
        kept = max(LEAST_KEPT, MOST_KEPT // max(1, len(self._sources)))
        heads = [
            (source.next_ms, source.order, source)
            for source in self._sources.values()
            if source.buffer or self._fill(source, kept)
        ]
        heapify(heads)
        while heads:
            source = heads[0][2]
            yield source.take()
            if source.buffer or (not source.dry and self._fill(source, kept)):
                heapreplace(heads, (source.next_ms, source.order, source))
            else:
                heappop(heads)

    def _fill(self, source: LogSource, kept: int) -> bool:
        """Read on; whether anything was there, wanted or not."""
        while not source.closed:
            part = self._part(source, limit_bytes=2 * kept)
            if part is None:
                return False
            found = source.add(part, kept, only_errors=self._wanted.errors)
            if source.buffer:
                return True
            if not found:
                return False
        return False

    def _part(
        self, source: LogSource, last_lines: int | None = None, limit_bytes: int | None = None
    ) -> LogPart | None:
        backend = self._backends.get(self.backend)
        part = None
        if backend is not None:
            part = backend.read_log(
                source.attempt, source.position, last_lines=last_lines, limit_bytes=limit_bytes
            )
        if part is None:
            # What is only being started may not be known to the backend yet.
            source.missing = source.running or source.finished
            source.look(found=False)
        return part
