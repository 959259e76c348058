"""The server and the token to use: from the environment, or from what `login` stored."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import NamedTuple

from bough.client.server_proof import KnownServer, is_key
from bough.errors import Invalid, Unavailable

SERVER = "BOUGH_SERVER"
SERVER_KEY = "BOUGH_SERVER_KEY"
TOKEN = "BOUGH_TOKEN"  # noqa: S105 - the name of a variable


class Login(NamedTuple):
    """A server, and how to authenticate there."""

    server: str
    token: str | None = None
    #: Only for servers that trust the name alone.
    user: str | None = None
    #: What the server has to prove before it is sent the token.
    known: KnownServer | None = None


def find_login() -> Login:
    """The login to use. A stored token is sent only to the server that it was stored for."""
    stored = _read()
    server = os.environ.get(SERVER) or (stored.server if stored else "")
    token = os.environ.get(TOKEN)
    if not server:
        raise Unavailable(
            "No server is known.",
            hint=f"log in with `bough login URL`, or set {SERVER}; `bough serve` starts a server",
        )
    key = os.environ.get(SERVER_KEY)
    if key and not is_key(key):
        raise Invalid(f"{SERVER_KEY} must be 64 hexadecimal digits, not {key[:80]!r}.")
    known = KnownServer(key) if key else None
    if stored is not None and stored.server == server.rstrip("/"):
        user = None if token else stored.user
        return Login(server, token or stored.token, user, known or stored.known)
    return Login(server, token, known=known)


def find_known(server: str) -> KnownServer | None:
    """What is known of a server since an earlier login."""
    stored = _read()
    return stored.known if stored is not None and stored.server == server else None


def is_stored(login: Login) -> bool:
    """Whether it is to the server that `login` stored."""
    stored = _read()
    return stored is not None and stored.server == login.server.rstrip("/")


def keep_known(known: KnownServer) -> None:
    """Remember a server that was logged in to before its key was asked for."""
    stored = _read()
    if stored is not None:
        # Where it cannot be kept it is asked for again.
        with suppress(Invalid):
            store_login(stored._replace(known=known))


def store_login(login: Login) -> str:
    """Keep a login for later, where only its owner can read it; where that is."""
    import json  # noqa: PLC0415  only where something is stored

    path = login_path()
    temporary = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(_fields(login), file, indent=2)
            file.write("\n")
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        raise Invalid(
            f"The login cannot be kept in {path}: {error.strerror}.",
            hint=f"set {SERVER} and {TOKEN} instead, or XDG_CONFIG_HOME to another folder",
        ) from None
    return path


def forget_login() -> bool:
    """Remove what was stored, and say whether there was something."""
    try:
        os.unlink(login_path())
    except FileNotFoundError:
        return False
    except OSError as error:
        raise Invalid(f"{login_path()} cannot be removed: {error.strerror}.") from None
    return True


def login_path() -> str:
    """The file that a login is stored in."""
    folder = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(folder, "bough", "login.json")


def _fields(login: Login) -> dict[str, str | bool | None]:
    fields: dict[str, str | bool | None] = {
        "server": login.server,
        "token": login.token,
        "user": login.user,
    }
    if login.known is not None:
        fields |= {"server_key": login.known.key, "direct": login.known.direct}
    return fields


def _read() -> Login | None:
    path = login_path()
    try:
        with open(path, encoding="utf-8") as file:
            import json  # noqa: PLC0415  only where something is stored

            fields = json.load(file)
        key = fields.get("server_key")
        known = KnownServer(str(key), bool(fields.get("direct"))) if key else None
        return Login(str(fields["server"]), fields.get("token"), fields.get("user"), known)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Invalid(
            f"What `login` stored in {path} cannot be read: {error}.",
            hint="remove the file and log in again",
        ) from None
