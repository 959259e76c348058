"""`bough user`: arguments of the commands on users. Must not know any rule."""

from __future__ import annotations

from typing import Any

import click

from bough.cli.output import printable
from bough.cli.ruled import render_fields, render_ruled, show_time
from bough.cli.server_commands import INTERRUPTED, ServerGroup, client, echo, format_option


@click.group(cls=ServerGroup)
def user() -> None:
    """Users and their roles, for administrators."""


@user.command("list")
@click.option("--prefix", default="", help="Only names that begin so.")
@click.option("--roles", "-r", multiple=True, help="Only with this role; repeatable.")
@click.option("--count", "-c", type=click.IntRange(1), help="How many.")
@format_option
def list_users(prefix: str, roles: tuple[str, ...], count: int | None, format_type: str) -> None:
    """List users."""
    found = client().users.list(prefix=prefix, roles=roles, count=count)
    echo({"users": found}, format_type, _render_users)


@user.command()
@click.argument("name")
@format_option
def get(name: str, format_type: str) -> None:
    """Show one user with roles."""
    echo(client().users.get(name), format_type, _render_user)


@user.command()
@click.argument("name")
@click.option("--roles", "-r", multiple=True, help="A role to give; repeatable.")
@format_option
def create(name: str, roles: tuple[str, ...], format_type: str) -> None:
    """Add a user."""
    answer = client().users.create(name, roles)
    echo(answer, format_type, lambda _: f"User {name} is created.")


@user.command()
@click.argument("name")
@click.option("--add-roles", "-a", "add", multiple=True, help="A role to give; repeatable.")
@click.option("--remove-roles", "-r", "remove", multiple=True, help="A role to take; repeatable.")
@format_option
def update(name: str, add: tuple[str, ...], remove: tuple[str, ...], format_type: str) -> None:
    """Give roles to a user and take some away, from the user's tokens too."""
    if not add and not remove:
        raise click.UsageError("Say which roles: --add-roles or --remove-roles.")
    echo(client().users.update(name, add=add, remove=remove), format_type, _render_user)


@user.command()
@click.argument("name")
@click.option("--force", is_flag=True, help="Do not ask.")
@format_option
@click.pass_context
def delete(context: click.Context, name: str, force: bool, format_type: str) -> None:
    """Remove a user with roles, tokens and credentials. Workflows keep the name."""
    if not force and not click.confirm(f"Delete user {printable(name)}?", err=True):
        click.echo(f"User {printable(name)} is not deleted.", err=True)
        context.exit(INTERRUPTED)
    answer = client().users.delete(name)
    echo(answer, format_type, lambda _: f"User {name} is deleted.")


def _render_users(answer: Any) -> str:
    if not answer["users"]:
        return "No users found"
    rows = [(each["id"], show_time(each.get("created_at"))) for each in answer["users"]]
    return render_ruled(("User", "Created At"), rows)


def _render_user(answer: Any) -> str:
    head = render_fields(
        [
            ("User", answer["id"]),
            ("Created At", show_time(answer.get("created_at"))),
            ("Created By", answer.get("created_by")),
        ]
    )
    rows = [
        (each["role_name"], each.get("assigned_by"), show_time(each.get("assigned_at")))
        for each in answer.get("roles") or ()
    ]
    if not rows:
        return f"{head}\n\nNo roles."
    return f"{head}\n\n{render_ruled(('Role', 'Assigned By', 'Assigned At'), rows)}"
