"""Lines of text about one workflow: logs, events, the spec. Sent as they come, without a frame."""

from __future__ import annotations

from collections.abc import Iterator

from litestar.params import FromPath, FromQuery
from litestar.response import Stream

from bough.control import workflows
from bough.model.access import Action
from bough.model.record import StoredEvent
from bough.server.permission import Scope
from bough.server.routes.declare import OptionalNumber, Visit, caller, text_route
from bough.server.wire import time_text

_WORKFLOW = "/api/workflow/{workflow:str}"


@text_route(f"{_WORKFLOW}/logs", Action.WORKFLOW_READ, Scope.WORKFLOW)
def workflow_logs(
    request: Visit,
    workflow: FromPath[str],
    task_name: FromQuery[str | None] = None,
    retry_id: OptionalNumber = None,
    last_n_lines: OptionalNumber = None,
) -> Stream:
    """What its tasks wrote. Tasks of the virtual backend run nothing, and so write nothing."""
    site, actor = caller(request)
    workflows.get_workflow(site, actor, workflow)
    del task_name, retry_id, last_n_lines
    return _lines(iter(()))


@text_route(f"{_WORKFLOW}/error_logs", Action.WORKFLOW_READ, Scope.WORKFLOW)
def workflow_error_logs(
    request: Visit,
    workflow: FromPath[str],
    task_name: FromQuery[str | None] = None,
    retry_id: OptionalNumber = None,
    last_n_lines: OptionalNumber = None,
) -> Stream:
    """What its tasks wrote when they failed."""
    return workflow_logs.fn(request, workflow, task_name, retry_id, last_n_lines)


@text_route(f"{_WORKFLOW}/events", Action.WORKFLOW_READ, Scope.WORKFLOW)
def workflow_events(
    request: Visit,
    workflow: FromPath[str],
    task_name: FromQuery[str | None] = None,
    retry_id: OptionalNumber = None,
) -> Stream:
    """What happened to it, in order."""
    site, actor = caller(request)
    found = workflows.get_events(site, actor, workflow)
    return _lines(_event_line(each) for each in found if _concerns(each, task_name, retry_id))


@text_route(f"{_WORKFLOW}/spec", Action.WORKFLOW_READ, Scope.WORKFLOW)
def workflow_spec(
    request: Visit, workflow: FromPath[str], use_template: FromQuery[bool] = False
) -> Stream:
    """The spec as it was submitted, rendered or before that."""
    site, actor = caller(request)
    text = workflows.get_spec(site, actor, workflow, template=use_template)
    return _lines(line + "\n" for line in text.replace("\r", "").splitlines())


def _lines(lines: Iterator[str]) -> Stream:
    return Stream(lines, media_type="text/plain; charset=utf-8")


def _event_line(event: StoredEvent) -> str:
    data = event.data if isinstance(event.data, dict) else {}
    task = data.get("task") or data.get("group") or event.subject
    retry = f" retry-{data['retry_id']}" if data.get("retry_id") else ""
    at = (time_text(event.at_ms) or "").partition(".")[0].replace("-", "/").replace("T", " ")
    message = " ".join(part for part in (event.message, data.get("message")) if part)
    return f"{at} [{task}{retry}] {event.kind}: {message}\n"


def _concerns(event: StoredEvent, task: str | None, retry_id: int | None) -> bool:
    data = event.data if isinstance(event.data, dict) else {}
    if task is not None and data.get("task") != task:
        return False
    return retry_id is None or data.get("retry_id") == retry_id


HANDLERS = (workflow_logs, workflow_error_logs, workflow_events, workflow_spec)
