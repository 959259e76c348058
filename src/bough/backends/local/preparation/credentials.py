"""Credentials of a task, as files or as variables. Messages never contain a value."""

from __future__ import annotations

import os
from collections.abc import Mapping

from bough.backends.local.data.paths import make_below, opened, shown, split_path, write_new
from bough.backends.local.errors import Unstartable
from bough.backends.local.preparation.layout import Surroundings, TaskLayout
from bough.backends.local.task_command import Mount, UserAccount
from bough.model.task_template import CredentialUse

_MODE = 0o400

Secrets = Mapping[str, Mapping[str, str]]


def find_variables(uses: tuple[CredentialUse, ...], secrets: Secrets) -> dict[str, str]:
    """The environment variables from credentials."""
    found: dict[str, str] = {}
    for use in uses:
        values = _find(use, secrets)
        for variable, key in use.variables.items():
            if key not in values:
                raise Unstartable(
                    f"credentials: {shown(use.name)} has no key {shown(key)}, which the variable "
                    f"{shown(variable)} should have; it has " + _listed(values)
                )
            found[variable] = values[key]
    return found


def write_credentials(
    uses: tuple[CredentialUse, ...],
    secrets: Secrets,
    layout: TaskLayout,
    account: UserAccount | None,
) -> tuple[Mount, ...]:
    """Write credentials as files, one for each key; the mounts by which the task sees them."""
    mounts: dict[str, Mount] = {}
    for use in uses:
        if use.mount is None:
            continue
        values = _find(use, secrets)
        spot = layout.locate(use.mount, f"credentials: {shown(use.name)}")
        if spot.seen in mounts:
            raise Unstartable(f"credentials: two have the path {shown(use.mount)}")
        with opened(spot.base) as base:
            os.close(make_below(base, spot.parts, account=account))
        plain = layout.surroundings is Surroundings.MACHINE
        folder = spot.path if plain else layout.secrets / str(len(mounts))
        for key, value in values.items():
            _check_key(use, key)
            parts = (key,) if plain else (str(len(mounts)), key)
            base = folder if plain else layout.secrets
            write_new(base, parts, value.encode(errors="replace"), _MODE, account)
        mounts[spot.seen] = Mount(str(folder), spot.seen)
    return () if layout.surroundings is Surroundings.MACHINE else tuple(mounts.values())


def _find(use: CredentialUse, secrets: Secrets) -> Mapping[str, str]:
    found = secrets.get(use.name)
    if found is None:
        raise Unstartable(
            f"credentials: there is no credential {shown(use.name)} of the user who submitted the "
            "task; set it with the command `credential set`, or take it out of the spec"
        )
    return found


def _check_key(use: CredentialUse, key: str) -> None:
    parts, fault = split_path(key)
    if fault is not None or parts != (key,):
        raise Unstartable(
            f"credentials: the key {shown(key)} of {shown(use.name)} cannot be the name of a file"
        )


def _listed(values: Mapping[str, str]) -> str:
    return ", ".join(shown(each) for each in sorted(values)) or "none"
