"""Sessions with running tasks: a command in them, their ports, their files.

A POST requests a session and returns a key; the client then opens a websocket with this key, on the
paths that existing clients know.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Annotated

from anyio import to_thread
from litestar import Response
from litestar.params import FromPath, FromQuery, QueryParameter

from bough.api.sessions import PluginConfigs, RouterAnswer, RsyncConfig, RsyncPath
from bough.api.system import VersionAnswer
from bough.control.workflows import sessions as use_case
from bough.errors import Invalid
from bough.model.access import Action
from bough.model.session import SessionKind, SessionRequest
from bough.server.permissions import Scope
from bough.server.route_declaration import Declared, Handler, Visit, caller, route
from bough.server.serve_session import check_upgrade, hand_over, serve
from bough.server.sessions import Sessions
from bough.version import VERSION

_WORKFLOW = "/api/workflow/{workflow:str}"
_ROUTER = "/api/router"
_MOST_PORTS = 30
_LONGEST_COMMAND = 64 << 10
#: Folders of tasks beside the working folder, as tasks see them.
_PATHS = {"work": "/osmo/work", "output": "/osmo/data/output", "tmp": "/tmp"}  # noqa: S108

Ports = Annotated[list[int] | None, QueryParameter(required=False)]


@route(
    "POST",
    f"{_WORKFLOW}/exec/task/{{task:str}}",
    Action.WORKFLOW_EXEC,
    Scope.OWN_WORKFLOW,
)
def exec_task(
    request: Visit,
    workflow: FromPath[str],
    task: FromPath[str],
    entry_command: FromQuery[str] = "",
    tty: FromQuery[bool] = True,
) -> RouterAnswer:
    """Open an exec session in a task; without `tty`, the command gets no terminal."""
    wanted = SessionRequest(SessionKind.EXEC, _split(entry_command), terminal=tty)
    (found,) = _offer(request, workflow, wanted, task=task).values()
    return found


@route(
    "POST",
    f"{_WORKFLOW}/exec/group/{{group:str}}",
    Action.WORKFLOW_EXEC,
    Scope.OWN_WORKFLOW,
)
def exec_group(
    request: Visit,
    workflow: FromPath[str],
    group: FromPath[str],
    entry_command: FromQuery[str] = "",
    tty: FromQuery[bool] = True,
) -> dict[str, RouterAnswer]:
    """Open an exec session in each running task of a group; keyed by task name."""
    wanted = SessionRequest(SessionKind.EXEC, _split(entry_command), terminal=tty)
    return _offer(request, workflow, wanted, group=group)


@route(
    "POST",
    f"{_WORKFLOW}/portforward/{{task:str}}",
    Action.WORKFLOW_PORT_FORWARD,
    Scope.OWN_WORKFLOW,
)
def port_forward(
    request: Visit,
    workflow: FromPath[str],
    task: FromPath[str],
    task_ports: Ports = None,
    use_udp: FromQuery[bool] = False,
) -> list[RouterAnswer]:
    """Open a session for each requested port of a task."""
    ports = task_ports or []
    if not ports or len(ports) > _MOST_PORTS:
        raise Invalid(f"task_ports: 1 to {_MOST_PORTS} ports are possible, not {len(ports)}.")
    wrong = next((each for each in ports if not 0 < each < 1 << 16), None)
    if wrong is not None:
        raise Invalid(f"task_ports: {wrong} is not a port; ports are 1 to 65535.")
    found: list[RouterAnswer] = []
    for port in ports:
        wanted = SessionRequest(SessionKind.PORT_FORWARD, port=port, udp=use_udp)
        found += _offer(request, workflow, wanted, task=task).values()
    return found


@route(
    "POST",
    f"{_WORKFLOW}/rsync/task/{{task:str}}",
    Action.WORKFLOW_RSYNC,
    Scope.OWN_WORKFLOW,
)
def rsync_task(request: Visit, workflow: FromPath[str], task: FromPath[str]) -> RouterAnswer:
    """Open an rsync session in a task."""
    (found,) = _offer(request, workflow, SessionRequest(SessionKind.RSYNC), task=task).values()
    return found


def _websocket(name: str, action: Action) -> Callable[[Handler], Declared]:
    """Declare where the websockets of a kind of sessions are opened."""
    return route(
        "GET",
        f"{_ROUTER}/{name}/{{workflow:str}}/client/{{key:str}}",
        action,
        Scope.OWN_WORKFLOW,
        answer=str,
        # No description has websockets.
        include_in_schema=False,
    )


@_websocket("exec", Action.WORKFLOW_EXEC)
async def connect_exec(
    request: Visit, workflow: FromPath[str], key: FromPath[str]
) -> Response[str]:
    """The websocket of an exec session."""
    return await _connect(request, SessionKind.EXEC, workflow, key)


@_websocket("portforward", Action.WORKFLOW_PORT_FORWARD)
async def connect_port(
    request: Visit, workflow: FromPath[str], key: FromPath[str]
) -> Response[str]:
    """The websocket of a forwarded port, or of a single connection to it."""
    return await _connect(request, SessionKind.PORT_FORWARD, workflow, key)


@_websocket("rsync", Action.WORKFLOW_RSYNC)
async def connect_rsync(
    request: Visit, workflow: FromPath[str], key: FromPath[str]
) -> Response[str]:
    """The websocket of an rsync session, or of a single connection to it."""
    return await _connect(request, SessionKind.RSYNC, workflow, key)


@route("GET", f"{_ROUTER}/version", Action.SYSTEM_VERSION)
def router_version(request: Visit) -> VersionAnswer:
    """The version of the router, which is that of the server."""
    del request
    return VersionAnswer(*VERSION.split(".")[:3])


@route("GET", "/api/plugins/configs", Action.PROFILE_READ)
def plugin_configs(request: Visit) -> PluginConfigs:
    """Which optional features this site has, for clients."""
    del request
    paths = {name: RsyncPath(path, writable=True) for name, path in _PATHS.items()}
    return PluginConfigs(RsyncConfig(enabled=True, allowed_paths=paths))


def _offer(
    request: Visit,
    workflow: str,
    wanted: SessionRequest,
    *,
    task: str | None = None,
    group: str | None = None,
) -> dict[str, RouterAnswer]:
    """A key for each task."""
    site, actor = caller(request)
    sessions: Sessions = request.app.state.sessions
    address = "ws" + request.app.state.public_url.removeprefix("http")
    targets = use_case.find_targets(site, actor, wanted.kind, workflow, task=task, group=group)
    return {
        each.task: RouterAnswer(address, sessions.offer(actor.name, each, wanted))
        for each in targets
    }


def _split(command: str) -> tuple[str, ...]:
    if len(command) > _LONGEST_COMMAND:
        raise Invalid(f"entry_command has more than {_LONGEST_COMMAND} characters.")
    try:
        argv = tuple(shlex.split(command))
    except ValueError as error:
        raise Invalid(f"entry_command {command[:80]!r} cannot be split: {error}.") from None
    if not argv or not argv[0]:
        raise Invalid("entry_command: say which command to run, as in `/bin/bash`.")
    return argv


async def _connect(request: Visit, kind: SessionKind, workflow: str, key: str) -> Response[str]:
    """Make the connection of a request a websocket of a session, and stay for as long as it."""
    check_upgrade(request)
    sessions: Sessions = request.app.state.sessions
    user = request.user.name
    name = await to_thread.run_sync(_proper_name, request, kind, workflow)
    # Another process may have the keys.
    offer = await to_thread.run_sync(sessions.take, user, kind, name, key)
    if offer is None:
        session = await sessions.announced(user, kind, name, key)
        hand_over(request, session, key)
        return Response("", status_code=101)
    await serve(request, offer)
    return Response("", status_code=101)


def _proper_name(request: Visit, kind: SessionKind, workflow: str) -> str:
    """The name of the workflow, which clients may also call by its uuid."""
    site, actor = caller(request)
    return use_case.proper_name(site, actor, kind, workflow)


HANDLERS = (
    exec_task,
    exec_group,
    port_forward,
    rsync_task,
    connect_exec,
    connect_port,
    connect_rsync,
    router_version,
    plugin_configs,
)
