"""Results of tasks: which files there are, and their contents part by part.

A part is small enough for the memory, has a checksum, and can be asked for again.
"""

from __future__ import annotations

import hashlib

from litestar.params import FromPath, FromQuery

from bough.api.results import ResultFile, ResultPage, ResultPart
from bough.control.workflows.results import TaskResults
from bough.model.access import Action
from bough.server.loop_view import LoopView
from bough.server.permissions import Scope
from bough.server.route_declaration import Limit, Offset, Visit, caller, route
from bough.server.values import time_text

_RESULTS = "/api/workflow/{workflow:str}/results"
#: Parts that are read for one user at a time.
PARTS = 4


@route("GET", _RESULTS, Action.WORKFLOW_READ, Scope.WORKFLOW)
def list_results(
    request: Visit,
    workflow: FromPath[str],
    task_name: FromQuery[str],
    after: FromQuery[str] = "",
    limit: Limit = 1_000,
) -> ResultPage:
    """A page of the files in a completed task's `{{output}}`, in order, after a given path."""
    found = _results(request, workflow, task_name).files(after, limit)
    files = [
        ResultFile(each.path, each.size_bytes, each.version, time_text(each.modified_ms) or "")
        for each in found.files
    ]
    return ResultPage(files, more_entries=found.more, left_out=found.left_out)


@route("GET", f"{_RESULTS}/part", Action.WORKFLOW_READ, Scope.WORKFLOW, at_once=PARTS)
def read_result(
    request: Visit,
    workflow: FromPath[str],
    task_name: FromQuery[str],
    path: FromQuery[str],
    offset: Offset = 0,
    version: FromQuery[str | None] = None,
) -> ResultPart:
    """Part of a result file, starting at an offset, with its checksum.

    A file that is not of the version any more is refused.
    """
    found = _results(request, workflow, task_name).part(path, offset, version)
    return ResultPart(
        offset=offset,
        content=found.content,
        sha256=hashlib.sha256(found.content).hexdigest(),
        size_bytes=found.file.size_bytes,
        version=found.file.version,
    )


def _results(request: Visit, workflow: str, task: str) -> TaskResults:
    site, actor = caller(request)
    engine: LoopView = request.app.state.engine
    return TaskResults(site, engine.backends, actor, workflow, task)


HANDLERS = (list_results, read_result)
