"""`bough profile`: arguments of the commands on one's own settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bough.cli.command import CommandGroup
from bough.cli.options import format_option
from bough.cli.output import echo
from bough.cli.screen import utc_option
from bough.cli.server_commands import client
from bough.cli.text.people import render_profile

if TYPE_CHECKING:
    from bough.api.common import Json


@click.group(cls=CommandGroup)
def profile() -> None:
    """Your settings, pools and roles."""


@profile.command("list")
@utc_option
@format_option
def list_profile(format_type: str) -> None:
    """Show your settings, the pools you may submit to, and your roles."""
    echo(client().profile.get(), format_type, render_profile)


@profile.command("set")
@click.argument("setting", type=click.Choice(["pool", "notifications"]))
@click.argument("value")
@click.argument("switch", required=False, type=click.Choice(["true", "false"]))
@format_option
def set_profile(setting: str, value: str, switch: str | None, format_type: str) -> None:
    """Change a setting.

    `pool NAME` sets your default pool. `notifications email|slack|webhook [true|false]` turns
    notifications on or off: you get one when your workflow ends, is preempted, or leaves a drained
    node. Store a webhook's address as `url` in your credential `slack-webhook` or `webhook`.
    """
    if setting == "pool":
        if switch is not None:
            raise click.UsageError("A pool is a name alone.")
        changes: dict[str, Json] = {"pool": value or None}
    elif value in ("email", "slack", "webhook"):
        changes = {f"{value}_notification": switch != "false"}
    else:
        raise click.UsageError(f"Notifications come by email, slack or webhook, not {value!r}.")
    answer = client().profile.set(changes)
    echo(answer, format_type, lambda _: "Your profile is updated.")
