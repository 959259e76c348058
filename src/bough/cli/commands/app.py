"""`bough app`: arguments of the commands on apps."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from bough.cli.command import CommandGroup
from bough.cli.commands.workflow_submit import Order, env_option, send, spec_options, warn
from bough.cli.exit_codes import INTERRUPTED
from bough.cli.options import PRIORITIES, count_option, format_option, read_pairs, read_text
from bough.cli.output import echo, printable
from bough.cli.screen import utc_option
from bough.cli.server_commands import choose_pool, client
from bough.cli.text.apps import render_app, render_apps, render_parameters
from bough.cli.text.workflows import render_submitted
from bough.errors import Invalid

if TYPE_CHECKING:
    from bough.client.addresses import Parameter

#: The most digits of a version number.
_LONGEST_NUMBER = 15
order_option = click.option(
    "--order",
    "-o",
    type=click.Choice(["asc", "desc"]),
    default="asc",
    show_default=True,
    help="Newest last (asc) or newest first (desc).",
)
version_argument = click.argument("name", metavar="NAME[:VERSION]")
file_option = click.option(
    "--file",
    "-f",
    type=click.Path(allow_dash=True),
    help="The workflow file; - is standard input (default: your editor).",
)


@click.group(cls=CommandGroup)
def app() -> None:
    """Apps: workflow files on the server that everyone can submit.

    An app has numbered versions. NAME means the latest, NAME:VERSION a specific one. Every user
    can submit an app; only its owner and administrators can change it.
    """


@app.command()
@click.argument("name")
@click.option("--description", "-d", required=True, help="What the app does, in a sentence.")
@file_option
@format_option
def create(name: str, description: str, file: str | None, format_type: str) -> None:
    """Create an app from a workflow file."""
    text = _edited(None) if file is None else read_text(file, dash=True)
    answer = client().apps.create(name, description, text)
    echo(answer, format_type, lambda _: f"App {printable(name)} is created.")


@app.command()
@version_argument
@file_option
@format_option
def update(name: str, file: str | None, format_type: str) -> None:
    """Add a version to an app. Without --file, edit VERSION (default: the latest)."""
    asked, (plain, version) = client(), split_version(name)
    text = _edited(asked.apps.text(plain, version)) if file is None else read_text(file, dash=True)
    answer = asked.apps.update(plain, text)
    echo(answer, format_type, lambda made: f"App {printable(plain)} has version {made.version}.")


@app.command()
@version_argument
@count_option
@order_option
@utc_option
@format_option
def info(name: str, count: int, order: str, format_type: str) -> None:
    """Show an app and its versions."""
    plain, version = split_version(name)
    found = client().apps.get(plain, version, count)
    if order == "asc":
        found.versions.reverse()
    echo(found, format_type, render_app)


@app.command()
@version_argument
@format_option
def show(name: str, format_type: str) -> None:
    """Show what an app does, and its template variables."""
    asked, (plain, version) = client(), split_version(name)
    found = asked.apps.get(plain, version, 1)
    text = asked.apps.text(plain, version)
    echo(found, format_type, lambda each: render_parameters(each, text))


@app.command()
@version_argument
@format_option
def spec(name: str, format_type: str) -> None:
    """Print the workflow file of an app."""
    plain, version = split_version(name)
    text = client().apps.text(plain, version)
    if format_type == "json":
        echo({"spec": text}, format_type, str)
    else:
        click.echo(text.rstrip("\n"))


@app.command("list")
@click.option("--name", "-n", default="", help="Only names that contain this.")
@click.option("--user", "-u", "users", multiple=True, help="Only apps of this user; repeatable.")
@click.option("--all-users", "-a", is_flag=True, help="Apps of all users.")
@count_option
@order_option
@utc_option
@format_option
def list_apps(
    name: str, users: tuple[str, ...], all_users: bool, count: int, order: str, format_type: str
) -> None:
    """List the newest apps (default: only yours).

    Yours are those that you created, changed, or submitted a workflow from.
    """
    if users and all_users:
        raise click.UsageError("--user and --all-users cannot be used together.")
    found = client().apps.list(name=name, users=users, all_users=all_users, count=count)
    if order == "asc":
        found.reverse()
    echo(found, format_type, render_apps, key="apps")


@app.command()
@version_argument
@click.option("--all", "-a", "everything", is_flag=True, help="Delete all versions.")
@click.option("--force", "-f", is_flag=True, help="Do not ask for confirmation.")
@format_option
@click.pass_context
def delete(
    context: click.Context, name: str, everything: bool, force: bool, format_type: str
) -> None:
    """Delete a version of an app, or all versions. Workflows submitted from it stay."""
    plain, version = split_version(name)
    if (version is None) is not everything:
        raise click.UsageError("Name a version, as in NAME:3, or give --all.")
    what = f"all versions of app {plain}" if everything else f"version {version} of app {plain}"
    if not force and not click.confirm(f"Delete {printable(what)}?", err=True):
        context.exit(INTERRUPTED)
    answer = client().apps.delete(plain, version)
    gone = ", ".join(map(str, answer.versions)) or "none"
    echo(answer, format_type, lambda _: f"Deleted versions of app {printable(plain)}: {gone}.")


@app.command()
@click.argument("name")
@click.argument("new_name", metavar="NEW-NAME")
@click.option("--force", "-f", is_flag=True, help="Do not ask for confirmation.")
@format_option
@click.pass_context
def rename(context: click.Context, name: str, new_name: str, force: bool, format_type: str) -> None:
    """Rename an app."""
    question = f"Rename app {printable(name)} to {printable(new_name)}?"
    if not force and not click.confirm(question, err=True):
        context.exit(INTERRUPTED)
    answer = {"name": client().apps.rename(name, new_name)}
    told = f"App {printable(name)} is called {printable(new_name)} now."
    echo(answer, format_type, lambda _: told)


@app.command()
@version_argument
@spec_options
@env_option
@click.option(
    "--local-path",
    "-l",
    "folder",
    type=click.Path(exists=True, file_okay=False),
    default=".",
    help="The folder of the local files that the workflow uses (default: the current folder).",
)
@click.option("--priority", type=PRIORITIES, help="HIGH, NORMAL (default) or LOW.")
@click.option("--dry-run", is_flag=True, help="Print the rendered spec, and do not submit it.")
@format_option
def submit(
    name: str,
    pool: str | None,
    priority: str | None,
    folder: str,
    dry_run: bool,
    env: tuple[str, ...],
    format_type: str,
    **values: tuple[str, ...],
) -> None:
    """Submit a workflow from an app."""
    asked, (plain, version) = client(), split_version(name)
    found = asked.apps.get(plain, version, 1)
    number = version or found.latest_version
    text = asked.apps.text(plain, number)
    read_pairs("--set-env", env)
    query: dict[str, Parameter] = {"env_vars": list(env)}
    if dry_run:
        query["dry_run"] = True
    elif number is not None:
        query |= {"app_uuid": found.uuid, "app_version": number}
    order = Order(choose_pool(asked, pool), priority, query, **values)
    answer = send(asked, order, os.path.join(folder, plain), text)
    if dry_run:
        echo(answer, format_type, lambda each: (each.spec or "").rstrip("\n"))
        return
    echo(answer, format_type, render_submitted)
    warn(answer, priority, to_errors=format_type == "json")


def split_version(name: str) -> tuple[str, int | None]:
    """Split `NAME:VERSION`; a name alone has no version."""
    plain, colon, number = name.partition(":")
    if not colon:
        return name, None
    is_number = number.isascii() and number.isdigit() and len(number) <= _LONGEST_NUMBER
    if not is_number or int(number) == 0:
        raise Invalid(f"{printable(name)}: a version is a number from 1 on, as in {plain}:3.")
    return plain, int(number)


def _edited(text: str | None) -> str:
    """Let the user edit a text in their editor."""
    changed = click.edit(text, extension=".yaml")
    if changed is None or changed == text:
        raise Invalid("Nothing was changed in the editor, so nothing is sent.")
    return changed
