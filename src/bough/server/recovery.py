"""`bough admin recover`: a new token for anyone who can write the data folder.

It needs no server, and it disturbs none that runs: tokens are looked up with every request.
"""

from __future__ import annotations

import getpass
import os
from pathlib import Path

import msgspec

from bough.control.people.administrators import recover
from bough.control.site import Site
from bough.data_folder_names import ADMIN_TOKEN_FILE
from bough.server.data_folder import existing_store, write_secret
from bough.server.settings import Settings


class Recovered(msgspec.Struct, frozen=True):
    """A token that was made, without its secret."""

    user: str
    token: str
    #: Where the secret is, readable by its owner alone.
    file: str
    expires_ms: int


def recover_administrator(settings: Settings) -> Recovered:
    """Make a token for an administrator, and write it to a file in the data folder."""
    files: list[Path] = []

    def keep(name: str, secret: str) -> None:
        files.append(settings.data / f"{ADMIN_TOKEN_FILE}-{name}")
        write_secret(files[-1], secret)

    with existing_store(settings) as store:
        made = recover(Site(store, namespace=settings.namespace), keep, _origin())
    return Recovered(made.user, made.name, str(files[-1]), made.expires_ms)


def _origin() -> str:
    """The account of this machine, for the audit."""
    try:
        return f"the account {getpass.getuser()} on the server's machine"
    except (KeyError, OSError):
        return f"the account {os.getuid()} on the server's machine"
