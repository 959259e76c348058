"""Whether an actor may do something, and who sends a request. What is not allowed here is denied.

A question about a subpool is a question about its pool, found by the stored edge and never by the
form of a name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec
import sqlalchemy as sa

from bough.control.people.role_bindings import POOL as _POOL
from bough.control.people.role_bindings import PresentNames
from bough.control.setup_cache import Setup
from bough.control.site import Site
from bough.errors import Forbidden, NotFound, Unauthenticated
from bough.model.access import (
    DEFAULT_ACTIONS,
    POOL_ADMIN_ACTIONS,
    POOL_USER_ACTIONS,
    PUBLIC_ACTIONS,
    Action,
    Actor,
    Effect,
    Role,
    RoleNames,
    Statement,
    Token,
    User,
)
from bough.model.pool import Pool
from bough.model.subpool import Subpool
from bough.store import archive as archive_store
from bough.store import arrays as array_store
from bough.store import people, pools
from bough.store import pools as pool_store
from bough.store import settings as setting_store
from bough.store import workflows as workflow_store

DAY_MS = 24 * 60 * 60 * 1_000
#: The prefix of all tokens, by which secret scanners find them.
_PREFIX = "bough-"
DENIED = "access denied"
_UNKNOWN = "The token is not known; it may have been deleted."
#: The names as the designs have them.
OSMO_NAMES = RoleNames()


def authorise(
    actor: Actor, action: Action, resource: str | None = None, names: RoleNames = OSMO_NAMES
) -> None:
    """Refuse unless the actor may do this; used by every use case."""
    if not allows(actor, action, resource, names):
        if not actor.name:
            raise Unauthenticated
        raise Forbidden(DENIED)


def allows(
    actor: Actor, action: Action, resource: str | None = None, names: RoleNames = OSMO_NAMES
) -> bool:
    """Whether the actor may do this, to a resource such as `pool/team`, or to nothing special."""
    if action in PUBLIC_ACTIONS:
        return True
    if not actor.name:
        return False
    if names.admin in actor.roles:
        return True
    if names.everybody in actor.roles and action in DEFAULT_ACTIONS:
        return True
    if resource is not None and resource.startswith(_POOL):
        pool = resource.removeprefix(_POOL)
        pool = pool.partition("/")[0]
        if names.pool_user(pool) in actor.roles and action in POOL_USER_ACTIONS:
            return True
        if names.pool_admin(pool) in actor.roles and action in POOL_ADMIN_ACTIONS:
            return True
    return any(_role_allows(role, action, resource) for role in actor.written)


def authorise_granting(site: Site, actor: Actor) -> None:
    """Only administrators may grant rights, whatever a custom role says."""
    if not is_admin(site, actor):
        raise Forbidden("Only an administrator can grant and revoke rights.")


def is_admin(site: Site, actor: Actor) -> bool:
    """Whether the actor may do everything."""
    return site.role_names.admin in actor.roles


def resource_of(pool: Pool | Subpool | str) -> str:
    """What is asked about: the pool, for a subpool the one above it.

    Which subpool it is follows it: a Deny about a subpool that was stored once stays closed.
    """
    if isinstance(pool, Subpool):
        return f"{_POOL}{pool.parent}/{pool.name}"
    return f"{_POOL}{pool if isinstance(pool, str) else pool.name}"


def resource_within(pool: Pool | str) -> str:
    """A pool together with any of its subpools."""
    return f"{resource_of(pool)}/*"


def resource_of_pool(site: Site, name: str, setup: Setup | None = None) -> str | None:
    """The pool of a name; for a subpool the one above it, by the stored edge.

    At the moment at which the actor was found, or later.
    setup:  the latest one, for callers that have it.
    """
    found = (setup or site.kept.latest_setup(site.store)).pools.get(name)
    return None if found is None else resource_of(found)


def resource_of_workflow(site: Site, name: str) -> str | None:
    """The pool of the workflow of an identifier or a uuid."""
    with site.store.read() as connection:
        workflow = workflow_store.find(connection, name)
        kept = (
            workflow or archive_store.find(connection, name) or array_store.find(connection, name)
        )
        if kept is None:
            return None
        found = pool_store.find(connection, kept.pool)
    return resource_of(found or kept.pool)


def require_pool(connection: sa.Connection, name: str) -> Pool | Subpool:
    """The pool or subpool of a name.

    Names are no secret: every authenticated user may list them.
    """
    found = pools.find(connection, name)
    if found is None:
        raise NotFound(f"Pool {name} not found.")
    return found


def allowed_pools(site: Site, actor: Actor, connection: sa.Connection) -> list[str]:
    """The pools and visible subpools that the actor may submit to, by name."""
    found: list[str] = []
    for pool in pools.list_pools(connection):
        if allows(actor, Action.WORKFLOW_CREATE, resource_of(pool), site.role_names):
            found.append(pool.name)
            subpools = pools.list_subpools(connection, pool.name)
            found += [
                each.name
                for each in subpools
                if each.visible
                and allows(actor, Action.WORKFLOW_CREATE, resource_of(each), site.role_names)
            ]
    return sorted(found)


# Who sends a request


def authenticate(site: Site, secret: str, origin: str = "") -> Actor:
    """The actor of a token's secret."""
    hashed = hash_secret(secret)
    with site.store.read() as connection:
        return _by_token(
            site, connection, hashed, origin, lambda: people.find_token(connection, hashed)
        )


