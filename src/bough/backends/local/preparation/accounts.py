"""User accounts of this machine, for tasks that run as the user who submitted them."""

from __future__ import annotations

import os
import pwd

from bough.backends.local.command import SandboxKind, UserAccount
from bough.backends.local.errors import Unstartable
from bough.backends.local.options import LocalOptions

_AS_ROOT = (
    "tasks run as root, and can read every file of this machine that is not hidden; let them run "
    "as their users if not every user may do that"
)


def account_warnings(options: LocalOptions, sandbox: SandboxKind | None) -> tuple[str, ...]:
    """Warnings about the accounts that tasks run as."""
    if not options.as_user and os.geteuid() == 0:
        return (_AS_ROOT,)
    if not options.as_user:
        return ()
    if os.geteuid() != 0:
        return ("tasks are to run as their users, for which the server must be root: none starts",)
    if sandbox is None:
        return ("tasks are to run as their users, for which they need a view: none starts",)
    return ()


def find_account(user: str) -> UserAccount:
    """The account of that name, with all its groups."""
    try:
        entry = pwd.getpwnam(user)
    except (KeyError, ValueError):
        raise Unstartable(
            f"tasks run as the user who submitted them, and this machine has no user {user!r}; "
            "ask for an account of that name"
        ) from None
    if entry.pw_uid == 0:
        raise Unstartable(
            f"tasks run as the user who submitted them, and {user!r} is the superuser of this "
            "machine, as which no task runs; submit it as another user"
        )
    groups = tuple(sorted({*os.getgrouplist(entry.pw_name, entry.pw_gid)}))
    return UserAccount(entry.pw_uid, entry.pw_gid, groups)
