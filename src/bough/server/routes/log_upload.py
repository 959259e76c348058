"""The websocket by which programs add lines to the log of a running task.

OSMO's control container sends the output of its task this way. Tasks of Bough need none of it: what
they print is read by their backend.
"""

from __future__ import annotations

import contextlib
from time import monotonic

from anyio import to_thread
from litestar import Response
from litestar.params import FromPath

from bough.control.workflows import sessions as use_case
from bough.control.workflows.sessions import SessionTarget
from bough.errors import Conflict, NotFound
from bough.model.access import Action
from bough.model.session import SessionKind, SessionRequest
from bough.server.permissions import Scope
from bough.server.route_declaration import Visit, caller, route
from bough.server.serve_session import accept, check_upgrade, serve
from bough.server.sessions import Offer
from bough.websocket.peer import Peer

#: As existing clients know it: there is no such task to send lines for.
_NO_TASK = 4000


@route(
    "GET",
    "/api/logger/workflow/{workflow:str}/osmo_ctrl/{task:str}/retry_id/{retry_id:int}",
    Action.WORKFLOW_EXEC,
    Scope.OWN_WORKFLOW,
    answer=str,
    # No description has websockets.
    include_in_schema=False,
)
async def add_to_log(
    request: Visit, workflow: FromPath[str], task: FromPath[str], retry_id: FromPath[int]
) -> Response[str]:
    """A websocket; its messages are appended to the log of a task."""
    check_upgrade(request)
    try:
        target = await to_thread.run_sync(_find, request, workflow, task, retry_id)
    except (NotFound, Conflict) as error:
        _refuse(request, error.message)
        return Response("", status_code=101)
    wanted = SessionRequest(SessionKind.LOG)
    await serve(request, Offer(request.user.name, target, wanted, monotonic()))
    return Response("", status_code=101)


def _find(request: Visit, workflow: str, task: str, retry_id: int) -> SessionTarget:
    site, actor = caller(request)
    (found,) = use_case.find_targets(site, actor, SessionKind.LOG, workflow, task=task)
    if found.retry_id != retry_id:
        raise NotFound(
            f"Task {task[:80]} of {found.workflow_id} runs with retry {found.retry_id}, "
            f"not {retry_id}."
        )
    return found


def _refuse(request: Visit, reason: str) -> None:
    """Say why within the websocket, which is where existing clients look for it."""
    connection, head, _ = accept(request)
    with contextlib.suppress(OSError):
        # A new connection always has room for so few bytes.
        connection.send(head)
    Peer(connection, server=True).hang_up(_NO_TASK, reason)


HANDLERS = (add_to_log,)
