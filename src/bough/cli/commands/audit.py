"""`bough audit`: who changed what. Must not know any rule."""

from __future__ import annotations

from typing import Any

import click

from bough.cli.ruled import render_ruled, show_time
from bough.cli.server_commands import ServerGroup, client, count_option, echo, format_option


@click.group(cls=ServerGroup)
def audit() -> None:
    """Who changed what, when and from where. Nothing of it is ever deleted."""


@audit.command("list")
@click.option("--subject", "-s", help="Only of this: pool/team, workflow/hello-1...")
@click.option("--user", "-u", help="Only by this user.")
@click.option("--before", type=click.IntRange(1), help="Only before the entry of this number.")
@count_option
@format_option
def list_audit(
    subject: str | None, user: str | None, before: int | None, count: int, format_type: str
) -> None:
    """List changes, the latest first; JSON has what was before and after."""
    found = client().audit.list(subject=subject, user=user, before=before, limit=count)
    echo({"entries": found}, format_type, _render)


def _render(answer: Any) -> str:
    if not answer["entries"]:
        return "There are no entries."
    rows = [
        (
            each["number"],
            show_time(each["at"]),
            each["actor"],
            each["action"],
            each["subject"],
            each.get("origin"),
        )
        for each in answer["entries"]
    ]
    return render_ruled(("Number", "Time", "User", "Action", "Subject", "From"), rows)
