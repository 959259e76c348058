"""What a name in a request is about, as the resource that a role must allow; `None`: not there.

Must not know who asks.
"""

from __future__ import annotations

from bough.control.people.access import resource_of
from bough.control.site import Site
from bough.store import pools as pool_store
from bough.store import workflows as workflow_store


def resource_of_pool(site: Site, name: str) -> str | None:
    """The pool of a name; for a subpool the one above it, by the stored edge."""
    with site.store.read() as connection:
        found = pool_store.find(connection, name)
    return None if found is None else resource_of(found)


def resource_of_workflow(site: Site, name: str) -> str | None:
    """The pool of the workflow of an identifier or a uuid."""
    with site.store.read() as connection:
        workflow = workflow_store.find(connection, name)
        if workflow is None:
            return None
        found = pool_store.find(connection, workflow.pool)
    return resource_of(found or workflow.pool)
