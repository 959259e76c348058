"""`bough login` and `bough logout`: who asks which server. Must not know what a token may do."""

from __future__ import annotations

import sys
from typing import Any

import click

from bough.cli.server_commands import ServerCommand, echo, format_option, read_text
from bough.errors import Unauthenticated

_UNKNOWN = "the token of the first administrator is in admin-token in the server's data folder"
_UNTRUSTED = "a server believes names only from where `bough serve --trust-proxy NETWORK` says so"


@click.command(cls=ServerCommand)
@click.argument("server", metavar="URL")
@click.option(
    "--method",
    type=click.Choice(["token", "dev"]),
    help="By token, or, where the server trusts you, by name alone.",
)
@click.option("--token", help="A personal access token; without it you are asked for one.")
@click.option("--token-file", metavar="FILE", help="A file with the token; - is standard input.")
@click.option("--username", help="Your name, for --method dev.")
@format_option
def login(
    server: str,
    method: str | None,
    token: str | None,
    token_file: str | None,
    username: str | None,
    format_type: str,
) -> None:
    """Log in to a server. Its address and the token are kept, readable by you alone."""
    from bough.client import Client, Login, store_login  # noqa: PLC0415  help needs no network

    if method == "dev":
        if not username:
            raise click.UsageError("--method dev needs --username.")
        client = Client(server, user=username)
    else:
        token = _secret(token, token_file)
        username = None
        client = Client(server, token)
    try:
        profile = client.profile.get()
    except Unauthenticated as error:
        error.hint = _UNTRUSTED if method == "dev" else _UNKNOWN
        raise
    path = store_login(Login(client.server, token, username))
    name = (profile.get("profile") or {}).get("username")
    answer: dict[str, Any] = {"server": client.server, "username": name, "file": path}
    echo(answer, format_type, lambda each: f"Logged in to {each['server']} as {each['username']}.")


@click.command(cls=ServerCommand)
@format_option
def logout(format_type: str) -> None:
    """Forget the stored login."""
    from bough.client import forget_login  # noqa: PLC0415  help needs no network

    done = forget_login()
    text = "Logged out." if done else "You were not logged in."
    echo({"logged_out": done}, format_type, lambda _: text)


def _secret(token: str | None, file: str | None) -> str:
    """The token that was given, or that is in the file, or that somebody types or sends."""
    if token and file:
        raise click.UsageError("--token and --token-file exclude each other.")
    if not token and file is None and sys.stdin.isatty():
        token = click.prompt("Token", hide_input=True)
    found = token or read_text(file or "-", dash=True).strip()
    if not found:
        raise click.UsageError("Say who you are: --token or --token-file.")
    return found
