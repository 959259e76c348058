"""The server and the token to use: from the environment, or from what `login` stored."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import NamedTuple

from bough.errors import Invalid, Unavailable

SERVER = "BOUGH_SERVER"
TOKEN = "BOUGH_TOKEN"  # noqa: S105 - the name of a variable


class Login(NamedTuple):
    """A server, and how to be known there."""

    server: str
    token: str | None = None
    #: Only for servers that trust the name alone.
    user: str | None = None


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
    if stored is not None and stored.server == server.rstrip("/"):
        return Login(server, token or stored.token, None if token else stored.user)
    return Login(server, token)


def store_login(login: Login) -> str:
    """Keep a login for later, where only its owner can read it; where that is."""
    path = login_path()
    temporary = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(login._asdict(), file, indent=2)
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


def _read() -> Login | None:
    path = login_path()
    try:
        with open(path, encoding="utf-8") as file:
            fields = json.load(file)
        return Login(str(fields["server"]), fields.get("token"), fields.get("user"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Invalid(
            f"What `login` stored in {path} cannot be read: {error}.",
            hint="remove the file and log in again",
        ) from None
