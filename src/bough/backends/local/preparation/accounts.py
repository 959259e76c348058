"""The account of this machine that a task runs as: its submitter's, or one for all tasks.

A server that is root does not run tasks as root: what the sandbox shows of the machine is then no
more than what any user of the machine can read.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path

from bough.backends.local.errors import Unstartable
from bough.backends.local.options import LocalOptions
from bough.backends.local.sandbox.executing import find_program
from bough.backends.local.task_command import SandboxKind, UserAccount
from bough.errors import Invalid, Unavailable

#: Groups that may use GPUs on some machines.
_GPU_GROUPS = ("video", "render")
_TIMEOUT_S = 60
_AS_ROOT = (
    "tasks run as root, and can read every file of this machine that is not hidden; name an "
    "account without rights (--task-user), or let them run as their users (--as-user)"
)


def account_warnings(options: LocalOptions, sandbox: SandboxKind | None) -> tuple[str, ...]:
    """Warnings about the accounts that tasks run as."""
    if options.as_user and os.geteuid() != 0:
        return ("tasks should run as their users, for which the server must be root: none starts",)
    if options.as_user and sandbox is None:
        return ("tasks should run as their users, for which they need a private view: none starts",)
    if not options.as_user and os.geteuid() == 0 and not has_account(options):
        return (_AS_ROOT,)
    return ()


def has_account(options: LocalOptions) -> bool:
    """Whether all tasks run as one account that is not the server's own."""
    user = options.task_user
    if user is None or options.as_user:
        return False
    try:
        return pwd.getpwnam(user).pw_uid != os.geteuid()
    except (KeyError, ValueError):
        return True


def ensure_account(options: LocalOptions, sandbox: SandboxKind | None) -> None:
    """Make the account that all tasks run as, if it is missing, and see that it can be used."""
    if not has_account(options):
        return
    user = options.task_user or ""
    if os.geteuid() != 0:
        raise Invalid(f"Only a server that is root can run tasks as another account ({user}).")
    if not _exists(user):
        _make(user)
    if sandbox is None:
        _check_reach(options, find_account(user))


def find_account(user: str, what: str = "the account that tasks run as") -> UserAccount:
    """The account of that name, with all its groups."""
    try:
        entry = pwd.getpwnam(user)
    except (KeyError, ValueError):
        raise Unstartable(
            f"tasks run as {what}, and this machine has no user {user!r}; "
            "ask for an account of that name"
        ) from None
    if entry.pw_uid == 0:
        raise Unstartable(
            f"tasks run as {what}, and {user!r} is the superuser of this "
            "machine, as which no task runs; submit it as another user"
        )
    groups = tuple(sorted({*os.getgrouplist(entry.pw_name, entry.pw_gid)}))
    return UserAccount(entry.pw_uid, entry.pw_gid, groups)


def can_read(folder: Path, account: UserAccount, *, all_of_it: bool) -> bool:
    """Whether the account can read a folder, or everything in it, which takes longer."""
    found = folder.stat(follow_symlinks=False)
    if found.st_uid == account.user_id or not all_of_it:
        return _may_enter(found, account)
    for above, names, files in os.walk(folder):
        for each in (".", *names, *files):
            mode = os.lstat(os.path.join(above, each)).st_mode
            wanted = 0o005 if stat.S_ISDIR(mode) else 0o004
            if not stat.S_ISLNK(mode) and mode & wanted != wanted:
                return False
    return True


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except (KeyError, ValueError):
        return False
    return True


def _make(user: str) -> None:
    """Make an account that cannot log in and owns nothing."""
    program = find_program("useradd", "/usr/sbin:/sbin:/usr/bin:/bin")
    fault = "useradd is not installed" if program is None else _run_useradd(program, user)
    # Another server may have made it at the same moment.
    if not _exists(user):
        raise Unavailable(
            f"The account {user}, which tasks run as, cannot be made: {fault}.",
            hint="make it, or name another with --task-user; --task-user root runs tasks as root",
        )


def _run_useradd(program: str, user: str) -> str:
    """What went wrong, if anything did."""
    import subprocess  # noqa: PLC0415 - see supervisor.fork_server

    known = {each.gr_name for each in grp.getgrall()}
    groups = [each for each in _GPU_GROUPS if each in known]
    options = ["--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
    options += ["--shell", "/usr/sbin/nologin", "--comment", "Tasks of Bough"]
    options += ["--groups", ",".join(groups)] if groups else []
    try:
        done = subprocess.run(  # noqa: S603 - found by its fixed name
            (program, *options, "--", user),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"


def _check_reach(options: LocalOptions, account: UserAccount) -> None:
    """Without a sandbox its folders are where they are, so it must be able to get there."""
    for folder in reversed((options.folder, *options.folder.parents)):
        found = folder.stat() if folder.exists() else None
        if found is not None and not _may_enter(found, account):
            raise Unavailable(
                f"Tasks run as the account {options.task_user}, which cannot enter {folder}, and "
                "they have no private view of this machine.",
                hint=f"chmod o+x {folder}, or use another --data; --task-user root runs tasks "
                "as root",
            )


def _may_enter(found: os.stat_result, account: UserAccount) -> bool:
    if found.st_uid == account.user_id:
        return bool(found.st_mode & stat.S_IXUSR)
    if found.st_gid in account.groups:
        return bool(found.st_mode & stat.S_IXGRP)
    return bool(found.st_mode & stat.S_IXOTH)
