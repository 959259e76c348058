"""What all commands that ask a server have in common: the client, and which pool is meant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from bough.cli.exit_codes import ERROR
from bough.errors import BoughError, Invalid, Refused

if TYPE_CHECKING:
    from bough.client import Client


def client() -> Any:
    """The client with plain answers; `typed_client` replaces it command by command."""
    from bough.cli.plain_client import PlainClient  # noqa: PLC0415  help needs no network

    return PlainClient(typed_client())


def typed_client() -> Client:
    """The client, as the environment or a stored login says."""
    from bough.client import Client  # noqa: PLC0415  help needs no network

    return Client()


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


def choose_pool(asked: Any, pool: str | None) -> str:
    """The pool that was named, or the default pool, or the only one there is."""
    if pool:
        return pool
    found: Any = asked.profile.get()
    default = (found.get("profile") or {}).get("pool")
    if default:
        return default
    names = asked.pools.names()
    if len(names) == 1:
        return names[0]
    reached = found.get("pools") or ()
    if len(reached) == 1:
        return reached[0]
    raise Invalid(
        'No default pool set. Set a default pool using "osmo profile set pool <pool>" or specify a '
        "pool using --pool or -p.",
        hint=f"you may submit to {', '.join(reached)}" if reached else "",
    )