def recall(site: Site, secret: str, access: int, origin: str = "") -> tuple[int, Actor] | None:
    """The actor of a secret and when it ends, without a look at the database.

    access:  the counter of rights, as it was seen since the request came. `None`: not known under
             it.
    """
    found = site.kept.known_actor(access, hash_secret(secret))
    if found is None:
        return None
    expires_ms, actor = found
    _check_expiry(site, actor.token, expires_ms)
    return expires_ms, msgspec.structs.replace(actor, origin=origin)


def token_and_user(site: Site, secret: str) -> tuple[Token, User]:
    """The token of a secret, and whose it is."""
    with site.store.read() as connection:
        token = _valid(site, people.find_token(connection, hash_secret(secret)))
        return token, _owner(connection, token)


def authenticate_pass(site: Site, token_uuid: str, user_uuid: str, origin: str = "") -> Actor:
    """The actor of a pass, by the identities of its token and user."""

    def find(connection: sa.Connection) -> Token | None:
        token = people.find_token_by_uuid(connection, token_uuid)
        if token is not None and _owner(connection, token).uuid != user_uuid:
            raise Unauthenticated(_UNKNOWN)
        return token

    with site.store.read() as connection:
        key = f"{token_uuid}/{user_uuid}"
        return _by_token(site, connection, key, origin, lambda: find(connection))


def recognise(site: Site, user: str, origin: str = "") -> Actor:
    """The actor of a user that a trusted proxy names, with all the user's roles."""
    with site.store.read() as connection:
        site.kept.look(connection)
        if people.find_user(connection, user) is None:
            raise Unauthenticated(f"The user {user} is not known here.")
        roles = tuple(each.role for each in people.assignments(connection, user))
        return _actor(site, connection, user, roles, origin, None)


def introduce(site: Site, user: str, roles: tuple[str, ...], origin: str = "") -> Actor:
    """The actor that a trusted proxy names, with the roles that it gives.

    The proxy speaks of the pools as they are called now.
    """
    with site.store.read() as connection:
        site.kept.look(connection)
        written = people.list_roles(connection, roles)
        present = PresentNames.of(site, connection, (), written)
        every = tuple(sorted({*roles, site.role_names.everybody}))
        return Actor(user, every, tuple(map(present.effective_role, written)), None, origin)


def new_secret(site: Site) -> str:
    """The secret of a new token."""
    return _PREFIX + site.ids.secret()


def hash_secret(secret: str) -> str:
    """What is kept of a secret. It has 256 random bits, so a fast hash cannot be reversed."""
    return hashlib.sha256(secret.encode()).hexdigest()


def change_access(connection: sa.Connection) -> None:
    """Begin a change of rights.

    It excludes all others until it is done, and open streams notice.
    """
    setting_store.raise_counter(connection, setting_store.ACCESS)


def access_version(site: Site) -> int:
    """How often rights have changed so far."""
    with site.store.read() as connection:
        return setting_store.counter(connection, setting_store.ACCESS)


def _valid(site: Site, token: Token | None) -> Token:
    if token is None:
        raise Unauthenticated(_UNKNOWN)
    _check_expiry(site, token.name, token.expires_ms)
    return token


def _check_expiry(site: Site, token: str | None, expires_ms: int) -> None:
    if expires_ms <= site.clock.now_ms():
        raise Unauthenticated(f"The token {token} has expired; make a new one.")


def _by_token(
    site: Site, connection: sa.Connection, key: str, origin: str, find: Callable[[], Token | None]
) -> Actor:
    """The actor of a token; read once for as long as no rights change."""

    def read() -> tuple[int, Actor]:
        token = _valid(site, find())
        actor = _actor(site, connection, token.user, token.roles, "", token.name)
        return token.expires_ms, actor

    expires_ms, actor = site.kept.actor(connection, key, read)
    _check_expiry(site, actor.token, expires_ms)
    return msgspec.structs.replace(actor, origin=origin)


def _owner(connection: sa.Connection, token: Token) -> User:
    user = people.find_user(connection, token.user)
    if user is None:
        raise Unauthenticated(_UNKNOWN)
    return user


def _actor(
    site: Site,
    connection: sa.Connection,
    user: str,
    roles: tuple[str, ...],
    origin: str,
    token: str | None,
) -> Actor:
    written = people.list_roles(connection, roles)
    present = PresentNames.of(site, connection, roles, written)
    every = tuple(sorted({*present.effective(roles), site.role_names.everybody}))
    return Actor(user, every, tuple(map(present.effective_role, written)), token, origin)


# Custom roles


def _role_allows(role: Role, action: Action, resource: str | None) -> bool:
    """Within one role, Deny beats Allow."""
    matching = [each.effect for each in role.statements if _matches(each, action, resource)]
    return bool(matching) and Effect.DENY not in matching


def _matches(statement: Statement, action: Action, resource: str | None) -> bool:
    kind, _, verb = action.value.partition(":")
    patterns = {f"{kind}:{verb}", f"{kind}:*", f"*:{verb}", "*:*"}
    if patterns.isdisjoint(statement.actions):
        return False
    if resource is None:
        return not statement.resources or "*" in statement.resources
    scope, _, rest = resource.partition("/")
    name, _, subpool = rest.partition("/")
    asked = {f"{scope}/{name}", f"{scope}/*", "*"}
    if subpool and statement.effect is Effect.DENY:
        inner = {each for each in statement.resources if each.startswith(f"{_POOL}{name}--")}
        asked |= inner if subpool == "*" else {f"{_POOL}{subpool}"}
    return not asked.isdisjoint(statement.resources)
