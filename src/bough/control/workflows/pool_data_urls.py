"""Checks that the tasks of a workflow may use the data of pools that they name.

A task acts for the user who submitted it, so this user needs permission for each pool's data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bough.control.people.access import allows, resource_of
from bough.control.setup_cache import Setup
from bough.control.site import Site
from bough.errors import Forbidden, Invalid
from bough.model.access import Action, Actor
from bough.model.pool import Pool
from bough.model.pool_data import DataUrl, data_path_fault, read_data_url
from bough.model.task_template import TaskTemplate
from bough.model.workflow import WorkflowSpec

_DID = {Action.DATA_READ: "read", Action.DATA_WRITE: "write"}


class DataUse(NamedTuple):
    """A URL of a pool's data in a task, and what it is used for."""

    field: str
    url: DataUrl
    action: Action


def data_uses(template: TaskTemplate | None) -> Iterator[DataUse]:
    """All URLs of pools' data that a task has."""
    if template is None:
        return
    fields = [
        ("upload", template.project, Action.DATA_READ),
        *((f"inputs[{n}].url", e.url, Action.DATA_READ) for n, e in enumerate(template.inputs)),
        *((f"outputs[{n}].url", e.url, Action.DATA_WRITE) for n, e in enumerate(template.outputs)),
        *(
            (f"checkpoint[{n}].url", e.url, Action.DATA_WRITE)
            for n, e in enumerate(template.checkpoints)
        ),
    ]
    for field, url, action in fields:
        found = None if url is None else read_data_url(url)
        if found is not None:
            yield DataUse(field, found, action)


def check_data_urls(
    site: Site, actor: Actor, spec: WorkflowSpec, setup: Setup, backend: str
) -> None:
    """Refuse data that does not exist, is kept elsewhere, or is forbidden to the submitter."""
    for group in spec.groups:
        for task in group.tasks:
            for use in data_uses(task.launch):
                _check(site, actor, setup, backend, f"Task {task.name}: {use.field}", use)


def _check(site: Site, actor: Actor, setup: Setup, backend: str, where: str, use: DataUse) -> None:
    url = use.url
    if not site.abilities_of(backend).keeps_pool_data:
        raise Invalid(
            f"{where}: {url} cannot be used: backend {backend} keeps no data of pools; pass data "
            "between tasks by {{output}}, or use a pool of a backend that does."
        )
    pool = setup.pool_of(url.pool)
    if pool is None:
        raise Invalid(f"{where}: {url} names pool {url.pool[:80]!r}, which does not exist.")
    fault = data_path_fault(url.path) if url.path else None
    if fault is not None:
        raise Invalid(f"{where}: {str(url)[:200]!r} is not possible: {fault}.")
    if pool.backend != backend:
        raise Invalid(
            f"{where}: {url} is kept by backend {pool.backend}, and the task runs on {backend}."
        )
    if not may_use(site, actor, pool, use.action):
        raise Forbidden(
            f"{where}: {actor.name} may not {_DID[use.action]} the data of pool {pool.name}."
        )


def may_use(site: Site, actor: Actor, pool: Pool, action: Action) -> bool:
    """Whether an actor may read or write the data of a pool."""
    return allows(actor, action, resource_of(pool), site.role_names)
