"""What the server, its loop and its workers do first: log, bound their heaps, make the site.

All of them see the same site: the same settings, each with its own bell.
"""

from __future__ import annotations

import contextlib
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
#: The parameter of glibc's `mallopt`, and how many heaps the threads of a process share.
_M_ARENA_MAX, _HEAPS = -8, 2


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


def bound_heaps() -> None:
    """Let all threads share a few heaps; call before any thread is started.

    The C library would give up to eight for each processor core to a process with many threads.
    What one of them has freed is no use to the others, and little of it is ever given back.
    """
    # Other C libraries than glibc have one heap.
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _HEAPS)


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
