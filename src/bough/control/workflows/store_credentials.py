"""Checks that the submitter has credentials for the object stores that tasks name.

This is done when a workflow is submitted, and again when its tasks start: credentials can change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec
import sqlalchemy as sa

from bough.control.people.credentials import read_secret
from bough.control.site import Site
from bough.errors import Invalid
from bough.model.access import Actor, CredentialType
from bough.model.backend import BackendAbilities
from bough.model.object_store import (
    SCHEMES,
    endpoint_fault,
    find_endpoint,
    is_store_url,
    read_store_credential,
    read_store_url,
    store_url_fault,
)
from bough.model.pool_data import SCHEME
from bough.model.task_template import TaskTemplate
from bough.model.workflow import TaskSpec, WorkflowSpec
from bough.store import credentials as credential_store

#: Credentials by the URL that they open.
StoreSecrets = Mapping[str, dict[str, str]]


class StoreUse(NamedTuple):
    """A URL in a task that is neither pool data nor a file."""

    field: str
    url: str


def store_uses(template: TaskTemplate | None) -> Iterator[StoreUse]:
    """All URLs of a task that name a store, or nothing known."""
    if template is None:
        return
    fields = (
        *((f"inputs[{n}].url", each.url) for n, each in enumerate(template.inputs)),
        *((f"outputs[{n}].url", each.url) for n, each in enumerate(template.outputs)),
        *((f"checkpoint[{n}].url", each.url) for n, each in enumerate(template.checkpoints)),
    )
    for field, url in fields:
        if url is not None and not url.lower().startswith(("file:", f"{SCHEME}:")):
            yield StoreUse(field, url)


def uses_stores(spec: WorkflowSpec) -> bool:
    """Whether any task has such a URL."""
    return any(
        True for group in spec.groups for each in group.tasks for _ in store_uses(each.launch)
    )


def open_stores(
    site: Site, connection: sa.Connection, actor: Actor, spec: WorkflowSpec, backend: str
) -> WorkflowSpec:
    """The workflow with its URLs resolved to stores; refused without credentials."""
    able = site.abilities_of(backend)
    if not able.opens_stores:
        return spec
    for group in spec.groups:
        for task in group.tasks:
            _, fault = store_secrets(site, connection, actor.name, task.launch, able)
            if fault:
                raise Invalid(f"Task {task.name}: {fault}")
    groups = tuple(
        msgspec.structs.replace(group, tasks=tuple(map(_opening, group.tasks)))
        for group in spec.groups
    )
    return msgspec.structs.replace(spec, groups=groups)


def store_secrets(
    site: Site,
    connection: sa.Connection,
    user: str,
    template: TaskTemplate | None,
    able: BackendAbilities,
) -> tuple[StoreSecrets, str]:
    """The credentials for a task's URLs, and why they cannot be used; empty: they can."""
    uses = list(store_uses(template))
    if not uses:
        return {}, ""
    known = {
        each.profile: each.name
        for each in reversed(credential_store.of_user(connection, user))
        if each.type is CredentialType.DATA and each.profile
    }
    found: dict[str, dict[str, str]] = {}
    for use in uses:
        fault = _url_fault(use.url)
        if fault is not None:
            return {}, f"{use.field}: {use.url[:200]!r} is not possible: {fault}."
        endpoint = find_endpoint(use.url, known)
        if endpoint is None:
            return {}, _missing(user, use)
        payload = read_secret(connection, site, user, known[endpoint]) or {}
        fault = _credential_fault(payload, able)
        if fault is not None:
            return {}, f"{use.field}: {use.url}: credential {known[endpoint]} of {user} {fault}."
        found[endpoint] = payload
    return found, ""


def _url_fault(url: str) -> str | None:
    if is_store_url(url):
        return store_url_fault(url)
    schemes = ", ".join(f"{each}://" for each in (*SCHEMES, SCHEME, "file"))
    return f"tasks can use {schemes}"


def _credential_fault(payload: Mapping[str, str], able: BackendAbilities) -> str | None:
    credential = read_store_credential(payload)
    if isinstance(credential, str):
        return credential
    return endpoint_fault(credential, able.store_endpoints)


def _missing(user: str, use: StoreUse) -> str:
    found = read_store_url(use.url)
    endpoint = f"{found.scheme}://{found.container}" if found else use.url
    return (
        f"{use.field}: {use.url[:200]} needs a credential, and {user} has none of type DATA for "
        f"{endpoint}; set one: bough credential set NAME --type DATA --payload "
        f"endpoint={endpoint} --payload access_key_id=ID --payload-file access_key=FILE"
    )


def _opening(task: TaskSpec) -> TaskSpec:
    if not any(True for _ in store_uses(task.launch)):
        return task
    launch = msgspec.structs.replace(task.launch or TaskTemplate(), opens_stores=True)
    return msgspec.structs.replace(task, launch=launch)
