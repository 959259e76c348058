"""What a server does first: migrate, check the invariants, create what must exist."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from bough.control.change_recording import SYSTEM_ACTOR, audit, revise
from bough.control.config.policy import start_with, stored_faults
from bough.control.people import pass_key
from bough.control.people.administrators import ensure_admin, expiry_faults
from bough.control.people.key_rotation import encrypt_stored
from bough.control.people.role_bindings import stored_role_faults
from bough.control.pools import subpool_drain
from bough.control.pools.pool_fields import pool_document
from bough.control.pools.pool_setup import read_pool_setup, unallocated
from bough.control.site import Site
from bough.errors import Conflict
from bough.model.change_record import ConfigType
from bough.model.names import DELIMITER
from bough.model.pool import Pool
from bough.model.subpool import SubpoolState
from bough.store import pools as pool_store
from bough.store import settings as setting_store
from bough.store.database import again_if_given_up
from bough.store.migration import upgrade

DEFAULT_POOL = "default"

Made = TypeVar("Made")


class Started(msgspec.Struct, frozen=True):
    """What a start found and did."""

    #: The revision of the database.
    revision: str
    #: What an administrator should know.
    warnings: tuple[str, ...]
    #: The secret of the first administrator's token, where it was made just now.
    admin_token: str | None
    #: Subpools that were found drained.
    archived: tuple[str, ...]


def start(
    site: Site,
    *,
    default_pool: bool = True,
    keep_secret: Callable[[str], None] | None = None,
    policy: str | None = None,
) -> Started:
    """Prepare the store so that requests can be answered.

    A new administrator's secret is saved before it is valid. A policy file replaces what was
    configured before.
    """
    revision = upgrade(site.store)
    about_keys = (*again_if_given_up(encrypt_stored)(site), *pass_key.check(site))
    if policy is not None:
        again_if_given_up(start_with)(site, policy)
    if default_pool:
        _once(lambda: _ensure_pool(site))
    admin_token = _once(lambda: ensure_admin(site, keep_secret))
    about_roles = (*expiry_faults(site), *stored_role_faults(site))
    return Started(
        revision=revision,
        warnings=(*about_keys, *faults(site), *stored_faults(site), *about_roles),
        admin_token=admin_token,
        archived=tuple(subpool_drain.rearm_drains(site)),
    )


def _once(make: Callable[[], Made]) -> Made | None:
    """Make something, unless another server that starts at the same time is faster."""
    try:
        return again_if_given_up(make)()
    except Conflict:
        return None


def faults(site: Site) -> list[str]:
    """What must always hold and does not, and what stands in the way of subpools."""
    found: list[str] = []
    with site.store.read() as connection:
        config = read_pool_setup(connection)
    for pool in config.pools:
        subpools = config.subpools_of(pool.name)
        if DELIMITER in pool.name:
            found.append(
                f'Pool {pool.name} has "{DELIMITER}" in its name; it works as before, but cannot '
                "be divided until it is renamed."
            )
        left = unallocated(pool, subpools)
        active = sum(each.state is SubpoolState.ACTIVE for each in subpools)
        if active and (left is None or left < 0):
            found.append(
                f"Pool {pool.name} has fewer GPUs than its subpools together; raise its quota."
            )
    return found


def _ensure_pool(site: Site) -> None:
    """Create a pool with everything in it on an empty site."""
    with site.store.write() as connection:
        if pool_store.list_pools(connection):
            return
        pool = Pool(DEFAULT_POOL, description="Everything that there is")
        pool_store.insert_pool(connection, pool, site.clock.now_ms())
        document = pool_document(pool)
        revise(connection, site, SYSTEM_ACTOR, ConfigType.POOL, pool.name, document)
        setting_store.raise_version(connection)
        audit(connection, site, SYSTEM_ACTOR, "pool:Create", f"pool/{pool.name}", None, pool)
