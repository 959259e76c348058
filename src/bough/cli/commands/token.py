"""`bough token`: arguments of the commands on personal access tokens."""

from __future__ import annotations

import click

from bough.cli.command import CommandGroup
from bough.cli.options import format_option
from bough.cli.output import echo
from bough.cli.server_commands import client
from bough.cli.text.people import render_token_roles, render_tokens

user_option = click.option("--user", "-u", help="Tokens of another user; for administrators.")


@click.group(cls=CommandGroup)
def token() -> None:
    """Personal access tokens. A token can only have roles that you have."""


@token.command("set")
@click.argument("name")
@click.option("--expires-at", "-e", metavar="YYYY-MM-DD", help="Expiry date (default: in 30 days).")
@click.option("--description", "-d", help="What it is for.")
@user_option
@click.option(
    "--role", "--roles", "-r", "roles", multiple=True, help="Grant only this role; repeatable."
)
@format_option
def set_token(
    name: str,
    expires_at: str | None,
    description: str | None,
    user: str | None,
    roles: tuple[str, ...],
    format_type: str,
) -> None:
    """Create a token and print it. It is not shown again."""
    secret = client().tokens.create(
        name, user=user, expires_at=expires_at, description=description, roles=roles
    )
    echo({"token_name": name, "token": secret}, format_type, lambda _: secret)


@token.command()
@click.argument("name")
@user_option
@format_option
def delete(name: str, user: str | None, format_type: str) -> None:
    """Revoke a token."""
    answer = client().tokens.delete(name, user)
    echo(answer, format_type, lambda _: f"Token {name} is deleted.")


@token.command("list")
@user_option
@format_option
def list_tokens(user: str | None, format_type: str) -> None:
    """List tokens, without the secrets."""
    echo(client().tokens.list(user), format_type, render_tokens)


@token.command()
@click.argument("name")
@user_option
@format_option
def roles(name: str, user: str | None, format_type: str) -> None:
    """Show the roles of a token."""
    echo(client().tokens.roles(name, user), format_type, render_token_roles)
