"""`bough login` and `bough logout`: the server to ask, and the token for it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from bough.cli.command import Command
from bough.cli.options import format_option, read_text
from bough.cli.output import echo
from bough.errors import Unauthenticated

if TYPE_CHECKING:
    from bough.client import Client, KnownServer

_UNKNOWN = "the token of the first administrator is in admin-token in the server's data folder"
_UNTRUSTED = "a server trusts names only from networks of `bough serve --trust-proxy NETWORK`"


@click.command(cls=Command)
@click.argument("server", metavar="URL")
@click.option(
    "--method",
    type=click.Choice(["token", "dev"]),
    help="With a token, or by name only if the server trusts your address.",
)
@click.option("--token", help="A personal access token (default: prompt for it).")
@click.option("--token-file", metavar="FILE", help="A file with the token; - is standard input.")
@click.option("--username", help="Your user name, for --method dev.")
@click.option(
    "--server-key",
    metavar="KEY",
    help="The expected key of the server, from server-key.pub in its data folder "
    "(default: the key from your last login; any key at the first login).",
)
@click.option(
    "--new-server",
    is_flag=True,
    help="Log in even if the server's key has changed since your last login.",
)
@format_option
def login(
    server: str,
    method: str | None,
    token: str | None,
    token_file: str | None,
    username: str | None,
    format_type: str,
    **expected: Any,
) -> None:
    """Log in to a server. The login is stored in a file that only you can read."""
    from bough.client import Client, Login, store_login  # noqa: PLC0415  help needs no network

    if method == "dev":
        if not username:
            raise click.UsageError("--method dev needs --username.")
        client = Client(server, user=username)
    else:
        token = _secret(token, token_file)
        username = None
        client = Client(server, token)
    known = _meet(client, **expected)
    try:
        profile = client.profile.get()
    except Unauthenticated as error:
        error.hint = _UNTRUSTED if method == "dev" else _UNKNOWN
        raise
    path = store_login(Login(client.server, token, username, known))
    name = profile.profile.username
    key = None if known is None else known.key
    answer = {"server": client.server, "username": name, "file": path, "server_key": key}
    echo(answer, format_type, lambda each: f"Logged in to {each['server']} as {each['username']}.")


@click.command(cls=Command)
@format_option
def logout(format_type: str) -> None:
    """Log out and delete the stored login."""
    from bough.client import forget_login  # noqa: PLC0415  help needs no network

    done = forget_login()
    text = "Logged out." if done else "You were not logged in."
    echo({"logged_out": done}, format_type, lambda _: text)


def _meet(client: Client, server_key: str | None, new_server: bool) -> KnownServer | None:
    """What to remember of the server, found out before anything is sent to it."""
    from bough.client import KnownServer, check, find_known, is_key  # noqa: PLC0415

    if server_key is not None and not is_key(server_key):
        raise click.UsageError(f"--server-key must be 64 hexadecimal digits, not {server_key!r}.")
    found = client.learn_server()
    expected = KnownServer(server_key) if server_key else None
    if expected is None and not new_server:
        expected = find_known(client.server)
    if expected is not None:
        check(client.server, expected, found)
    return found


def _secret(token: str | None, file: str | None) -> str:
    """The token that was given, or that is in the file, or that is typed or piped in."""
    if token and file:
        raise click.UsageError("--token and --token-file cannot be used together.")
    if not token and file is None and sys.stdin.isatty():
        token = click.prompt("Token", hide_input=True)
    found = token or read_text(file or "-", dash=True).strip()
    if not found:
        raise click.UsageError("A token is missing: give --token or --token-file.")
    return found
