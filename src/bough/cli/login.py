"""`bough login` and `bough logout`: who asks which server. Must not know what a token may do."""

from __future__ import annotations

from typing import Any

import click

from bough.cli.remote import ServerCommand, echo, format_option
from bough.errors import Invalid


@click.command(cls=ServerCommand)
@click.argument("server", metavar="URL")
@click.option(
    "--method",
    type=click.Choice(["token", "dev"]),
    help="By token, or, where the server trusts you, by name alone.",
)
@click.option("--token", help="A personal access token; without it you are asked for one.")
@click.option("--token-file", metavar="FILE", help="A file that has the token.")
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
    """Log in: keep the address of a server and a token, readable by you alone."""
    from bough.client import Client, Login, store_login  # noqa: PLC0415  help needs no network

    if method == "dev":
        if not username:
            raise click.UsageError("--method dev needs --username.")
        client = Client(server, user=username)
    else:
        token = token or _read(token_file) or click.prompt("Token", hide_input=True)
        username = None
        client = Client(server, token)
    profile = client.profile.get()
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


def _read(file: str | None) -> str | None:
    if file is None:
        return None
    try:
        with open(file, encoding="utf-8") as stream:
            return stream.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{file} cannot be read: {error}.") from None
