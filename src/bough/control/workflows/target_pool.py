"""The pool that a workflow is submitted or moved to, as it stays until the transaction ends.

What is known of it was read before, and counts if nothing has changed since: the pool is held, then
the counter is read, so whatever is not seen in the counter comes after this transaction.
"""

from __future__ import annotations

import sqlalchemy as sa

from bough.control.people.access import authorise, is_admin, resource_of
from bough.control.pools.pool_setup import unallocated
from bough.control.setup_cache import Setup, read_setup
from bough.control.site import Site
from bough.control.workflows import admission
from bough.control.workflows.admission import TargetPool
from bough.errors import NotFound, Unavailable
from bough.model.access import Action, Actor
from bough.model.subpool import Subpool
from bough.store import pools as pool_store
from bough.store import workflows as workflow_store


def draw_number(
    site: Site, connection: sa.Connection, known: Setup, pool: str, name: str
) -> tuple[int, Setup]:
    """The next number of a workflow's name, and the setup, in which a pool is held.

    `known`: the setup as it was before this transaction.
    """
    held = known.pool_of(pool)
    if held is None:
        known = hold_setup(connection, pool)
        held = known.pool_of(pool)
    else:
        pool_store.hold(connection, held.name)
    number, version = workflow_store.next_number(connection, name)
    if version == known.version:
        return number, known
    site.kept.expect(version)
    setup = read_setup(connection)
    found = setup.pool_of(pool)
    if found is not None and (held is None or held.name != found.name):
        raise Unavailable(f"Pool {pool} was made at this moment; try again.")
    return number, setup


def hold_setup(connection: sa.Connection, pool: str) -> Setup:
    """The setup, in which the pool of a name is held with its subpools."""
    setup = read_setup(connection)
    found = setup.pool_of(pool)
    if found is None or connection.dialect.name == "sqlite":
        return setup
    pool_store.hold(connection, found.name)
    # It may have changed before it was held.
    return read_setup(connection)


def authorise_target(site: Site, actor: Actor, setup: Setup, name: str) -> None:
    """Refuse unless there is such a pool and the actor may submit to it."""
    authorise(actor, Action.POOL_LIST, names=site.role_names)
    found = setup.pools.get(name)
    if found is None:
        raise NotFound(f"Pool {name} not found.")
    authorise(actor, Action.WORKFLOW_CREATE, resource_of(found), site.role_names)


def enter(site: Site, actor: Actor, setup: Setup, name: str) -> TargetPool:
    """The target of a workflow, if the actor may submit there and the pool takes new work."""
    authorise_target(site, actor, setup, name)
    target = find_target(setup, name)
    admission.check_state(target)
    admission.check_maintenance(target, admin=is_admin(site, actor))
    return target


def find_target(setup: Setup, name: str) -> TargetPool:
    """The target of a workflow, with what is guaranteed there now."""
    pool = setup.pool_of(name)
    if pool is None:
        raise NotFound(f"Pool {name} not found.")
    found = setup.pools[name]
    if isinstance(found, Subpool):
        subpool, quota = found, found.counted
    else:
        subpool, quota = None, unallocated(pool, setup.subpools_of(name))
    return TargetPool(name, pool, subpool, quota, setup.validations, setup.sizes_of(pool.backend))
