"""The templates of a task and of its group, with their variables in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bough.control.config.pod_templates import names_for
from bough.control.config.template_variables import (
    UnknownVariable,
    Value,
    amounts,
    fill,
    variables_of,
)
from bough.control.site import Site
from bough.model.pool import Json, Pool
from bough.model.workflow import Group, Task, TaskSpec, Workflow


class BadTemplate(Exception):
    """A template cannot be used, and why."""


#: What is made for a group, or why that cannot be.
ObjectsOrFault = tuple[dict[str, Json], ...] | BadTemplate


def about_task(workflow: Workflow, group: Group, task: Task, spec: TaskSpec) -> dict[str, str]:
    """What people look for a task by, where it runs."""
    return {
        **_about_group(workflow, group),
        "lead_container": str(task.lead).lower(),
        "platform": spec.platform or "",
    }


def templates_of(
    templates: Mapping[str, Json],
    pool: Pool | None,
    workflow: Workflow,
    group: Group,
    task: Task,
    spec: TaskSpec,
) -> tuple[dict[str, Json], ...]:
    """The templates of its pool, and of its platform on top."""
    names = names_for(pool, spec.platform) if templates else ()
    if pool is None or not names:
        return ()
    labels = {
        **about_task(workflow, group, task, spec),
        **_names_of(workflow, group),
        "task_name": task.name,
        "task_uuid": task.uuid,
        "retry_id": str(task.retry_id),
    }
    variables = _variables(pool, spec, labels)
    try:
        return tuple(_filled(templates, name, variables) for name in names)
    except BadTemplate:
        if task.started_ms is None:
            raise
        # What runs already is only reminded of, and has its pod.
        return ()


def objects_of_groups(
    site: Site,
    templates: Mapping[str, Json],
    pools: Mapping[str, Pool],
    groups: Iterable[Group],
    workflows: Mapping[str, Workflow],
) -> dict[str, ObjectsOrFault]:
    """The objects of groups whose pools name templates of them, by the identity of the group."""
    found: dict[str, ObjectsOrFault] = {}
    for group in groups:
        workflow = workflows[group.workflow_uuid]
        pool = pools.get(workflow.pool)
        makes = site.abilities_of(workflow.backend).makes_pods
        if pool is not None and pool.common_group_templates and makes:
            found[group.uuid] = _objects(templates, pool, workflow, group)
    return found


def _objects(
    templates: Mapping[str, Json], pool: Pool, workflow: Workflow, group: Group
) -> ObjectsOrFault:
    labels = {**_about_group(workflow, group), **_names_of(workflow, group)}
    variables = variables_of({}, labels, (), pool.common_default_variables)
    names = pool.common_group_templates
    try:
        return tuple(_filled(templates, name, variables, "Group") for name in names)
    except BadTemplate as error:
        return error


def _about_group(workflow: Workflow, group: Group) -> dict[str, str]:
    return {
        "workflow_uuid": workflow.uuid,
        "group_uuid": group.uuid,
        "pool": workflow.pool,
        "priority": workflow.priority.value,
    }


def _names_of(workflow: Workflow, group: Group) -> dict[str, str]:
    return {
        "workflow_id": workflow.workflow_id,
        "group_name": group.name,
        "submitted_by": workflow.submitted_by,
    }


def _variables(pool: Pool, spec: TaskSpec, labels: Mapping[str, str]) -> dict[str, Value]:
    asked = amounts(spec.requests, spec.storage_bytes)
    platform = pool.platforms.get(spec.platform or pool.default_platform or "")
    own = {} if platform is None else platform.default_variables
    defaults = {**pool.common_default_variables, **own}
    return variables_of(asked, labels, spec.nodes_excluded, defaults)


def _filled(
    templates: Mapping[str, Json], name: str, variables: Mapping[str, Value], kind: str = "Pod"
) -> dict[str, Json]:
    if name not in templates:
        raise BadTemplate(f"{kind} template {name} does not exist.")
    try:
        return fill(templates[name], variables)
    except UnknownVariable as error:
        raise BadTemplate(f"{kind} template {name}: there is no variable {error}.") from None
