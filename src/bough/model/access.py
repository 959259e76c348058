"""Actors, actions and what each role allows; profiles and credentials of users. All as data.

A resource is `pool/{pool}` with the name of a top-level pool: what concerns a subpool is asked of
its pool, so no role can be about a subpool alone.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Action(StrEnum):
    """Everything that a role can allow. The part before the colon is the kind."""

    WORKFLOW_CREATE = "workflow:Create"
    WORKFLOW_READ = "workflow:Read"
    WORKFLOW_CANCEL = "workflow:Cancel"
    WORKFLOW_UPDATE = "workflow:Update"
    #: Into tasks that run: one's own, for admins of the pool all.
    WORKFLOW_EXEC = "workflow:Exec"
    WORKFLOW_PORT_FORWARD = "workflow:PortForward"
    WORKFLOW_RSYNC = "workflow:Rsync"
    WORKFLOW_LIST = "workflow:List"
    TASK_LIST = "task:List"
    #: Workflow files that are kept on the server; changing another user's is for administrators.
    APP_READ = "app:Read"
    APP_CREATE = "app:Create"
    APP_UPDATE = "app:Update"
    APP_DELETE = "app:Delete"
    #: The data of a pool, `bough://POOL/path`.
    DATA_READ = "data:Read"
    DATA_WRITE = "data:Write"
    POOL_LIST = "pool:List"
    POOL_READ = "pool:Read"
    POOL_CREATE = "pool:Create"
    POOL_UPDATE = "pool:Update"
    POOL_DELETE = "pool:Delete"
    SUBPOOL_READ = "subpool:Read"
    SUBPOOL_CREATE = "subpool:Create"
    SUBPOOL_UPDATE = "subpool:Update"
    SUBPOOL_DELETE = "subpool:Delete"
    COHORT_READ = "cohort:Read"
    COHORT_UPDATE = "cohort:Update"
    QUEUE_LIST = "queue:List"
    RESOURCE_LIST = "resources:List"
    NODE_UPDATE = "node:Update"
    CONFIG_READ = "config:Read"
    CONFIG_UPDATE = "config:Update"
    PROFILE_READ = "profile:Read"
    PROFILE_UPDATE = "profile:Update"
    CREDENTIAL_READ = "credentials:Read"
    CREDENTIAL_UPDATE = "credentials:Update"
    #: One's own tokens.
    TOKEN_READ = "token:Read"  # noqa: S105 - names an action
    TOKEN_UPDATE = "token:Update"  # noqa: S105 - names an action
    #: Other people, their roles and their tokens.
    USER_READ = "user:Read"
    USER_UPDATE = "user:Update"
    ROLE_READ = "role:Read"
    ROLE_UPDATE = "role:Update"
    EVENT_READ = "events:Read"
    AUDIT_READ = "audit:Read"
    METRICS_READ = "metrics:Read"
    #: Finished workflows of all pools, to be kept elsewhere.
    HISTORY_READ = "history:Read"
    HISTORY_DROP = "history:Drop"
    #: Open to all, also without authentication.
    SYSTEM_VERSION = "system:Version"
    SYSTEM_HEALTH = "system:Health"
    AUTH_LOGIN = "auth:Login"


#: What needs no role at all.
PUBLIC_ACTIONS = frozenset({Action.SYSTEM_VERSION, Action.SYSTEM_HEALTH, Action.AUTH_LOGIN})
#: What `osmo-{pool}-user` may do with the pool and its subpools.
POOL_USER_ACTIONS = frozenset(
    {
        Action.WORKFLOW_CREATE,
        Action.WORKFLOW_READ,
        Action.WORKFLOW_CANCEL,
        Action.WORKFLOW_UPDATE,
        Action.DATA_READ,
        Action.DATA_WRITE,
        Action.WORKFLOW_EXEC,
        Action.WORKFLOW_PORT_FORWARD,
        Action.WORKFLOW_RSYNC,
        Action.POOL_READ,
        Action.SUBPOOL_READ,
    }
)
#: What `osmo-{pool}-admin` may do: the same, and divide the pool.
POOL_ADMIN_ACTIONS = POOL_USER_ACTIONS | {
    Action.SUBPOOL_CREATE,
    Action.SUBPOOL_UPDATE,
    Action.SUBPOOL_DELETE,
}
#: What every authenticated user may do: see what is public, and manage one's own things.
DEFAULT_ACTIONS = frozenset(
    {
        Action.POOL_LIST,
        Action.WORKFLOW_LIST,
        Action.TASK_LIST,
        Action.APP_READ,
        Action.APP_CREATE,
        Action.APP_UPDATE,
        Action.APP_DELETE,
        Action.RESOURCE_LIST,
        Action.PROFILE_READ,
        Action.PROFILE_UPDATE,
        Action.CREDENTIAL_READ,
        Action.CREDENTIAL_UPDATE,
        Action.TOKEN_READ,
        Action.TOKEN_UPDATE,
        Action.EVENT_READ,
    }
)


class Effect(StrEnum):
    """What a statement says. Within one role, Deny beats Allow."""

    ALLOW = "Allow"
    DENY = "Deny"


class Statement(msgspec.Struct, frozen=True):
    """One line of a role that an administrator wrote."""

    effect: Effect
    #: `workflow:Create`, `workflow:*`, `*:Read` or `*:*`.
    actions: tuple[str, ...]
    #: `pool/team`, `pool/*` or `*`; nothing: only what is asked about no pool.
    resources: tuple[str, ...] = ()


class Role(msgspec.Struct, frozen=True):
    """A named set of permissions."""

    name: str
    description: str = ""
    statements: tuple[Statement, ...] = ()
    #: It comes with the product and cannot be changed.
    immutable: bool = False


class RoleNames(msgspec.Struct, frozen=True):
    """How the roles that come with the product are called."""

    prefix: str = "osmo"

    @property
    def admin(self) -> str:
        """May do everything."""
        return f"{self.prefix}-admin"

    @property
    def everybody(self) -> str:
        """Every authenticated user has it."""
        return f"{self.prefix}-default"

    def pool_admin(self, pool: str) -> str:
        """Divides a pool."""
        return f"{self.prefix}-{pool}-admin"

    def pool_user(self, pool: str) -> str:
        """Submits to a pool and all its subpools."""
        return f"{self.prefix}-{pool}-user"


class Actor(msgspec.Struct, frozen=True):
    """The sender of a request, as authenticated."""

    name: str
    #: Every role by its name, sorted.
    roles: tuple[str, ...] = ()
    #: Those of them that an administrator wrote.
    written: tuple[Role, ...] = ()
    #: The token of the request; `None`: it was authenticated otherwise.
    token: str | None = None
    #: The address that the request came from.
    origin: str = ""


#: A request without authentication.
ANONYMOUS = Actor("")


class User(msgspec.Struct, frozen=True):
    """A person or program that may be given roles."""

    name: str
    created_ms: int
    created_by: str
    #: Never given again, unlike the name.
    uuid: str = ""


class RoleAssignment(msgspec.Struct, frozen=True):
    """A role that a user was given."""

    role: str
    assigned_by: str
    assigned_ms: int


class Token(msgspec.Struct, frozen=True):
    """A personal access token, without its secret, of which only a hash is kept."""

    user: str
    name: str
    description: str
    #: When it expires.
    expires_ms: int
    created_ms: int
    #: A part of the user's; it loses what the user loses.
    roles: tuple[str, ...] = ()
    #: Never given again, unlike the name.
    uuid: str = ""


class Profile(msgspec.Struct, frozen=True):
    """What a user has chosen."""

    user: str
    pool: str | None = None
    email_notification: bool = False
    slack_notification: bool = False
    webhook_notification: bool = False


class CredentialType(StrEnum):
    """What a credential is for."""

    REGISTRY = "REGISTRY"
    DATA = "DATA"
    GENERIC = "GENERIC"


class Credential(msgspec.Struct, frozen=True):
    """A secret that a user's workflows may use; what is secret about it is never shown."""

    user: str
    name: str
    type: CredentialType
    #: The names of its parts.
    keys: tuple[str, ...] = ()
    created_ms: int = 0
    #: What it opens, where that is a part of it and no secret: a registry, or an address of data.
    profile: str | None = None
