"""`bough profile`: arguments of the commands on one's own settings. Must not know any rule."""

from __future__ import annotations

from typing import Any

import click

from bough.cli.output import printable
from bough.cli.ruled import NOTHING, cell_text, show_time
from bough.cli.server_commands import ServerGroup, client, echo, format_option


@click.group(cls=ServerGroup)
def profile() -> None:
    """Your settings, pools and roles."""


@profile.command("list")
@format_option
def list_profile(format_type: str) -> None:
    """Show your settings, the pools you may submit to, and your roles."""
    echo(client().profile.get(), format_type, _render, indent=4)


@profile.command("set")
@click.argument("setting", type=click.Choice(["pool", "notifications"]))
@click.argument("value")
@click.argument("switch", required=False, type=click.Choice(["true", "false"]))
@format_option
def set_profile(setting: str, value: str, switch: str | None, format_type: str) -> None:
    """Change a setting. It is `pool NAME`, or `notifications email|slack [true|false]`."""
    if setting == "pool":
        if switch is not None:
            raise click.UsageError("A pool is a name alone.")
        changes: dict[str, Any] = {"pool": value or None}
    elif value in ("email", "slack"):
        changes = {f"{value}_notification": switch != "false"}
    else:
        raise click.UsageError(f"Notifications come by email or slack, not {value!r}.")
    answer = client().profile.set(changes)
    echo(answer, format_type, lambda _: "Your profile is updated.", indent=4)


def _render(answer: Any) -> str:
    chosen = answer.get("profile") or {}
    lines = [
        f"User: {cell_text(chosen.get('username'))}",
        "Notifications:",
        f"  email: {cell_text(chosen.get('email_notification'))}",
        f"  slack: {cell_text(chosen.get('slack_notification'))}",
        "Pools:",
        f"  default: {cell_text(chosen.get('pool'))}",
        "  accessible:",
        *_items(answer.get("pools")),
        "Roles:",
        *_items(answer.get("roles")),
    ]
    token = answer.get("token")
    if token:
        lines.append(f"Token: {token['name']}, valid until {show_time(token['expires_at'])}")
    return "\n".join(lines)


def _items(names: Any) -> list[str]:
    return [f"    - {printable(name)}" for name in names or ()] or [f"    {NOTHING}"]
