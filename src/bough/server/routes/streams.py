"""Lines of text about one workflow: logs, events, the spec. Sent as they come, without a frame.

Long streams are read in a few threads of their own, so that followers do not delay other requests.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import TypeVar

from anyio import CapacityLimiter, sleep, to_thread
from anyio.lowlevel import RunVar
from litestar.params import FromPath, FromQuery
from litestar.response import Stream

from bough.api.common import LOG_NOT_KEPT, STREAM_STOPPED
from bough.control.workflows import query
from bough.control.workflows.logs import LogEntry, LogReader, LogSelection
from bough.control.workflows.output_locations import place_of
from bough.errors import BoughError, Unavailable
from bough.model.access import Action
from bough.server.concurrency_limits import at_end, count_stream
from bough.server.event_lines import EventLine, EventLines, one_line
from bough.server.loop_view import LoopView
from bough.server.permissions import Scope
from bough.server.route_declaration import OptionalNumber, Visit, caller, text_route
from bough.server.stream_access import StreamAccess
from bough.server.values import moment_text

_WORKFLOW = "/api/workflow/{workflow:str}"
#: How many threads read for all followers.
_THREADS = 4
#: How long to wait for something new, at first and at most.
_SHORTEST_S = 0.1
_LONGEST_S = 1.0
_LIMITER: RunVar[CapacityLimiter] = RunVar("limiter of streams")
Result = TypeVar("Result")


@text_route(f"{_WORKFLOW}/logs", Action.WORKFLOW_READ, Scope.WORKFLOW)
async def workflow_logs(
    request: Visit,
    workflow: FromPath[str],
    task_name: FromQuery[str | None] = None,
    retry_id: OptionalNumber = None,
    last_n_lines: OptionalNumber = None,
    follow: FromQuery[bool] = True,
) -> Stream:
    """The output of a workflow's tasks, by time; followed until it ends, unless `follow=false`."""
    wanted = LogSelection(task_name or None, retry_id, last_lines=last_n_lines)
    return await _logs(request, workflow, wanted, follow=follow)


@text_route(f"{_WORKFLOW}/error_logs", Action.WORKFLOW_READ, Scope.WORKFLOW)
async def workflow_error_logs(
    request: Visit,
    workflow: FromPath[str],
    task_name: FromQuery[str | None] = None,
    retry_id: OptionalNumber = None,
    last_n_lines: OptionalNumber = None,
    follow: FromQuery[bool] = True,
) -> Stream:
    """The standard error of a workflow's tasks, streamed like the logs."""
    wanted = LogSelection(task_name or None, retry_id, errors=True, last_lines=last_n_lines)
    return await _logs(request, workflow, wanted, follow=follow)


@text_route(f"{_WORKFLOW}/events", Action.WORKFLOW_READ, Scope.WORKFLOW)
async def workflow_events(
    request: Visit,
    workflow: FromPath[str],
    task_name: FromQuery[str | None] = None,
    retry_id: OptionalNumber = None,
    follow: FromQuery[bool] = True,
) -> Stream:
    """The events of a workflow, in order; followed until it ends, unless `follow=false`."""
    reader = _EventTexts(request, workflow, task_name or None, retry_id)
    count_stream(request)
    await _in_thread(reader.open)
    return _lines(_texts(request, reader, follow=follow))


@text_route(f"{_WORKFLOW}/spec", Action.WORKFLOW_READ, Scope.WORKFLOW)
def workflow_spec(
    request: Visit, workflow: FromPath[str], use_template: FromQuery[bool] = False
) -> Stream:
    """The submitted spec of a workflow: rendered, or the template."""
    site, actor = caller(request)
    text = query.get_spec(site, actor, workflow, template=use_template)
    # In one piece, which is dropped as soon as it is sent.
    return _lines(iter(["".join(f"{line}\n" for line in text.replace("\r", "").splitlines())]))


async def _logs(request: Visit, workflow: str, wanted: LogSelection, *, follow: bool) -> Stream:
    reader = _LogLines(request, workflow, wanted)
    count_stream(request)
    at_end(request).callback(reader.close)
    await _in_thread(reader.open)
    return _lines(_texts(request, reader, follow=follow))


