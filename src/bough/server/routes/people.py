"""Users, their roles, their tokens, and logging in."""

from __future__ import annotations

from litestar import Response
from litestar.params import FromPath, FromQuery, JSONBody

from bough.api.people import (
    AssignedRole,
    ChangeRoles,
    CreateUser,
    GiveRole,
    LoginMethods,
    PassAnswer,
    RoleAssigned,
    RoleGiven,
    RoleName,
    RoleUser,
    RoleUsers,
    TokenLine,
    TokenRoles,
    TokenSecret,
    UserAnswer,
    UserLine,
    UserList,
    UserRoles,
)
from bough.control.people import tokens, users
from bough.control.people.users import UserView
from bough.model.access import Action, Token, User
from bough.server.route_declaration import Limit, Position, Visit, caller, json_text, route
from bough.server.values import expiry_text, read_date_ms, time_text

_USER = "/api/auth/user/{user:str}"
_OWN = "/api/auth/access_token"
_OTHERS = f"{_USER}/access_token"


# Logging in


@route("GET", "/api/auth/login", Action.AUTH_LOGIN)
def login(request: Visit) -> LoginMethods:
    """How to log in: with a personal token."""
    del request
    return LoginMethods(methods=["token"])


@route("POST", "/api/auth/jwt/access_token", Action.AUTH_LOGIN)
def make_pass(request: Visit, data: JSONBody[TokenSecret]) -> PassAnswer:
    """A short-lived token in exchange for a personal one."""
    made = request.app.state.authenticator.make_pass(data.token)
    return PassAnswer(made.text, made.expires_ms // 1_000)


# Users


@route("GET", "/api/auth/user", Action.USER_READ)
def list_users(
    request: Visit,
    count: Limit = 100,
    start_index: Position = 1,
    id_prefix: FromQuery[str] = "",
    roles: FromQuery[list[str] | None] = None,
) -> UserList:
    """Users, sorted by name; can be filtered by name prefix and by role."""
    site, actor = caller(request)
    found: dict[str, User] = {}
    for role in roles or (None,):
        for user in users.list_users(site, actor, id_prefix, role):
            found[user.name] = user
    ordered = [found[name] for name in sorted(found)]
    first = start_index - 1
    shown = [_user_line(user) for user in ordered[first : first + count]]
    return UserList(
        shown, total_results=len(ordered), start_index=start_index, items_per_page=count
    )


@route("POST", "/api/auth/user", Action.USER_UPDATE)
def create_user(request: Visit, data: JSONBody[CreateUser]) -> UserAnswer:
    """Add a user."""
    site, actor = caller(request)
    return _user(users.create_user(site, actor, data.id, data.roles))


@route("GET", _USER, Action.USER_READ)
def get_user(request: Visit, user: FromPath[str]) -> UserAnswer:
    """One user with the granted roles."""
    site, actor = caller(request)
    return _user(users.get_user(site, actor, user))


@route("PATCH", _USER, Action.USER_UPDATE)
def change_user(request: Visit, user: FromPath[str], data: JSONBody[ChangeRoles]) -> UserAnswer:
    """Grant and revoke roles of a user and of the user's tokens."""
    site, actor = caller(request)
    return _user(users.change_roles(site, actor, user, data.add, data.remove))


@route("DELETE", _USER, Action.USER_UPDATE)
def delete_user(request: Visit, user: FromPath[str]) -> None:
    """Delete a user, and the user's roles, tokens and credentials."""
    site, actor = caller(request)
    users.delete_user(site, actor, user)


@route("POST", f"{_USER}/roles", Action.USER_UPDATE)
def give_role(request: Visit, user: FromPath[str], data: JSONBody[RoleName]) -> RoleAssigned:
    """Grant a user a role."""
    site, actor = caller(request)
    roles = _user(users.change_roles(site, actor, user, add=(data.role_name,))).roles
    made = AssignedRole(data.role_name, actor.name, None)
    given = next((each for each in roles if each.role_name == data.role_name), made)
    return RoleAssigned(user, given.role_name, given.assigned_by, given.assigned_at)


@route("DELETE", f"{_USER}/roles/{{role:str}}", Action.USER_UPDATE)
def take_role(request: Visit, user: FromPath[str], role: FromPath[str]) -> UserAnswer:
    """Revoke a user's role."""
    site, actor = caller(request)
    return _user(users.change_roles(site, actor, user, remove=(role,)))


@route("GET", "/api/auth/roles/{role:str}/users", Action.USER_READ)
def users_of_role(request: Visit, role: FromPath[str]) -> RoleUsers:
    """The users that have a role."""
    site, actor = caller(request)
    held = users.list_holders(site, actor, role)
    return RoleUsers(
        role,
        [RoleUser(name, by.assigned_by, time_text(by.assigned_ms)) for name, by in held.items()],
    )


@route("POST", "/api/auth/roles/{role:str}/users", Action.USER_UPDATE)
def give_role_to(request: Visit, role: FromPath[str], data: JSONBody[GiveRole]) -> RoleGiven:
    """Grant a role to several users; also lists those that failed."""
    site, actor = caller(request)
    given = users.give_role(site, actor, role, data.user_ids)
    return RoleGiven(role, list(given.assigned), list(given.had), list(given.unknown))


@route("GET", f"{_USER}/roles", Action.USER_READ)
def roles_of_user(request: Visit, user: FromPath[str]) -> UserRoles:
    """The roles granted to a user."""
    site, actor = caller(request)
    return UserRoles(user, _user(users.get_user(site, actor, user)).roles)


# Tokens


@route("GET", _OWN, Action.TOKEN_READ)
def list_tokens(request: Visit) -> list[TokenLine]:
    """The caller's tokens, without their secrets."""
    site, actor = caller(request)
    return [_token(each) for each in tokens.list_tokens(site, actor)]


@route("POST", f"{_OWN}/{{token:str}}", Action.TOKEN_UPDATE, answer=str)
def create_token(
    request: Visit,
    token: FromPath[str],
    expires_at: FromQuery[str | None] = None,
    description: FromQuery[str] = "",
    roles: FromQuery[list[str] | None] = None,
) -> Response[bytes]:
    """Create a token; the answer is its secret, which is never shown again."""
    site, actor = caller(request)
    expires_ms = read_date_ms("expires_at", expires_at)
    made = tokens.create_token(
        site, actor, token, expires_ms=expires_ms, description=description, roles=roles
    )
    return json_text(made.secret)


@route("DELETE", f"{_OWN}/{{token:str}}", Action.TOKEN_UPDATE)
def delete_token(request: Visit, token: FromPath[str]) -> None:
    """Revoke one of the caller's tokens."""
    site, actor = caller(request)
    tokens.delete_token(site, actor, token)


@route("GET", f"{_OWN}/{{token:str}}/roles", Action.TOKEN_READ)
def token_roles(request: Visit, token: FromPath[str]) -> TokenRoles:
    """The roles of one of the caller's tokens."""
    site, actor = caller(request)
    found = tokens.get_token(site, actor, token)
    return _token_roles(found)


@route("GET", _OTHERS, Action.USER_READ)
def list_tokens_of(request: Visit, user: FromPath[str]) -> list[TokenLine]:
    """A user's tokens, without their secrets."""
    site, actor = caller(request)
    return [_token(each) for each in tokens.list_tokens(site, actor, user=user)]


@route("POST", f"{_OTHERS}/{{token:str}}", Action.USER_UPDATE, answer=str)
def create_token_of(
    request: Visit,
    user: FromPath[str],
    token: FromPath[str],
    expires_at: FromQuery[str | None] = None,
    description: FromQuery[str] = "",
    roles: FromQuery[list[str] | None] = None,
) -> Response[bytes]:
    """Create a token for a user; the answer is its secret, which is never shown again."""
    site, actor = caller(request)
    made = tokens.create_token(
        site,
        actor,
        token,
        user=user,
        expires_ms=read_date_ms("expires_at", expires_at),
        description=description,
        roles=roles,
    )
    return json_text(made.secret)


@route("GET", f"{_OTHERS}/{{token:str}}/roles", Action.USER_READ)
def token_roles_of(request: Visit, user: FromPath[str], token: FromPath[str]) -> TokenRoles:
    """The roles of a user's token."""
    site, actor = caller(request)
    found = tokens.get_token(site, actor, token, user=user)
    return _token_roles(found)


@route("DELETE", f"{_OTHERS}/{{token:str}}", Action.USER_UPDATE)
def delete_token_of(request: Visit, user: FromPath[str], token: FromPath[str]) -> None:
    """Revoke a user's token."""
    site, actor = caller(request)
    tokens.delete_token(site, actor, token, user=user)


def _token_roles(token: Token) -> TokenRoles:
    """A token has its roles since it was created, from its owner."""
    at = time_text(token.created_ms)
    roles = [AssignedRole(role, token.user, at) for role in token.roles]
    return TokenRoles(token.name, token.user, roles)


def _user_line(user: User) -> UserLine:
    return UserLine(user.name, time_text(user.created_ms), user.created_by)


def _user(view: UserView) -> UserAnswer:
    return UserAnswer(
        id=view.user.name,
        created_at=time_text(view.user.created_ms),
        created_by=view.user.created_by,
        roles=[
            AssignedRole(each.role, each.assigned_by, time_text(each.assigned_ms))
            for each in view.roles
        ],
    )


def _token(token: Token) -> TokenLine:
    return TokenLine(
        token_name=token.name,
        user_name=token.user,
        description=token.description,
        expires_at=expiry_text(token.expires_ms),
        created_at=time_text(token.created_ms),
        roles=list(token.roles),
    )


HANDLERS = (
    login,
    make_pass,
    list_users,
    create_user,
    get_user,
    change_user,
    delete_user,
    give_role,
    take_role,
    users_of_role,
    give_role_to,
    roles_of_user,
    list_tokens,
    create_token,
    delete_token,
    token_roles,
    list_tokens_of,
    create_token_of,
    token_roles_of,
    delete_token_of,
)
