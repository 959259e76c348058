"""What backends are told to start attempts: looked up in the store when they are told.

Specs, and the secrets that tasks may see, are read here and kept nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import sqlalchemy as sa

from bough.control.config.group_templates import read_templates as read_group_templates
from bough.control.config.label_policy import labels_on_pods
from bough.control.config.pod_templates import read_templates
from bough.control.config.settings import read_workflow_settings
from bough.control.people.credentials import read_secret
from bough.control.scheduling.data_access import Spaces, read_spaces, spaces_of
from bough.control.scheduling.gang_terms import read_gangs
from bough.control.scheduling.input_sources import (
    NO_SOURCES,
    Sources,
    read_sources,
    sources_of,
)
from bough.control.scheduling.task_templates import (
    BadTemplate,
    ObjectsOrFault,
    about_task,
    objects_of_groups,
    templates_of,
)
from bough.control.site import Site
from bough.control.workflows.store_credentials import StoreSecrets, store_secrets
from bough.errors import Unavailable
from bough.model.backend import GangTerms, Launch, Observation, Sight, Start
from bough.model.pool import Json, Pool
from bough.model.settings import WorkflowSettings
from bough.model.subpool import Subpool
from bough.model.workflow import Group, Task, TaskSpec, Workflow
from bough.store import pools as pool_store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store


class Unstartable(Exception):
    """A task cannot be started, and why."""

    def __init__(self, attempt: str, message: str) -> None:
        self._attempt = attempt
        super().__init__(message)

    def seen(self, at_ms: int) -> Observation:
        """The same, as a backend would tell it."""
        return Observation(self._attempt, Sight.UNSTARTABLE, at_ms, message=str(self))


class Sealed(Exception):
    """A credential cannot be decrypted here and now, so what uses it waits."""


class StartRecords(NamedTuple):
    """What the store has about attempts and all that they belong to, by identity."""

    tasks: Mapping[str, Task]
    groups: Mapping[str, Group]
    workflows: Mapping[str, Workflow]
    #: The identities of their pools, by name.
    pools: Mapping[str, str]
    #: By group: the credentials that its tasks name; `None`: there is none of that name; an error:
    #: why it cannot be decrypted.
    secrets: Mapping[str, Mapping[str, dict[str, str] | Unavailable | None]]
    settings: WorkflowSettings = WorkflowSettings()
    #: The configured pools of workflows, by the name that these were submitted to; pod templates.
    configured: Mapping[str, Pool] = {}
    templates: Mapping[str, Json] = {}
    #: Which attempts left what they read.
    sources: Sources = NO_SOURCES
    #: The data of pools that tasks name, by the identity of their workflow.
    spaces: Mapping[str, Spaces] = {}
    #: What opens the object stores of tasks' URLs, by group and task; why nothing does; an error:
    #: why it cannot be decrypted.
    stores: Mapping[tuple[str, str], tuple[StoreSecrets, str] | Unavailable] = {}
    #: Of groups that a scheduler of their cluster places, by identity.
    gangs: Mapping[str, GangTerms] = {}
    #: What is made for groups beside their pods, by identity.
    objects: Mapping[str, ObjectsOrFault] = {}


def read_records(site: Site, attempts: Iterable[str]) -> StartRecords:
    """Look up, at once, all that is needed to start attempts that still hold their nodes.

    What was cancelled, has ended, or was told to end since then is not started any more.
    """
    names = sorted(attempts)
    if not names:
        return StartRecords({}, {}, {}, {}, {})
    with site.store.read() as connection:
        tasks = [
            task
            for task in task_store.attempts(connection, names)
            if task.status.holds_node and task.releasing is None
        ]
        groups = task_store.groups(connection, sorted({task.group_uuid for task in tasks}))
        uuids = sorted({group.workflow_uuid for group in groups})
        workflows = {each.uuid: each for each in workflow_store.of_uuids(connection, uuids)}
        pools = pool_store.identities(connection, {each.pool for each in workflows.values()})
        settings = read_workflow_settings(connection)
        templates = read_templates(connection)
        makers = read_group_templates(connection)
        needed = templates or makers
        configured = _configured(connection, workflows.values()) if needed else {}
        secrets = {
            group.uuid: {
                name: _secret(connection, site, workflows[group.workflow_uuid].submitted_by, name)
                for name in _credentials(group, tasks)
            }
            for group in groups
        }
        sources = read_sources(connection, groups, workflows)
        stores = {
            (group.uuid, spec.name): _open_stores(
                connection, site, workflows[group.workflow_uuid], spec
            )
            for group in groups
            for spec in group.spec.tasks
            if spec.launch is not None and spec.launch.opens_stores
        }
        gangs = read_gangs(site, connection, groups, workflows)
    spaces = read_spaces(site, groups, workflows)
    return StartRecords(
        {task.attempt: task for task in tasks},
        {group.uuid: group for group in groups},
        workflows,
        pools,
        secrets,
        settings,
        configured,
        templates,
        sources,
        spaces,
        stores,
        gangs,
        objects_of_groups(site, makers, configured, groups, workflows) if makers else {},
    )


def starts_of(records: StartRecords, attempts: Iterable[str]) -> Iterator[Start]:
    """The starts of attempts, by group."""
    members: dict[str, dict[str, Task]] = {}
    for attempt in sorted(attempts):
        task = records.tasks.get(attempt)
        if task is not None:
            members.setdefault(task.group_uuid, {})[task.name] = task
    for uuid, tasks in sorted(members.items()):
        group = records.groups[uuid]
        workflow = records.workflows[group.workflow_uuid]
        launches = tuple(
            _launch(records, workflow, group, tasks[spec.name])
            for spec in group.spec.tasks
            if spec.name in tasks
        )
        names = tuple(spec.name for spec in group.spec.tasks)
        gang, objects = records.gangs.get(uuid), _objects(records, group, tasks)
        yield Start(workflow.workflow_id, group.name, launches, names, gang, objects)


def _configured(connection: sa.Connection, workflows: Iterable[Workflow]) -> dict[str, Pool]:
    """The pools that workflows were submitted to, themselves or by a subpool."""
    found: dict[str, Pool] = {}
    for name in {each.pool for each in workflows}:
        pool = pool_store.find(connection, name)
        if isinstance(pool, Subpool):
            pool = pool_store.find_pool(connection, pool.parent)
        if pool is not None:
            found[name] = pool
    return found


def _secret(
    connection: sa.Connection, site: Site, user: str, name: str
) -> dict[str, str] | Unavailable | None:
    try:
        return read_secret(connection, site, user, name)
    except Unavailable as error:
        return error


def _open_stores(
    connection: sa.Connection, site: Site, workflow: Workflow, spec: TaskSpec
) -> tuple[StoreSecrets, str] | Unavailable:
    able = site.abilities_of(workflow.backend)
    try:
        return store_secrets(site, connection, workflow.submitted_by, spec.launch, able)
    except Unavailable as error:
        return error


def _launch(records: StartRecords, workflow: Workflow, group: Group, task: Task) -> Launch:
    """What a backend must know to run an attempt."""
    spec = next(each for each in group.spec.tasks if each.name == task.name)
    names = () if spec.launch is None else tuple(each.name for each in spec.launch.credentials)
    seen: dict[str, dict[str, str]] = {}
    for name in names:
        payload = records.secrets[group.uuid][name]
        if payload is None and task.started_ms is None:
            message = f"Credential {name} of {workflow.submitted_by} does not exist."
            raise Unstartable(task.attempt, message)
        if isinstance(payload, Unavailable) and task.started_ms is None:
            raise Sealed(f"{payload.message} {payload.hint}")
        # What runs already is only reminded of, and has its secrets.
        seen[name] = payload if isinstance(payload, dict) else {}
    seen |= _store_secrets(records, group, task)
    spaces, fault = spaces_of(records.spaces.get(workflow.uuid, {}), spec)
    if fault and task.started_ms is None:
        raise Unstartable(task.attempt, fault)
    return Launch(
        attempt=task.attempt,
        name=task.name,
        node=task.node or "",
        gpus=task.gpus,
        hold_s=spec.hold_s,
        started_ms=task.started_ms,
        retry_id=task.retry_id,
        user=workflow.submitted_by,
        pool=records.pools.get(workflow.pool, ""),
        cpu_milli=spec.requests.cpu_milli,
        memory_bytes=spec.requests.memory_bytes,
        storage_bytes=spec.storage_bytes,
        spec=spec.launch,
        secrets=seen,
        sources=sources_of(records.sources, workflow, spec),
        spaces=spaces,
        grace_s=records.settings.termination_grace_s,
        about=about_task(workflow, group, task, spec),
        labels=labels_on_pods(workflow.labels, records.settings.labels_config.pod_label_prefix),
        pod_templates=_templates(records, workflow, group, task, spec),
        subgroup=spec.subgroup,
        nodes_excluded=spec.nodes_excluded,
    )


def _store_secrets(records: StartRecords, group: Group, task: Task) -> StoreSecrets:
    """What opens the stores of its URLs; what runs already has it."""
    found = records.stores.get((group.uuid, task.name))
    if found is None or task.started_ms is not None:
        return {}
    if isinstance(found, Unavailable):
        raise Sealed(f"{found.message} {found.hint}")
    secrets, fault = found
    if fault:
        raise Unstartable(task.attempt, fault)
    return secrets


def _templates(
    records: StartRecords, workflow: Workflow, group: Group, task: Task, spec: TaskSpec
) -> tuple[dict[str, Json], ...]:
    """The templates of its pool, and of its platform on top, with its variables in them."""
    pool = records.configured.get(workflow.pool)
    try:
        return templates_of(records.templates, pool, workflow, group, task, spec)
    except BadTemplate as error:
        raise Unstartable(task.attempt, str(error)) from None


def _objects(
    records: StartRecords, group: Group, tasks: Mapping[str, Task]
) -> tuple[dict[str, Json], ...]:
    """The objects of a group; what runs already has them."""
    found = records.objects.get(group.uuid, ())
    if not isinstance(found, BadTemplate):
        return found
    for task in tasks.values():
        if task.started_ms is None:
            raise Unstartable(task.attempt, str(found))
    return ()


def _credentials(group: Group, tasks: Iterable[Task]) -> list[str]:
    names = {task.name for task in tasks if task.group_uuid == group.uuid}
    uses = (
        use.name
        for spec in group.spec.tasks
        if spec.name in names and spec.launch is not None
        for use in spec.launch.credentials
    )
    return sorted(set(uses))