class _LogLines:
    """The log as lines; where nothing is kept of it, one line that says so."""

    def __init__(self, request: Visit, workflow: str, wanted: LogSelection) -> None:
        site, self.actor = caller(request)
        engine: LoopView = request.app.state.engine
        self._reader = LogReader(site, engine.backends, request.app.state.recent, workflow, wanted)
        self._told = False

    def open(self) -> None:
        """Raise what is wrong with the question."""
        self._reader.open(self.actor)

    def read(self) -> str:
        """What is new."""
        text = "".join(map(_log_line, self._reader.read(self.actor)))
        missing = self._reader.missing
        if text or self._told or not missing:
            return text
        self._told = True
        tasks = ", ".join(missing[:3]) + (" and others" if len(missing) > 3 else "")
        elsewhere = self._reader.elsewhere()
        if elsewhere is not None:
            return f"What {tasks} wrote is {place_of(elsewhere)}.\n"
        return f"{LOG_NOT_KEPT}{tasks} wrote on backend {self._reader.backend}.\n"

    def close(self) -> None:
        """Let go of what was read and not sent."""
        self._reader.close()

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self._reader.ended


class _EventTexts:
    """What happens to a workflow, as lines."""

    def __init__(
        self, request: Visit, workflow: str, task: str | None, retry_id: int | None
    ) -> None:
        self._site, self.actor = caller(request)
        self._recent = request.app.state.recent
        self._name = workflow
        self._task = task
        self._retry_id = retry_id
        self._lines = EventLines({})
        self._number = 0
        self._seen = -1
        self.ended = False

    def open(self) -> None:
        """Raise what is wrong with the question."""
        view = query.get_workflow(self._site, self.actor, self._name)
        self._name = view.workflow.workflow_id
        groups = {group.name: [task.name for task in group.spec.tasks] for group in view.groups}
        self._lines = EventLines(groups)

    def read(self) -> str:
        """What is new."""
        seen = self._recent.latest(self._name)
        text = ""
        while not text and seen != self._seen:
            view = query.get_workflow(self._site, self.actor, self._name)
            found = query.get_events(self._site, self.actor, self._name, after=self._number)
            if found:
                self._number = found[-1].number
            else:
                self._seen, self.ended = seen, view.workflow.status.finished
            lines = (line for event in found for line in self._lines.lines(event))
            text = "".join(line.text for line in lines if self._concerns(line))
        return text

    def _concerns(self, line: EventLine) -> bool:
        if self._task not in (None, line.task):
            return False
        return self._retry_id is None or (line.task is not None and self._retry_id == line.retry_id)


async def _texts(
    request: Visit, reader: _LogLines | _EventTexts, *, follow: bool
) -> AsyncIterator[str]:
    """The lines as they come; ends with the workflow, with the server, or when access is lost."""
    engine: LoopView = request.app.state.engine
    access = StreamAccess(request)
    pause_s = _SHORTEST_S
    while True:
        try:
            text = await _in_thread(partial(_read, access, reader))
        except Unavailable:
            text = ""
        except BoughError as error:
            yield f"({error.message})\n"
            return
        if text:
            pause_s = _SHORTEST_S
            yield text
        elif reader.ended or not follow:
            return
        if engine.stopping.is_set():
            yield STREAM_STOPPED
            return
        if not text:
            await sleep(pause_s)
            pause_s = min(_LONGEST_S, pause_s * 1.5)


def _read(access: StreamAccess, reader: _LogLines | _EventTexts) -> str:
    reader.actor = access.check()
    return reader.read()


async def _in_thread(work: Callable[[], Result]) -> Result:
    limiter = _LIMITER.get(None)
    if limiter is None:
        limiter = CapacityLimiter(_THREADS)
        _LIMITER.set(limiter)
    return await to_thread.run_sync(work, limiter=limiter)


def _lines(lines: Iterator[str] | AsyncIterator[str]) -> Stream:
    return Stream(
        lines,
        media_type="text/plain; charset=utf-8",
        # A proxy that buffers would hold live lines back from their readers.
        headers={"x-accel-buffering": "no"},
    )


def _log_line(entry: LogEntry) -> str:
    retry = f" retry-{entry.retry_id}" if entry.retry_id else ""
    return f"{moment_text(entry.at_ms)} [{entry.task}{retry}] {one_line(entry.text)}\n"


HANDLERS = (workflow_logs, workflow_error_logs, workflow_events, workflow_spec)
