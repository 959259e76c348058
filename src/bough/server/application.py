"""All routes as one application."""

from __future__ import annotations

import re

from litestar import Litestar, Router
from litestar.datastructures import State
from litestar.exceptions import InternalServerException
from litestar.openapi import OpenAPIConfig
from litestar.openapi.spec import Components, SecurityScheme
from litestar.routes import BaseRoute, HTTPRoute

from bough.control.records.event_stream import Recent
from bough.control.scheduling.explanation import Explainer
from bough.errors import Invalid
from bough.server import error_answers
from bough.server.answer_cache import KeptAnswers
from bough.server.authenticator import Authenticator, Visit
from bough.server.awaited_submissions import AwaitedSubmissions
from bough.server.loop_view import LoopView
from bough.server.metrics import Gauges
from bough.server.permissions import Permit, guard, permit_of
from bough.server.route_declaration import BINARY
from bough.server.routes import (
    apps,
    backend_tests,
    change_history,
    cluster_queues,
    cohorts,
    configs,
    data,
    history_export,
    log_upload,
    nodes,
    people,
    pools,
    profile_and_credentials,
    results,
    roles,
    sessions,
    streams,
    subpools,
    system,
    tasks,
    usage,
    workflows,
)
from bough.server.server_key import ServerKey
from bough.server.sessions import Sessions
from bough.server.settings import LOOPBACK, MAXIMUM_BODY_BYTES, PORT
from bough.server.stream_access import AccessVersion
from bough.version import VERSION

#: Every route.
DECLARED = tuple(
    handler
    for module in (
        apps,
        backend_tests,
        cohorts,
        configs,
        data,
        history_export,
        cluster_queues,
        log_upload,
        nodes,
        people,
        profile_and_credentials,
        pools,
        change_history,
        roles,
        results,
        sessions,
        streams,
        subpools,
        system,
        tasks,
        usage,
        workflows,
    )
    for handler in module.HANDLERS
)
#: The character NUL as JSON writes it; an escaped backslash before it makes it plain text.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


class _NoPages(Router):
    """The description is a route like every other (`system`); there are no pages beside it."""

    def register(self, value: object) -> list[BaseRoute]:  # noqa: ARG002  the framework's signature
        return []


def make_application(
    authenticator: Authenticator, engine: LoopView, *, maximum_body_bytes: int = MAXIMUM_BODY_BYTES
) -> Litestar:
    """Put all routes together."""
    return Litestar(
        route_handlers=[each.make() for each in DECLARED],
        guards=[guard],
        before_request=_check_body,
        exception_handlers=error_answers.handlers(),
        openapi_config=_description(),
        request_max_body_size=maximum_body_bytes,
        logging_config=None,
        state=State(keep(authenticator, engine)),
        debug=False,
    )


def keep(authenticator: Authenticator, engine: LoopView) -> dict[str, object]:
    """The state of the application that routes use, by name."""
    return {
        "authenticator": authenticator,
        "engine": engine,
        "gauges": Gauges(authenticator.site, engine),
        "recent": Recent(authenticator.site),
        "explainer": Explainer(authenticator.site, engine.ask),
        "access_version": AccessVersion(authenticator.site),
        "sessions": Sessions(),
        "kept_answers": KeptAnswers(authenticator.site),
        "awaited_submissions": AwaitedSubmissions(authenticator.site),
        # A server takes the key of its data folder.
        "server_key": ServerKey.new(),
        # A server looks at its disks.
        "faults": tuple,
        # A server says where it listens as soon as it knows that.
        "public_url": f"http://{LOOPBACK}:{PORT}",
    }


def routes(application: Litestar) -> list[tuple[str, str, Permit | None]]:
    """Every route: its method, its path, and the permission that it needs."""
    found: list[tuple[str, str, Permit | None]] = []
    for route in application.routes:
        if isinstance(route, HTTPRoute):
            for handler in route.route_handlers:
                for method in sorted(handler.http_methods):
                    found.append((str(method), route.path_format, permit_of(handler)))
    return sorted(found, key=lambda each: each[:2])


async def _check_body(request: Visit) -> None:
    """No name or text can have the character NUL, and not every database can keep it."""
    try:
        body = await request.body()
    except InternalServerException:
        # This is how the framework says that the client has gone.
        raise Invalid("The body is not complete; the connection was closed.") from None
    if request.route_handler.opt.get(BINARY):
        return
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise Invalid(f"The body is not UTF-8 text: byte {error.start} cannot be read.") from None
    if b"\\u0000" in body and _NUL.search(body):
        raise Invalid("The body contains the character NUL, which no text may have.")


def _description() -> OpenAPIConfig:
    scheme = SecurityScheme(
        type="http", scheme="bearer", description="A personal access token, or one made from it."
    )
    return OpenAPIConfig(
        title="Bough",
        version=VERSION,
        description="Hierarchical GPU quota and elastic gang scheduling.",
        components=Components(security_schemes={"token": scheme}),
        security=[{"token": []}],
        use_handler_docstrings=True,
        openapi_router=_NoPages("/api", route_handlers=[]),
    )
