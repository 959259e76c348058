"""Settings of the whole server: show and change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import sqlalchemy as sa

from bough.api.configs import LabelRule, LabelsAnswer, SettingsAnswer
from bough.control.change_recording import NO_NOTE, Note, audit, revise
from bough.control.config.label_policy import config_fault
from bough.control.fields import check_exit_actions, duration_text, read_duration_s
from bough.control.people.access import authorise
from bough.control.site import Site
from bough.errors import Invalid
from bough.model.access import Action, Actor
from bough.model.change_record import ConfigType
from bough.model.labels import LabelsConfig
from bough.model.pool import Json
from bough.model.settings import DAY_S, WorkflowSettings
from bough.store import pools as pool_store
from bough.store import settings as setting_store
from bough.store.rows import convert

_WORKFLOW = setting_store.WORKFLOW
#: On the wire without their unit, as text with one.
_DURATIONS = {
    name.removesuffix("_s"): name
    for name in WorkflowSettings.__struct_fields__
    if name.endswith("_s")
}


def read_workflow_settings(connection: sa.Connection) -> WorkflowSettings:
    """The workflow configuration as it is."""
    return setting_store.workflow_settings(connection)


def get_workflow_settings(site: Site, actor: Actor) -> WorkflowSettings:
    """The workflow configuration, if the actor may read it."""
    authorise(actor, Action.CONFIG_READ, "config/workflow", site.role_names)
    with site.store.read() as connection:
        return read_workflow_settings(connection)


def patch_workflow_settings(
    site: Site, actor: Actor, changes: Json, note: Note = NO_NOTE
) -> WorkflowSettings:
    """Change some of it."""
    return _write(site, actor, changes, note, fresh=False)


def put_workflow_settings(
    site: Site, actor: Actor, values: Json, note: Note = NO_NOTE
) -> WorkflowSettings:
    """Replace it; what is left out gets its default."""
    return _write(site, actor, values, note, fresh=True)


def _write(site: Site, actor: Actor, changes: Json, note: Note, *, fresh: bool) -> WorkflowSettings:
    authorise(actor, Action.CONFIG_UPDATE, "config/workflow", site.role_names)
    with site.store.write() as connection:
        before = read_workflow_settings(connection)
        after = _changed(WorkflowSettings() if fresh else before, changes)
        # A shorter interval also holds for drains that are already being waited for.
        soonest = site.clock.now_ms() + after.subpool_drain_check_interval_s * 1_000
        pool_store.hasten_monitors(connection, soonest)
        setting_store.put(connection, _WORKFLOW, msgspec.to_builtins(after))
        document = msgspec.to_builtins(settings_answer(after))
        revise(connection, site, actor, ConfigType.WORKFLOW, _WORKFLOW, document, note)
        setting_store.raise_counter(connection, setting_store.SETUP)
        audit(connection, site, actor, "config:Update", "config/workflow", before, after)
    site.wake()
    return after


def settings_answer(found: WorkflowSettings) -> SettingsAnswer:
    """The workflow configuration as it is sent, and kept in the history."""
    return SettingsAnswer(
        max_num_tasks=found.max_num_tasks,
        max_num_workflows_per_user=found.max_num_workflows_per_user,
        max_retry_per_task=found.max_retry_per_task,
        max_asked_retries=found.max_asked_retries,
        max_preemption_retries=found.max_preemption_retries,
        max_lost_retries=found.max_lost_retries,
        vanished_node=found.vanished_node,
        default_exit_actions=found.default_exit_actions,
        subpool_drain_check_interval=duration_text(found.subpool_drain_check_interval_s),
        termination_grace=duration_text(found.termination_grace_s),
        default_exec_timeout=duration_text(found.default_exec_timeout_s),
        default_queue_timeout=duration_text(found.default_queue_timeout_s),
        labels_config=_labels_answer(found.labels_config),
        archive_after=(
            None if found.archive_after_s is None else duration_text(found.archive_after_s)
        ),
    )


def _labels_answer(config: LabelsConfig) -> LabelsAnswer:
    rules = [
        LabelRule(each.key, list(each.allow_list), each.enforcement.value, each.assert_message)
        for each in config.policy
    ]
    return LabelsAnswer(rules, config.pod_label_prefix)


def _changed(settings: WorkflowSettings, changes: Json) -> WorkflowSettings:
    if not isinstance(changes, Mapping):
        raise Invalid("Workflow configuration: expected an object with the fields to change.")
    values: dict[str, Any] = msgspec.to_builtins(settings)
    for key, value in changes.items():
        if key == "archive_after" and value is None:
            values["archive_after_s"] = None
        elif key in _DURATIONS:
            values[_DURATIONS[key]] = read_duration_s(f"Workflow configuration: {key}", value)
        elif key == "labels_config" and isinstance(value, Mapping):
            values[key] = {**values[key], **value}
        elif key in values and key not in _DURATIONS.values():
            values[key] = value
        else:
            raise Invalid(f"Workflow configuration: there is no field {key}.")
    try:
        changed = convert(values, WorkflowSettings)
    except msgspec.ValidationError as error:
        raise Invalid(f"Workflow configuration: {error}") from None
    _check(changed)
    return changed


def _check(settings: WorkflowSettings) -> None:
    if settings.subpool_drain_check_interval_s < 1:
        raise Invalid("Workflow configuration: subpool_drain_check_interval must be at least 1s.")
    if settings.archive_after_s is not None and settings.archive_after_s < DAY_S:
        raise Invalid(
            "Workflow configuration: archive_after must be at least 1d, not "
            f"{duration_text(settings.archive_after_s)}."
        )
    for name in (
        "max_num_tasks",
        "max_num_workflows_per_user",
        "max_retry_per_task",
        "max_asked_retries",
        "max_preemption_retries",
        "max_lost_retries",
    ):
        value = getattr(settings, name)
        if value is not None and value < 0:
            raise Invalid(f"Workflow configuration: {name} must not be negative, not {value}.")
    fault = config_fault(settings.labels_config)
    if fault is not None:
        raise Invalid(f"Workflow configuration: labels_config.{fault}.")
    where = "Workflow configuration: default_exit_actions"
    check_exit_actions(where, settings.default_exit_actions)
