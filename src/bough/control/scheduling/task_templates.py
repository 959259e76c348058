"""The pod templates of a task, with its variables in them."""

from __future__ import annotations

from collections.abc import Mapping

from bough.control.config.pod_templates import names_for
from bough.control.config.template_variables import (
    UnknownVariable,
    Value,
    amounts,
    fill,
    variables_of,
)
from bough.model.pool import Json, Pool
from bough.model.workflow import Task, TaskSpec


class BadTemplate(Exception):
    """A template cannot be used, and why."""


def templates_of(
    templates: Mapping[str, Json],
    pool: Pool | None,
    task: Task,
    spec: TaskSpec,
    labels: Mapping[str, str],
) -> tuple[dict[str, Json], ...]:
    """The templates of its pool, and of its platform on top.

    labels:  those of its pod, without their prefix
    """
    names = names_for(pool, spec.platform) if templates else ()
    if pool is None or not names:
        return ()
    variables = _variables(pool, spec, labels)
    try:
        return tuple(_filled(templates, name, variables) for name in names)
    except BadTemplate:
        if task.started_ms is None:
            raise
        # What runs already is only reminded of, and has its pod.
        return ()


def _variables(pool: Pool, spec: TaskSpec, labels: Mapping[str, str]) -> dict[str, Value]:
    asked = amounts(spec.requests, spec.storage_bytes)
    platform = pool.platforms.get(spec.platform or pool.default_platform or "")
    own = {} if platform is None else platform.default_variables
    defaults = {**pool.common_default_variables, **own}
    return variables_of(asked, labels, spec.nodes_excluded, defaults)


def _filled(
    templates: Mapping[str, Json], name: str, variables: Mapping[str, Value]
) -> dict[str, Json]:
    if name not in templates:
        raise BadTemplate(f"Pod template {name} does not exist.")
    try:
        return fill(templates[name], variables)
    except UnknownVariable as error:
        raise BadTemplate(f"Pod template {name}: there is no variable {error}.") from None
