"""What the server, its loop and its workers do first: log, end with the server, make the site.

All of them see the same site: the same settings, each with its own bell.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
from collections.abc import Callable

from bough.control.credential_keys import CredentialKeys
from bough.control.site import Clock, Site
from bough.server.backend_file import chosen_backends
from bough.server.notification_senders import read_rules
from bough.server.settings import Settings
from bough.store import Store

_PR_SET_PDEATHSIG = 1


def log_to_standard_error(process: str = "") -> None:
    """Log to standard error, with times, without messages of libraries.

    process:  named in each line, where several do the same.
    """
    handler = logging.StreamHandler(sys.stderr)
    named = f" [{process}]" if process else ""
    handler.setFormatter(
        logging.Formatter(f"%(asctime)s %(levelname)s %(name)s{named} %(message)s")
    )
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for name in ("uvicorn.error", "uvicorn"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)


def end_with(parent: int) -> None:
    """Let the kernel kill this process with the server, even while this one is stopped."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(1)


def make_site(
    settings: Settings,
    store: Store,
    clock: Clock,
    wake: Callable[[], None],
    refusal: Callable[[], str],
) -> Site:
    """Make the site from the settings."""
    return Site(
        store,
        clock,
        namespace=settings.namespace,
        wake=wake,
        refusal=refusal,
        abilities={each.name: each.abilities(settings) for each in chosen_backends(settings)},
        credential_keys=CredentialKeys(settings.credential_key_file),
        notifications=read_rules(settings.notifications),
    )
