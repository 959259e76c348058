"""`bough audit`: who changed what."""

from __future__ import annotations

import click

from bough.cli.command import CommandGroup
from bough.cli.options import count_option, format_option
from bough.cli.output import echo
from bough.cli.screen import utc_option
from bough.cli.server_commands import client
from bough.cli.text.change_history import render_audit


@click.group(cls=CommandGroup)
def audit() -> None:
    """The audit log: who changed what, when and from where. Entries are never deleted."""


@audit.command("list")
@click.option(
    "--subject", "-s", help="Only changes to this object, like pool/team or workflow/hello-1."
)
@click.option("--user", "-u", help="Only changes by this user.")
@click.option("--before", type=click.IntRange(1), help="Only entries with a lower number.")
@count_option
@utc_option
@format_option
def list_audit(
    subject: str | None, user: str | None, before: int | None, count: int, format_type: str
) -> None:
    """List changes, newest first. JSON also has the values before and after."""
    found = client().audit.list(subject=subject, user=user, before=before, limit=count)
    echo(found, format_type, render_audit, key="entries")
