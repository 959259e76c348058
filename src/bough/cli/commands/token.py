"""`bough token`: arguments of the commands on personal access tokens. Must not know any rule."""

from __future__ import annotations

from typing import Any

import click

from bough.cli.ruled import render_fields, render_ruled
from bough.cli.server_commands import ServerGroup, client, echo, format_option

user_option = click.option("--user", "-u", help="Another user's, for administrators.")


@click.group(cls=ServerGroup)
def token() -> None:
    """Personal access tokens, with no more than your roles."""


@token.command("set")
@click.argument("name")
@click.option(
    "--expires-at", "-e", metavar="YYYY-MM-DD", help="The day it ends; in a month if not."
)
@click.option("--description", "-d", help="What it is for.")
@user_option
@click.option("--role", "--roles", "-r", "roles", multiple=True, help="Only this role; repeatable.")
@format_option
def set_token(name: str, format_type: str, **fields: Any) -> None:
    """Make a token and print it; it is not shown again."""
    secret = client().tokens.create(name, **fields)
    echo({"token_name": name, "token": secret}, format_type, lambda _: secret)


@token.command()
@click.argument("name")
@user_option
@format_option
def delete(name: str, user: str | None, format_type: str) -> None:
    """Make a token worthless at once."""
    answer = client().tokens.delete(name, user)
    echo(answer, format_type, lambda _: f"Token {name} is deleted.")


@token.command("list")
@user_option
@format_option
def list_tokens(user: str | None, format_type: str) -> None:
    """List tokens, without what is secret."""
    echo(client().tokens.list(user), format_type, _render)


@token.command()
@click.argument("name")
@user_option
@format_option
def roles(name: str, user: str | None, format_type: str) -> None:
    """Show what a token may do."""
    echo(client().tokens.roles(name, user), format_type, _render_roles)


def _render(tokens: Any) -> str:
    if not tokens:
        return "There are no tokens."
    from datetime import UTC, datetime  # noqa: PLC0415  most commands need no clock

    today = datetime.now(UTC).date().isoformat()
    rows = [
        (
            each["token_name"],
            each.get("description"),
            each["expires_at"][:10],
            "Expired" if each["expires_at"][:10] <= today else "Active",
            each.get("roles"),
        )
        for each in tokens
    ]
    return render_ruled(("Name", "Description", "Expires At", "Status", "Roles"), rows)


def _render_roles(answer: Any) -> str:
    return render_fields(
        [
            ("Token", answer.get("token_name")),
            ("User", answer.get("user_name")),
            ("Roles", [each["role_name"] for each in answer.get("roles") or ()]),
        ]
    )
