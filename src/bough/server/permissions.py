"""The permission that each route declares, and the guard that checks it.

A route that declares nothing is denied to everyone. The use case checks again, in its own
transaction.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec
from anyio import to_thread
from litestar.handlers.base import BaseRouteHandler

from bough.control.people.access import DENIED, authorise, resource_of_pool, resource_of_workflow
from bough.control.setup_cache import Setup
from bough.control.site import Site
from bough.control.workflows.sessions import authorise_session
from bough.errors import Forbidden
from bough.model.access import ANONYMOUS, PUBLIC_ACTIONS, Action, Actor
from bough.server.answer_cache import moment_of
from bough.server.authenticator import Authenticator, Connection, origin_of
from bough.server.client_versions import VERSION_HEADER, check_client

_KEY = "permit"


class Scope(StrEnum):
    """What the permission is for."""

    #: Nothing in particular.
    NOTHING = "nothing"
    #: The pool of the path parameter `pool`; for a subpool, the one above it.
    POOL = "pool"
    #: The pool of the workflow of the path parameter `workflow`.
    WORKFLOW = "workflow"
    #: The same, but only of one's own workflow; admins of its pool have all of its workflows.
    OWN_WORKFLOW = "own workflow"
    #: Pools that only the body names; the use case asks for each of them.
    BODY = "body"


_OF_WORKFLOWS = (Scope.WORKFLOW, Scope.OWN_WORKFLOW)


class Permit(msgspec.Struct, frozen=True):
    """The permission that a route needs."""

    action: Action
    scope: Scope = Scope.NOTHING


def permit(action: Action, scope: Scope = Scope.NOTHING) -> dict[str, Permit]:
    """The declaration of a route."""
    return {_KEY: Permit(action, scope)}


def permit_of(handler: BaseRouteHandler) -> Permit | None:
    """The permission that a route declares; `None`: nothing, so it is denied."""
    found = handler.opt.get(_KEY)
    return found if isinstance(found, Permit) else None


async def guard(connection: Connection, handler: BaseRouteHandler) -> None:
    """The same as `admit`, in a thread unless all of it is known."""
    if not _admit_known(connection, handler):
        await to_thread.run_sync(admit, connection, handler)


def _admit_known(connection: Connection, handler: BaseRouteHandler) -> bool:
    """Do the same without asking the database anything, if that is possible; whether it was."""
    moment = moment_of(connection.scope)
    declared = permit_of(handler)
    if declared is not None and declared.action in PUBLIC_ACTIONS:
        admit(connection, handler)
        return True
    if moment is None or declared is None or declared.scope in _OF_WORKFLOWS:
        return False
    authenticator: Authenticator = connection.app.state.authenticator
    known = authenticator.recall(connection, moment.access)
    site = authenticator.site
    site.kept.expect(moment.setup)
    needs_setup = declared.scope is Scope.POOL or VERSION_HEADER in connection.headers
    # Asked for once: another thread may hear of a change at any time, and then it is not known.
    setup = site.kept.known_setup()
    if known is None or (needs_setup and setup is None):
        return False
    _, actor = known
    connection.scope["user"] = actor
    check_client(site, connection, setup)
    _authorise(site, actor, declared, connection.path_params, setup)
    return True


def admit(connection: Connection, handler: BaseRouteHandler) -> None:
    """Find the user, and refuse unless they have the permission of the route."""
    declared = permit_of(handler)
    if declared is None:
        raise Forbidden(DENIED)
    authenticator: Authenticator = connection.app.state.authenticator
    if declared.action in PUBLIC_ACTIONS:
        connection.scope["user"] = msgspec.structs.replace(ANONYMOUS, origin=origin_of(connection))
        return
    actor = authenticator.identify(connection)
    connection.scope["user"] = actor
    check_client(authenticator.site, connection)
    _authorise(authenticator.site, actor, declared, connection.path_params)


def _authorise(
    site: Site,
    actor: Actor,
    declared: Permit,
    names: dict[str, str],
    setup: Setup | None = None,
) -> None:
    resource: str | None = None
    if declared.scope is Scope.POOL and actor.name:
        resource = resource_of_pool(site, names["pool"], setup)
    elif declared.scope in _OF_WORKFLOWS and actor.name:
        resource = resource_of_workflow(site, names["workflow"])
    if declared.scope is not Scope.NOTHING and resource is None:
        # Names are no secret: users who may list them are told by the use case what is missing.
        base = Action.WORKFLOW_LIST if declared.scope in _OF_WORKFLOWS else Action.POOL_LIST
        authorise(actor, base, names=site.role_names)
        return
    authorise(actor, declared.action, resource, site.role_names)
    if declared.scope is Scope.OWN_WORKFLOW:
        authorise_session(site, actor, declared.action, names["workflow"])
