"""The data of pools that tasks read and write when they start, for the users who submitted them.

Permissions are checked again here: they may have been revoked since the submission, and the pool of
that name may be another one by now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bough.control.people.access import recognise
from bough.control.pools.pool_data_limits import data_space
from bough.control.site import Site
from bough.control.workflows.pool_data_urls import DataUse, data_uses, may_use
from bough.errors import Unauthenticated
from bough.model.pool_data import PoolSpace
from bough.model.workflow import Group, TaskSpec, Workflow
from bough.store import pools as pool_store

#: By pool name, the pool's data; a text says why it cannot be used.
Spaces = Mapping[str, PoolSpace | str]


def read_spaces(
    site: Site, groups: Iterable[Group], workflows: Mapping[str, Workflow]
) -> dict[str, Spaces]:
    """By workflow, the data that the tasks of groups name; no query if none do."""
    uses: dict[str, list[DataUse]] = {}
    for group in groups:
        found = [use for task in group.spec.tasks for use in data_uses(task.launch)]
        if found:
            uses.setdefault(group.workflow_uuid, []).extend(found)
    return {uuid: _of_workflow(site, workflows[uuid], found) for uuid, found in uses.items()}


def spaces_of(spaces: Spaces, task: TaskSpec) -> tuple[dict[str, PoolSpace], str]:
    """The data that a task names, and why it cannot use it; empty: it can."""
    found: dict[str, PoolSpace] = {}
    for use in data_uses(task.launch):
        space = spaces.get(use.url.pool, "")
        if not isinstance(space, PoolSpace):
            return {}, space
        found[use.url.pool] = space
    return found, ""


def _of_workflow(site: Site, workflow: Workflow, uses: Iterable[DataUse]) -> Spaces:
    found: dict[str, PoolSpace | str] = {}
    for use in uses:
        if not isinstance(found.get(use.url.pool), str):
            found[use.url.pool] = _space(site, workflow, use)
    return found


def _space(site: Site, workflow: Workflow, use: DataUse) -> PoolSpace | str:
    with site.store.read() as connection:
        # Pools are created by requests, which another process handles.
        setup = site.kept.setup(connection)
    pool = setup.pool_of(use.url.pool)
    if pool is None:
        return f"{use.field}: {use.url} names a pool that does not exist any more."
    if pool.backend != workflow.backend:
        return f"{use.field}: {use.url} is kept by backend {pool.backend}, and cannot be used here."
    user = workflow.submitted_by
    try:
        allowed = may_use(site, recognise(site, user), pool, use.action)
    except Unauthenticated:
        # A trusted proxy vouched for the user and its roles then: valid for that pool only.
        own = setup.pool_of(workflow.pool)
        allowed = own is not None and own.name == pool.name
    if not allowed:
        return f"{use.field}: {user} may not use the data of pool {pool.name} any more."
    with site.store.read() as connection:
        identity = pool_store.uuid_of(connection, pool.name)
    return data_space(pool, identity) if identity else f"{use.field}: pool {pool.name} is gone."
