"""Users, their tokens, credentials and settings as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.cli.output import printable
from bough.cli.screen import screen
from bough.cli.tables import NOTHING, cell_text, render_fields, render_table
from bough.cli.times import show_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bough.api.people import (
        CredentialLine,
        ProfileAnswer,
        TokenLine,
        TokenRoles,
        UserAnswer,
        UserLine,
    )


def render_users(users: Sequence[UserLine]) -> str:
    """A line for each user."""
    if not users:
        return "No users found"
    rows = [(each.id, show_time(each.created_at)) for each in users]
    return render_table(("User", "Created At"), rows)


def render_user(answer: UserAnswer) -> str:
    """One user with roles."""
    head = render_fields(
        [
            ("User", answer.id),
            ("Created At", show_time(answer.created_at)),
            ("Created By", answer.created_by),
        ]
    )
    rows = [
        (each.role_name, each.assigned_by, show_time(each.assigned_at)) for each in answer.roles
    ]
    if not rows:
        return f"{head}\n\nNo roles."
    return f"{head}\n\n{render_table(('Role', 'Assigned By', 'Assigned At'), rows)}"


def render_tokens(tokens: Sequence[TokenLine]) -> str:
    """A line for each token."""
    if not tokens:
        return "There are no tokens."
    from datetime import UTC, datetime  # noqa: PLC0415  most commands need no clock

    today = datetime.now(UTC).date().isoformat()
    rows = [
        (
            each.token_name,
            each.description,
            each.expires_at[:10],
            "Expired" if each.expires_at[:10] <= today else "Active",
            each.roles,
        )
        for each in tokens
    ]
    return render_table(("Name", "Description", "Expires At", "Status", "Roles"), rows, cut=1)


def render_token_roles(answer: TokenRoles) -> str:
    """What a token may do."""
    return render_fields(
        [
            ("Token", answer.token_name),
            ("User", answer.user_name),
            ("Roles", [each.role_name for each in answer.roles]),
        ]
    )


def render_credentials(credentials: Sequence[CredentialLine]) -> str:
    """A line for each credential."""
    if not credentials:
        return "There are no credentials."
    rows = [
        (each.cred_name, each.cred_type, each.keys, show_time(each.created_at))
        for each in credentials
    ]
    return render_table(("Name", "Type", "Parts", "Created At"), rows)


def render_profile(answer: ProfileAnswer) -> str:
    """Settings, pools and roles of a user."""
    chosen = answer.profile
    lines = [
        f"User: {cell_text(chosen.username)}",
        "Notifications:",
        f"  email: {cell_text(chosen.email_notification)}",
        f"  slack: {cell_text(chosen.slack_notification)}",
        *((f"  webhook: {cell_text(chosen.webhook_notification)}",) if not screen().osmo else ()),
        "Pools:",
        f"  default: {cell_text(chosen.pool)}",
        "  accessible:",
        *_items(answer.pools),
        "Roles:",
        *_items(answer.roles),
    ]
    token = answer.token
    if token:
        lines.append(f"Token: {token.name}, valid until {show_time(token.expires_at)}")
    return "\n".join(lines)


def _items(names: Sequence[str]) -> list[str]:
    return [f"    - {printable(name)}" for name in names] or [f"    {NOTHING}"]
