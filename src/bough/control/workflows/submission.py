"""Submitting a workflow: the pool's state is checked, and the workflow counted, in one transaction.

So a request that deletes a subpool sees every workflow that was accepted before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import NamedTuple

import msgspec
import sqlalchemy as sa

from bough.control.change_recording import audit_entry
from bough.control.config.label_policy import label_warnings, refuse_labels
from bough.control.joined_submissions import Draft
from bough.control.pools.pool_setup import offline_reason, status_of
from bough.control.setup_cache import Setup
from bough.control.site import Site
from bough.control.workflows import admission, arrays, predecessors
from bough.control.workflows.admission import TargetPool
from bough.control.workflows.backend_abilities import check_abilities
from bough.control.workflows.draft_rows import (
    draft_group,
    draft_tasks,
    draft_workflow,
    with_number,
)
from bough.control.workflows.pool_data_urls import check_data_urls
from bough.control.workflows.read_submission import Additions, Sent, recall_sent
from bough.control.workflows.specs import image_warnings
from bough.control.workflows.store_credentials import open_stores, uses_stores
from bough.control.workflows.submit_warnings import cautions, most_needed
from bough.control.workflows.target_pool import authorise_target, draw_number, enter
from bough.errors import BoughError, Conflict, Refused, Unavailable
from bough.model.access import Action, Actor
from bough.model.change_record import EventKind, StoredEvent
from bough.model.pool import BackendRecord, DefaultLimits, Pool, PoolStatus
from bough.model.settings import WorkflowSettings
from bough.model.workflow import (
    Priority,
    Workflow,
    WorkflowArray,
    WorkflowSpec,
    WorkflowStatus,
)
from bough.store import nodes as node_store
from bough.store import predecessors as predecessor_store
from bough.store import submissions as submission_store
from bough.store import workflows as workflow_store
from bough.store.predecessors import StoredPredecessor
from bough.store.submissions import NewSubmission


class SubmitMode(StrEnum):
    """How far a submission goes."""

    SUBMIT = "submit"
    #: Every check is made, and nothing is kept.
    VALIDATE = "validate"
    #: Nothing is checked but the right to submit: the spec is only rendered.
    DRY_RUN = "dry_run"


class Accepted(msgspec.Struct, frozen=True):
    """The answer to a submission."""

    #: `None` unless something was kept.
    workflow: Workflow | None
    warnings: tuple[str, ...] = ()
    #: What was kept instead of a workflow.
    array: WorkflowArray | None = None
    #: What a task may use for each GPU, where some ask for no memory or disk and are bounded.
    default_limits: DefaultLimits | None = None


class _Wanted(NamedTuple):
    """A submission, before anything is checked."""

    actor: Actor
    pool: str
    spec: WorkflowSpec
    priority: Priority
    #: The workflow that is started again by it.
    restarts: str | None = None


class Drafted(msgspec.Struct, frozen=True):
    """A submission that passed all checks, and can be kept together with others."""

    draft: Draft
    setup: Setup
    target: TargetPool
    spec: WorkflowSpec

    def accepted(self, site: Site, new: NewSubmission) -> Accepted:
        """The answer, once it is kept."""
        return _accepted(site, self.setup, self.target, self.spec, new.workflow)


def submit(
    site: Site,
    actor: Actor,
    pool: str,
    spec: WorkflowSpec,
    priority: Priority = Priority.NORMAL,
    *,
    mode: SubmitMode = SubmitMode.SUBMIT,
    restarts: str | None = None,
) -> Accepted:
    """Accept a workflow, or say why not. What was accepted is kept when this returns."""
    if mode is not SubmitMode.SUBMIT:
        with site.store.read() as connection:
            setup = site.kept.setup(connection)
            if mode is SubmitMode.DRY_RUN:
                authorise_target(site, actor, setup, pool)
                return Accepted(None)
            target, spec, warnings = _enter(site, connection, actor, pool, spec, setup)
            admission.refuse(target, spec, priority)
            predecessors.resolve(site, connection, actor, spec.after)
        return Accepted(None, (*warnings, *_about_labels(spec, setup)))
    if reason := site.refusal():
        raise Unavailable(reason)
    # Before the transaction: a writer that asks for a second connection could wait for others.
    known = site.kept.latest_setup(site.store)
    wanted = _Wanted(actor, pool, spec, priority, restarts)
    accepted = _submit_joined(site, wanted, known)
    if accepted is None:
        accepted = _submit_alone(site, wanted, known)
        site.wake()
    return accepted


def draft_known(
    site: Site,
    actor: Actor,
    pool: str,
    sent: Sent,
    more: Additions,
    priority: Priority,
    *,
    strict_osmo: bool = False,
) -> Drafted | None:
    """Check a submission in microseconds, by what is known; asks the database nothing.

    `None`: something has to be read, rendered or asked for, or is wrong.
    """
    setup = site.kept.known_setup()
    if setup is None or site.refusal():
        return None
    try:
        spec = recall_sent(setup, sent, more, strict_osmo=strict_osmo)
    except BoughError:
        return None
    return None if spec is None else _draft(site, _Wanted(actor, pool, spec, priority), setup)


def _submit_joined(site: Site, wanted: _Wanted, setup: Setup) -> Accepted | None:
    """Accept a workflow together with others; `None`: it has to be checked in a transaction."""
    found = setup.pool_of(wanted.pool)
    if found is not None and _is_offline(site, found, setup.backends):
        setup = site.kept.hear_again(site.store, setup, site.clock.now_ms())
    drafted = _draft(site, wanted, setup)
    if drafted is None:
        return None
    new = site.joined_submissions.keep(site.store, [drafted.draft], site.wake)
    return None if new is None else drafted.accepted(site, new[0])


def _draft(site: Site, wanted: _Wanted, setup: Setup) -> Drafted | None:
    """Check a submission by the setup; `None`: it has to be checked in a transaction."""
    actor, pool, spec, priority, restarts = wanted
    found = setup.pool_of(pool)
    if found is None or spec.array is not None or spec.after:
        return None
    try:
        target, warnings = _check(site, actor, pool, spec, setup)
    except BoughError:
        # It may have become right meanwhile.
        return None
    if _must_ask(site, target, spec, setup) or admission.refusal(target, spec, priority):
        return None
    workflow = draft_workflow(site, 0, actor, target, spec, priority, setup.settings)
    workflow = msgspec.structs.replace(workflow, restarts=restarts, warnings=warnings)
    finish = partial(_complete, site, actor, target, spec, workflow)
    draft = Draft(found.name, spec.name, setup.version, finish)
    return Drafted(draft, setup, target, spec)


def _complete(
    site: Site,
    actor: Actor,
    target: TargetPool,
    spec: WorkflowSpec,
    workflow: Workflow,
    number: int,
) -> NewSubmission:
    """All rows of a workflow that was drafted without a number."""
    return _new_submission(site, actor, target, spec, with_number(workflow, number))


def _submit_alone(site: Site, wanted: _Wanted, known: Setup) -> Accepted:
    actor, pool, spec, priority, restarts = wanted
    with site.store.write() as connection:
        number, setup = draw_number(site, connection, known, pool, spec.name)
        target, spec, warnings = _enter(site, connection, actor, pool, spec, setup)
        fault = admission.refusal(target, spec, priority)
        held = predecessors.resolve(site, connection, actor, spec.after)
        workflow = draft_workflow(site, number, actor, target, spec, priority, setup.settings)
        workflow = msgspec.structs.replace(workflow, restarts=restarts, warnings=warnings)
        array = None
        if fault is None and spec.array is not None:
            array = arrays.keep(site, connection, actor, target, spec, priority, number)
        elif fault is None:
            _keep(site, connection, actor, target, spec, workflow, held)
        else:
            _keep_refusal(site, connection, actor, target, spec, workflow, fault)
    if fault is not None:
        raise Refused(fault, workflow_id=workflow.workflow_id)
    return _accepted(site, setup, target, spec, workflow, array)


def _accepted(
    site: Site,
    setup: Setup,
    target: TargetPool,
    spec: WorkflowSpec,
    workflow: Workflow,
    array: WorkflowArray | None = None,
) -> Accepted:
    limits = _default_limits(site, setup, target, spec)
    told = (*workflow.warnings, *_about_labels(spec, setup))
    return Accepted(workflow if array is None else None, told, array, limits)


def _about_labels(spec: WorkflowSpec, setup: Setup) -> tuple[str, ...]:
    """These are not kept: a workflow is shown with those of the policy as it is then."""
    return label_warnings(spec.labels, setup.settings.labels_config)


def _enter(
    site: Site,
    connection: sa.Connection,
    actor: Actor,
    pool: str,
    spec: WorkflowSpec,
    setup: Setup,
) -> tuple[TargetPool, WorkflowSpec, tuple[str, ...]]:
    """All checks that leave no record when they fail; the workflow as it is kept."""
    target, warnings = _check(site, actor, pool, spec, setup)
    _check_user(connection, actor, setup.settings)
    spec = open_stores(site, connection, actor, spec, target.pool.backend)
    return target, spec, (*warnings, *_warnings(site, connection, target, setup))


def _check(
    site: Site, actor: Actor, pool: str, spec: WorkflowSpec, setup: Setup
) -> tuple[TargetPool, tuple[str, ...]]:
    """Those of these checks that need nothing but the setup."""
    target = enter(site, actor, setup, pool)
    admission.check_form(spec, setup.settings)
    refuse_labels(spec.labels, setup.settings.labels_config)
    arrays.check_placeholders(spec)
    backend = target.pool.backend
    able = site.abilities_of(backend)
    check_abilities(spec, able, backend)
    check_data_urls(site, actor, spec, setup, backend)
    warnings = (
        *spec.warnings,
        *image_warnings(spec, runs_images=able.runs_images),
        *cautions(spec, target.pool, setup.settings, setup.largest(backend, most_needed(spec))),
    )
    return target, warnings


def _must_ask(site: Site, target: TargetPool, spec: WorkflowSpec, setup: Setup) -> bool:
    """Whether the other checks have anything to ask the database for."""
    return (
        setup.settings.max_num_workflows_per_user is not None
        or uses_stores(spec)
        or _is_offline(site, target.pool, setup.backends)
    )


def _default_limits(
    site: Site, setup: Setup, target: TargetPool, spec: WorkflowSpec
) -> DefaultLimits | None:
    """What bounds tasks that ask for no memory or disk, on the node that gives the least."""
    tasks = [task for group in spec.groups for task in group.tasks]
    backend = target.pool.backend
    bounded = site.abilities_of(backend).bounds_tasks
    if not bounded or all(t.requests.memory_bytes and t.storage_bytes for t in tasks):
        return None
    return setup.default_limits(backend)


def _check_user(connection: sa.Connection, actor: Actor, settings: WorkflowSettings) -> None:
    most = settings.max_num_workflows_per_user
    if most is not None and workflow_store.count_alive_of_user(connection, actor.name) >= most:
        raise Conflict(f"{actor.name} has {most} workflows already, the most that are allowed.")


def _warnings(
    site: Site, connection: sa.Connection, target: TargetPool, setup: Setup
) -> tuple[str, ...]:
    if not _is_offline(site, target.pool, setup.backends):
        return ()
    # It may have been heard of since.
    backends = node_store.backends(connection)
    if not _is_offline(site, target.pool, backends):
        return ()
    why = offline_reason(target.pool.backend, backends, site.clock.now_ms())
    return (f"Pool {target.name} is OFFLINE; the workflow waits until it is back. {why}",)


def _is_offline(site: Site, pool: Pool, backends: Mapping[str, BackendRecord]) -> bool:
    return status_of(pool, backends, site.clock.now_ms()) is PoolStatus.OFFLINE


# What is kept


def _keep(
    site: Site,
    connection: sa.Connection,
    actor: Actor,
    target: TargetPool,
    spec: WorkflowSpec,
    workflow: Workflow,
    held: Sequence[StoredPredecessor],
) -> None:
    new = _new_submission(site, actor, target, spec, workflow, held=bool(held))
    submission_store.add(connection, [new])
    replace = msgspec.structs.replace
    waits = [replace(each, workflow_uuid=workflow.uuid) for each in held]
    predecessor_store.insert(connection, waits)


def _new_submission(
    site: Site,
    actor: Actor,
    target: TargetPool,
    spec: WorkflowSpec,
    workflow: Workflow,
    *,
    held: bool = False,
) -> NewSubmission:
    subpool = None if target.subpool is None else target.subpool.subpool
    queue = site.leaf_queue(target.pool.name, subpool)
    subject = f"workflow/{workflow.workflow_id}"
    summary = {"pool": workflow.pool, "priority": workflow.priority, "queue": queue}
    entry = audit_entry(site, actor, Action.WORKFLOW_CREATE, subject, after=summary)
    event = StoredEvent(
        EventKind.WORKFLOW_SUBMITTED,
        workflow.submitted_ms,
        workflow.workflow_id,
        target.pool.name,
        data=entry.after,
    )
    groups = [
        draft_group(site, workflow, group, position, queue, held=held)
        for position, group in enumerate(spec.groups)
    ]
    tasks = [task for each in groups for task in draft_tasks(site, each)]
    return NewSubmission(workflow, spec.text, spec.template, entry, event, groups, tasks)


def _keep_refusal(
    site: Site,
    connection: sa.Connection,
    actor: Actor,
    target: TargetPool,
    spec: WorkflowSpec,
    workflow: Workflow,
    fault: str,
) -> None:
    """A record of what was refused, which is finished and so counts nowhere."""
    refused = msgspec.structs.replace(
        workflow,
        status=WorkflowStatus.FAILED_SUBMISSION,
        ended_ms=workflow.submitted_ms,
        failure_message=fault,
    )
    subject = f"workflow/{workflow.workflow_id}"
    entry = audit_entry(site, actor, "workflow:Refused", subject, after={"message": fault})
    event = StoredEvent(
        EventKind.WORKFLOW_REFUSED,
        workflow.submitted_ms,
        workflow.workflow_id,
        target.pool.name,
        fault,
    )
    new = NewSubmission(refused, spec.text, spec.template, entry, event)
    submission_store.add(connection, [new])
