"""`bough user`: arguments of the commands on users."""

from __future__ import annotations

import click

from bough.cli.command import CommandGroup
from bough.cli.exit_codes import INTERRUPTED
from bough.cli.options import format_option
from bough.cli.output import echo, printable
from bough.cli.screen import utc_option
from bough.cli.server_commands import client
from bough.cli.text.people import render_user, render_users


@click.group(cls=CommandGroup)
def user() -> None:
    """Users and their roles, for administrators."""


@user.command("list")
@click.option("--prefix", default="", help="Only names that start with this.")
@click.option("--roles", "-r", multiple=True, help="Only with this role; repeatable.")
@click.option("--count", "-c", type=click.IntRange(1), help="How many to show (default: 100).")
@utc_option
@format_option
def list_users(prefix: str, roles: tuple[str, ...], count: int | None, format_type: str) -> None:
    """List users."""
    found = client().users.list(prefix=prefix, roles=roles, count=count)
    echo(found, format_type, render_users, key="users")


@user.command()
@click.argument("name")
@utc_option
@format_option
def get(name: str, format_type: str) -> None:
    """Show one user and the user's roles."""
    echo(client().users.get(name), format_type, render_user)


@user.command()
@click.argument("name")
@click.option("--roles", "-r", multiple=True, help="A role to grant; repeatable.")
@format_option
def create(name: str, roles: tuple[str, ...], format_type: str) -> None:
    """Create a user."""
    answer = client().users.create(name, roles)
    echo(answer, format_type, lambda _: f"User {name} is created.")


@user.command()
@click.argument("name")
@click.option("--add-roles", "-a", "add", multiple=True, help="A role to grant; repeatable.")
@click.option("--remove-roles", "-r", "remove", multiple=True, help="A role to revoke; repeatable.")
@utc_option
@format_option
def update(name: str, add: tuple[str, ...], remove: tuple[str, ...], format_type: str) -> None:
    """Grant and revoke roles of a user and of the user's tokens."""
    if not add and not remove:
        raise click.UsageError("Nothing to change: give --add-roles or --remove-roles.")
    echo(client().users.update(name, add=add, remove=remove), format_type, render_user)


@user.command()
@click.argument("name")
@click.option("--force", is_flag=True, help="Do not ask for confirmation.")
@format_option
@click.pass_context
def delete(context: click.Context, name: str, force: bool, format_type: str) -> None:
    """Delete a user, with tokens and credentials. Workflows keep the user's name."""
    if not force and not click.confirm(f"Delete user {printable(name)}?", err=True):
        click.echo(f"User {printable(name)} is not deleted.", err=True)
        context.exit(INTERRUPTED)
    answer = client().users.delete(name)
    echo(answer, format_type, lambda _: f"User {name} is deleted.")
