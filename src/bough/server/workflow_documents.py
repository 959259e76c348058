"""Workflows, groups, tasks and revisions of configuration as they are sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bough.api.configs import ConfigRevision, FieldDifference
from bough.api.workflows import (
    ArrayDocument,
    GroupDocument,
    PreemptionLine,
    TaskDocument,
    WorkflowDocument,
    WorkflowLine,
)
from bough.control.config.label_policy import label_warnings
from bough.control.site import Site
from bough.control.workflows.arrays import ArrayView
from bough.control.workflows.predecessors import REASON as PREDECESSOR
from bough.control.workflows.preemptions import PreemptionRecord
from bough.control.workflows.query import WorkflowDemand, WorkflowView
from bough.model.app import App
from bough.model.change_record import Difference, Revision
from bough.model.workflow import Group, Task, TaskStatus, Workflow, WorkflowStatus
from bough.server.route_declaration import Visit
from bough.server.values import seconds_between, time_text


class Links:
    """Addresses on this server, whatever the client called it."""

    def __init__(self, request: Visit) -> None:
        self._start: str = request.app.state.public_url

    def overview(self, workflow: str) -> str:
        """Where a person looks at a workflow."""
        return f"{self._start}/workflows/{workflow}"

    def logs(self, workflow: str, task: Task | None = None, what: str = "logs") -> str:
        """Where its logs are, or those of one attempt of a task."""
        address = self.part(workflow, what)
        if task is None:
            return address
        return f"{address}?task_name={task.name}&retry_id={task.retry_id}"

    def error_logs(self, workflow: str, *, failed: bool, task: Task | None = None) -> str | None:
        """Where its error logs are, if something went wrong."""
        return self.logs(workflow, task, "error_logs") if failed else None

    def part(self, workflow: str, what: str) -> str:
        """Where another part of it is."""
        return f"{self._start}/api/workflow/{workflow}/{what}"


def workflow_line(
    workflow: Workflow, demand: WorkflowDemand, links: Links, now_ms: int, app: App | None = None
) -> WorkflowLine:
    """A workflow in a list."""
    name = workflow.workflow_id
    return WorkflowLine(
        user=workflow.submitted_by,
        name=name,
        workflow_uuid=workflow.uuid,
        submit_time=time_text(workflow.submitted_ms) or "",
        start_time=time_text(workflow.started_ms),
        end_time=time_text(workflow.ended_ms),
        queued_time=_queued(workflow, now_ms),
        duration=_duration(workflow, now_ms),
        status=workflow.status,
        overview=links.overview(name),
        logs=links.logs(name),
        error_logs=links.error_logs(name, failed=workflow.status.failed),
        grafana_url=None,
        dashboard_url=None,
        pool=workflow.pool,
        priority=workflow.priority,
        labels=workflow.labels,
        tags=list(workflow.tags),
        gpus=demand.gpus,
        wait_reason=demand.wait_reason,
        app_owner=None if app is None else app.owner,
        app_name=None if app is None else app.name,
        app_version=workflow.app_version,
        array=workflow.array_id,
        array_index=workflow.array_index,
    )


def array_document(view: ArrayView) -> ArrayDocument:
    """An array with how many of its elements have which status."""
    array = view.array
    statuses = {status.value: number for status, number in sorted(view.counts.items()) if number}
    unmade = array.count - array.made
    if unmade:
        cancelled = array.cancelled_by is not None
        status = WorkflowStatus.FAILED_CANCELED if cancelled else WorkflowStatus.PENDING
        statuses[status.value] = statuses.get(status.value, 0) + unmade
    return ArrayDocument(
        name=array.array_id,
        uuid=array.uuid,
        user=array.submitted_by,
        pool=array.pool,
        priority=array.priority,
        status=view.status,
        submit_time=time_text(array.submitted_ms) or "",
        elements=array.count,
        at_once=array.at_once,
        statuses=statuses,
        archived=view.archived,
        cancelled_by=array.cancelled_by,
    )


def workflow_document(view: WorkflowView, links: Links, site: Site) -> WorkflowDocument:
    """A workflow with everything below it."""
    now_ms = site.clock.now_ms()
    workflow = view.workflow
    policy = site.kept.latest_setup(site.store).settings.labels_config
    name = workflow.workflow_id
    parent, number = _parent(workflow)
    return WorkflowDocument(
        name=name,
        uuid=workflow.uuid,
        submitted_by=workflow.submitted_by,
        cancelled_by=workflow.cancelled_by,
        spec=links.part(name, "spec"),
        template_spec=links.part(name, "spec?use_template=True"),
        logs=links.logs(name),
        events=links.part(name, "events"),
        overview=links.overview(name),
        parent_name=parent,
        parent_job_id=number,
        dashboard_url=None,
        grafana_url=None,
        tags=list(workflow.tags),
        submit_time=time_text(workflow.submitted_ms) or "",
        start_time=time_text(workflow.started_ms),
        end_time=time_text(workflow.ended_ms),
        exec_timeout=workflow.exec_timeout_s,
        queue_timeout=workflow.queue_timeout_s,
        duration=_duration(workflow, now_ms),
        queued_time=_queued(workflow, now_ms),
        status=workflow.status,
        failure_message=workflow.failure_message,
        outputs="",
        groups=[_group(group, view, links) for group in view.groups],
        pool=workflow.pool,
        backend=workflow.backend,
        plugins={"rsync": False},
        priority=workflow.priority,
        labels=workflow.labels,
        warnings=[*workflow.warnings, *label_warnings(workflow.labels, policy)],
        archive_time=time_text(view.archived_ms),
        app_owner=None if view.app is None else view.app.owner,
        app_name=None if view.app is None else view.app.name,
        app_version=workflow.app_version,
        array=workflow.array_id,
        array_index=workflow.array_index,
    )


def _group(group: Group, view: WorkflowView, links: Links) -> GroupDocument:
    tasks: Sequence[Task] = view.tasks.get(group.name, ())
    held = view.held is not None and group.status is TaskStatus.WAITING
    return GroupDocument(
        name=group.name,
        status=group.status,
        processing_start_time=time_text(group.queued_ms),
        scheduling_start_time=time_text(group.queued_ms),
        initializing_start_time=time_text(group.scheduled_ms),
        start_time=time_text(group.started_ms),
        end_time=time_text(group.ended_ms),
        remaining_upstream_groups=list(group.remaining_upstream),
        downstream_groups=[each.name for each in view.groups if group.name in each.spec.upstream],
        failure_message=group.failure_message,
        wait_reason=PREDECESSOR if held else group.wait_reason,
        wait_message=view.held if held else group.wait_message,
        tasks=[_task(task, view.workflow, links) for task in tasks],
        preemptions=preemption_lines(view.preemptions.get(group.name, ())),
    )


def preemption_lines(preemptions: Iterable[PreemptionRecord]) -> list[PreemptionLine]:
    """The preemptions of a group, as they are sent."""
    return [
        PreemptionLine(
            at=time_text(each.at_ms),
            tasks=list(each.tasks),
            rule=each.rule,
            message=each.message,
            given_back=each.given_back,
            preemptor=each.preemptor,
            preemptor_user=each.preemptor_user,
            preemptor_pool=each.preemptor_pool,
            preemptor_priority=each.preemptor_priority,
            level=each.level,
        )
        for each in preemptions
    ]


def _task(task: Task, workflow: Workflow, links: Links) -> TaskDocument:
    return TaskDocument(
        name=task.name,
        retry_id=task.retry_id,
        status=task.status,
        failure_message=task.failure_message,
        exit_code=task.exit_code,
        logs=links.logs(workflow.workflow_id, task),
        error_logs=links.error_logs(workflow.workflow_id, failed=_failed(task), task=task),
        events=links.logs(workflow.workflow_id, task, "events"),
        processing_start_time=time_text(task.queued_ms),
        scheduling_start_time=time_text(task.queued_ms),
        initializing_start_time=time_text(task.scheduled_ms),
        start_time=time_text(task.started_ms),
        end_time=time_text(task.ended_ms),
        pod_name=f"{workflow.uuid[-16:]}-{task.uuid[-16:]}",
        pod_ip=None,
        task_uuid=task.uuid,
        node_name=task.node,
        backend=task.backend,
        lead=task.lead,
        gpus=task.gpus,
    )


def _failed(task: Task) -> bool:
    """Whether an attempt did not end as it should; one that is followed by another did not."""
    return task.status.finished and task.status is not TaskStatus.COMPLETED


def _parent(workflow: Workflow) -> tuple[str | None, int | None]:
    """Name and number of the workflow that this one restarts."""
    name, _, number = (workflow.restarts or "").rpartition("-")
    return (name, int(number)) if name and number.isdigit() else (None, None)


def _queued(workflow: Workflow, now_ms: int) -> float | None:
    until = workflow.started_ms or workflow.ended_ms or now_ms
    return seconds_between(workflow.submitted_ms, until)


def _duration(workflow: Workflow, now_ms: int) -> float | None:
    return seconds_between(workflow.started_ms, workflow.ended_ms or now_ms)


# Configuration


def config_revision(revision: Revision, *, omit_data: bool = False) -> ConfigRevision:
    """One change of one configured object."""
    return ConfigRevision(
        config_type=revision.config_type,
        revision=revision.revision,
        name=revision.name,
        username=revision.username,
        created_at=time_text(revision.created_ms) or "",
        description=revision.description,
        tags=list(revision.tags),
        data=None if omit_data else revision.data,
        differences=[field_difference(each) for each in revision.differences],
    )


def field_difference(difference: Difference) -> FieldDifference:
    """One field before and after a change."""
    return FieldDifference(difference.field, difference.before, difference.after)
