"""Users, their tokens, credentials and settings as text."""

from __future__ import annotations

from typing import Any

from bough.cli.output import printable
from bough.cli.tables import NOTHING, cell_text, render_fields, render_table
from bough.cli.times import show_time


def render_users(answer: Any) -> str:
    """A line for each user."""
    if not answer["users"]:
        return "No users found"
    rows = [(each["id"], show_time(each.get("created_at"))) for each in answer["users"]]
    return render_table(("User", "Created At"), rows)


def render_user(answer: Any) -> str:
    """One user with roles."""
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
    return f"{head}\n\n{render_table(('Role', 'Assigned By', 'Assigned At'), rows)}"


def render_tokens(tokens: Any) -> str:
    """A line for each token."""
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
    return render_table(("Name", "Description", "Expires At", "Status", "Roles"), rows, cut=1)


def render_token_roles(answer: Any) -> str:
    """What a token may do."""
    return render_fields(
        [
            ("Token", answer.get("token_name")),
            ("User", answer.get("user_name")),
            ("Roles", [each["role_name"] for each in answer.get("roles") or ()]),
        ]
    )


def render_credentials(answer: Any) -> str:
    """A line for each credential."""
    if not answer["credentials"]:
        return "There are no credentials."
    rows = [
        (each["cred_name"], each["cred_type"], each.get("keys"), show_time(each.get("created_at")))
        for each in answer["credentials"]
    ]
    return render_table(("Name", "Type", "Parts", "Created At"), rows)


def render_profile(answer: Any) -> str:
    """Settings, pools and roles of a user."""
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
