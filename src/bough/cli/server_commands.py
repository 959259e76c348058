"""What all commands that ask a server have in common: the client, and which pool is meant."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from bough.cli.exit_codes import ERROR
from bough.cli.screen import program
from bough.errors import BoughError, Invalid, Refused

if TYPE_CHECKING:
    from bough.client import Client


def client(timeout_s: float | None = None) -> Client:
    """The client, as the environment or a stored login says."""
    # Help needs no network, and where no server is known the rest is not needed either.
    from bough.client.login import find_login  # noqa: PLC0415

    find_login()
    _import_msgspec()
    from bough.client.client import TIMEOUT_S, Client  # noqa: PLC0415

    return Client(timeout_s=TIMEOUT_S if timeout_s is None else timeout_s)


def _import_msgspec() -> None:
    """Import it without what it uses only for older versions of Python.

    It asks for `typing_extensions`, whose import takes as long as its own, and does as well with
    `typing` where that is not installed.
    """
    if "msgspec" not in sys.modules and "typing_extensions" not in sys.modules:
        sys.modules["typing_extensions"] = None  # pyright: ignore[reportArgumentType]
        try:
            importlib.import_module("msgspec")
        finally:
            del sys.modules["typing_extensions"]


def try_all(
    context: click.Context,
    names: Sequence[str],
    attempt: Callable[[str], None],
    failed: Callable[[str, BoughError], None],
) -> None:
    """Do something with each of several, also after one could not be done; then end with 2."""
    missed = False
    for name in names:
        try:
            attempt(name)
        except BoughError as error:
            if error.http_status >= 500 or isinstance(error, Refused):
                raise
            missed = True
            failed(name, error)
    if missed:
        context.exit(ERROR)


def choose_pool(asked: Client, pool: str | None) -> str:
    """The pool that was named, or the default pool, or the only one there is."""
    if pool:
        return pool
    found = asked.profile.get()
    if found.profile.pool:
        return found.profile.pool
    names = asked.pools.names()
    if len(names) == 1:
        return names[0]
    if len(found.pools) == 1:
        return found.pools[0]
    raise Invalid(
        f'No default pool set. Set a default pool using "{program()} profile set pool <pool>" or '
        "specify a pool using --pool or -p.",
        hint=f"you may submit to {', '.join(found.pools)}" if found.pools else "",
    )
