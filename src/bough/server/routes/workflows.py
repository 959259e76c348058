"""Workflows: submit, list, show, cancel, and why they wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from litestar.params import FromPath, FromQuery, JSONBody

from bough.api.why import WhyAnswer, WhyGroup, WhyRunning
from bough.api.workflows import (
    ArrayDocument,
    ArrayPage,
    DefaultTaskLimits,
    Submission,
    TemplateSpec,
    UpdateWorkflow,
    WorkflowDocument,
    WorkflowName,
    WorkflowPage,
)
from bough.control.scheduling.explanation import Explained, Explainer, Runs
from bough.control.workflows import (
    apps,
    arrays,
    moving,
    query,
    read_submission,
    restarting,
    submission,
)
from bough.control.workflows.label_selectors import read_selector
from bough.control.workflows.submission import Accepted, SubmitMode
from bough.errors import Invalid
from bough.model.access import Action
from bough.model.words import write_amount
from bough.model.workflow import Priority, WorkflowStatus
from bough.server.answer_cache import keep_until_change
from bough.server.awaited_submissions import AwaitedSubmissions
from bough.server.permissions import Scope
from bough.server.route_declaration import (
    Limit,
    Offset,
    OptionalNumber,
    Visit,
    WorkLimit,
    caller,
    route,
)
from bough.server.values import chosen_pools, read_pairs, read_time_ms, time_text
from bough.server.workflow_documents import (
    Links,
    array_document,
    preemption_lines,
    workflow_document,
    workflow_line,
)

VALIDATED = "Workflow validation succeeded."
#: Submissions of one user at a time: templates may take long, and other users wait for theirs.
SUBMISSIONS = 8


async def _submit_known(
    request: Visit,
    pool: str,
    data: TemplateSpec | None,
    priority: Priority,
    strict_osmo: bool,
    **asked: Any,
) -> Submission | None:
    """The same as `submit`, where nothing has to be asked for before it is written."""
    named = asked["workflow_id"] is not None or asked["app_uuid"] is not None
    if data is None or named or asked["dry_run"] or asked["validation_only"]:
        return None
    site, actor = caller(request)
    more = _additions(asked)
    drafted = submission.draft_known(
        site, actor, pool, _sent(data), more, priority, strict_osmo=strict_osmo
    )
    if drafted is None:
        return None
    awaited: AwaitedSubmissions = request.app.state.awaited_submissions
    new = await awaited.keep(drafted.draft)
    return None if new is None else _submission(Links(request), drafted.accepted(site, new))


@route(
    "POST",
    "/api/pool/{pool:str}/workflow",
    Action.WORKFLOW_CREATE,
    Scope.POOL,
    at_once=SUBMISSIONS,
    unthreaded=_submit_known,
)
def submit(
    request: Visit,
    pool: FromPath[str],
    data: JSONBody[TemplateSpec | None] = None,
    workflow_id: FromQuery[str | None] = None,
    priority: FromQuery[Priority] = Priority.NORMAL,
    dry_run: FromQuery[bool] = False,
    validation_only: FromQuery[bool] = False,
    label: FromQuery[list[str] | None] = None,
    env_vars: FromQuery[list[str] | None] = None,
    after: FromQuery[list[str] | None] = None,
    afterok: FromQuery[list[str] | None] = None,
    retries: OptionalNumber = None,
    array: FromQuery[str | None] = None,
    strict_osmo: FromQuery[bool] = False,
    app_uuid: FromQuery[str | None] = None,
    app_version: OptionalNumber = None,
    upload: FromQuery[str | None] = None,
) -> Submission:
    """Submit a workflow, new or by the ID of an earlier one; if accepted, it is stored.

    `upload` is a folder of a pool's data, `bough://POOL/path`, which every task finds in its
    working folder.

    `app_uuid` and `app_version` say which app it was made from; lists can be filtered by it.

    A template is rendered; what comes with the template that it was made from is not. A dry run
    answers with what was rendered, and checks nothing but its form. It starts after the end of the
    workflows in `after`, and only if those in `afterok` completed; `retries` is for tasks that say
    nothing about it. With an `array` (`0-49%8`) it is there so many times. With
    `strict_osmo`, a workflow in the body that an OSMO server would refuse is refused.
    """
    site, actor = caller(request)
    more = _additions(
        {
            "label": label,
            "env_vars": env_vars,
            "after": after,
            "afterok": afterok,
            "retries": retries,
            "array": array,
            "upload": upload,
        }
    )
    if (data is None) == (workflow_id is None):
        raise Invalid("Send either a workflow in the body or a workflow_id, not both.")
    if data is not None:
        spec = read_submission.read_sent(
            site, actor, _sent(data), more, uploading=dry_run, strict_osmo=strict_osmo
        )
    else:
        spec = read_submission.read_again(site, actor, workflow_id or "", more)
    if app_uuid is not None:
        source = apps.source_of(site, actor, app_uuid, app_version)
        spec = msgspec.structs.replace(spec, app=source)
    mode = SubmitMode.VALIDATE if validation_only else SubmitMode.SUBMIT
    accepted = submission.submit(
        site, actor, pool, spec, priority, mode=SubmitMode.DRY_RUN if dry_run else mode
    )
    links = Links(request)
    if accepted.workflow is None and accepted.array is None:
        return Submission(
            name=spec.name,
            overview=links.overview(spec.name),
            logs=None if dry_run else VALIDATED,
            spec=spec.text if dry_run else None,
            warnings=list(spec.warnings if dry_run else accepted.warnings),
        )
    return _submission(links, accepted)


@route(
    "POST",
    "/api/pool/{pool:str}/workflow/{workflow:str}/restart",
    Action.WORKFLOW_CREATE,
    Scope.POOL,
)
def restart(request: Visit, pool: FromPath[str], workflow: FromPath[str]) -> Submission:
    """Submit a failed workflow again, without its completed groups."""
    site, actor = caller(request)
    return _submission(Links(request), restarting.restart(site, actor, workflow, pool))


@route("GET", "/api/workflow", Action.WORKFLOW_LIST)
def list_workflows(
    request: Visit,
    users: FromQuery[list[str] | None] = None,
    all_users: FromQuery[bool] = False,
    name: FromQuery[str] = "",
    statuses: FromQuery[list[WorkflowStatus] | None] = None,
    pools: FromQuery[list[str] | None] = None,
    all_pools: FromQuery[bool] = False,
    priority: FromQuery[list[Priority] | None] = None,
    label: FromQuery[list[str] | None] = None,
    no_label: FromQuery[list[str] | None] = None,
    tags: FromQuery[list[str] | None] = None,
    app: FromQuery[str | None] = None,
    array: FromQuery[str] = "",
    elements: FromQuery[bool] = True,
    submitted_after: FromQuery[str | None] = None,
    submitted_before: FromQuery[str | None] = None,
    order: FromQuery[str] = "DESC",
    limit: WorkLimit = 20,
    offset: Offset = 0,
) -> WorkflowPage:
    """A page of workflows: by default the caller's own.

    `label` is `key` or `key=value`, with `*` for any text and `(a|b)` for either in the value.
    Elements of arrays are workflows, too; `elements=false` leaves them out, `array` asks for those
    of one.
    """
    site, actor = caller(request)
    source = None if app is None else apps.find_filter(site, actor, app)
    if app is not None and source is None:
        return WorkflowPage([], more_entries=False)
    wanted = query.Filter(
        users=() if all_users else tuple(users or (actor.name,)),
        name=name,
        statuses=tuple(statuses or ()),
        pools=chosen_pools(site, actor, pools, all_pools=all_pools),
        priorities=tuple(priority or ()),
        submitted_after_ms=read_time_ms("submitted_after", submitted_after),
        submitted_before_ms=read_time_ms("submitted_before", submitted_before),
        labels=tuple(map(read_selector, label or ())),
        no_labels=tuple(no_label or ()),
        tags=tuple(tags or ()),
        app=source,
        array=array,
        elements=elements,
        newest_first=order.upper() != "ASC",
        limit=limit,
        offset=offset,
    )
    keep_until_change(request)
    return _page(request, wanted)


@route("GET", "/api/array", Action.WORKFLOW_LIST)
def list_arrays(
    request: Visit,
    users: FromQuery[list[str] | None] = None,
    all_users: FromQuery[bool] = False,
    pools: FromQuery[list[str] | None] = None,
    all_pools: FromQuery[bool] = False,
    limit: Limit = 20,
    offset: Offset = 0,
) -> ArrayPage:
    """A page of arrays, newest first: by default the caller's own."""
    site, actor = caller(request)
    chosen = chosen_pools(site, actor, pools, all_pools=all_pools)
    wanted = () if all_users else tuple(users or (actor.name,))
    found, more = arrays.list_arrays(site, actor, wanted, chosen, limit, offset)
    return ArrayPage([array_document(each) for each in found], more_entries=more)


@route("GET", "/api/array/{workflow:str}", Action.WORKFLOW_READ, Scope.WORKFLOW)
def get_array(request: Visit, workflow: FromPath[str]) -> ArrayDocument:
    """One array, by identifier or uuid."""
    site, actor = caller(request)
    return array_document(arrays.get_array(site, actor, workflow))


@route("GET", "/api/workflow/{workflow:str}", Action.WORKFLOW_READ, Scope.WORKFLOW)
def get_workflow(
    request: Visit,
    workflow: FromPath[str],
    verbose: FromQuery[bool] = False,
    skip_groups: FromQuery[bool] = False,
) -> WorkflowDocument:
    """One workflow, by identifier or uuid; on request with all attempts of its tasks."""
    site, actor = caller(request)
    view = query.get_workflow(site, actor, workflow, every_attempt=verbose)
    if skip_groups:
        view = msgspec.structs.replace(view, groups=())
    return workflow_document(view, Links(request), site)


@route("PATCH", "/api/workflow/{workflow:str}", Action.WORKFLOW_UPDATE, Scope.WORKFLOW)
def update_workflow(
    request: Visit, workflow: FromPath[str], data: JSONBody[UpdateWorkflow]
) -> WorkflowDocument:
    """Change the pool or the priority of a workflow that holds no GPUs.

    It is checked as a submission to that pool, and keeps its submit time.
    """
    site, actor = caller(request)
    priority = None if data.priority is None else Priority(data.priority)
    moved = moving.move_workflow(site, actor, workflow, data.pool, priority)
    view = query.get_workflow(site, actor, moved.uuid)
    return workflow_document(view, Links(request), site)


@route("POST", "/api/workflow/{workflow:str}/cancel", Action.WORKFLOW_CANCEL, Scope.WORKFLOW)
def cancel(
    request: Visit,
    workflow: FromPath[str],
    message: FromQuery[str] = "",
    force: FromQuery[bool] = False,
) -> WorkflowName:
    """Cancel a workflow, or an array with all its elements; running tasks are stopped."""
    site, actor = caller(request)
    return WorkflowName(arrays.cancel(site, actor, workflow, message=message, force=force))


@route("POST", "/api/workflow/{workflow:str}/tag", Action.WORKFLOW_UPDATE, Scope.WORKFLOW)
def tag(
    request: Visit,
    workflow: FromPath[str],
    add: FromQuery[list[str] | None] = None,
    remove: FromQuery[list[str] | None] = None,
) -> None:
    """Add tags to a workflow, and remove tags from it."""
    site, actor = caller(request)
    query.tag(site, actor, workflow, add or (), remove or ())


@route("GET", "/api/workflow/{workflow:str}/why", Action.WORKFLOW_READ, Scope.WORKFLOW)
def why(
    request: Visit,
    workflow: FromPath[str],
    remedies: FromQuery[bool] = False,
    queues: FromQuery[bool] = False,
) -> WhyAnswer:
    """Why a workflow waits, for each group, with certificates; on request, what would help."""
    explainer: Explainer = request.app.state.explainer
    found = explainer.explain(request.user, workflow, with_remedies=remedies, queues=queues)
    name, status = found.workflow.workflow_id, found.workflow.status
    message = f"Nothing of {name} waits; it is {status}."
    if found.workflow.failure_message:
        message = f"{message} {found.workflow.failure_message}"
    if found.groups:
        message = f"{found.groups[0].group}: {found.groups[0].message}"
    elif found.running:
        message = "\n".join([message, *(each.message for each in found.running)])
    groups = [_why_group(each) for each in found.groups]
    return WhyAnswer(name, status, message, groups, [_why_running(each) for each in found.running])


def _why_group(found: Explained) -> WhyGroup:
    return WhyGroup(
        group=found.group,
        status=found.status,
        reason=found.reason,
        message=found.message,
        alike=list(found.alike),
        tasks=found.tasks,
        certificate=found.certificate,
        remedies=found.remedies,
        preemptions=preemption_lines(found.preemptions),
    )


def _why_running(found: Runs) -> WhyRunning:
    return WhyRunning(
        groups=list(found.groups),
        status=found.status,
        message=found.message,
        since=time_text(found.since_ms),
        nodes=found.nodes,
        guaranteed=found.guaranteed,
        preemptible=found.preemptible,
        waiting_tasks=found.waiting_tasks,
        certificate=found.certificate,
        preemptions=preemption_lines(found.preemptions),
    )


def _page(request: Visit, wanted: query.Filter) -> WorkflowPage:
    site, actor = caller(request)
    page = query.list_workflows(site, actor, wanted)
    links, now_ms = Links(request), site.clock.now_ms()
    lines = [
        workflow_line(each, page.demand(each), links, now_ms, page.app_of(each))
        for each in page.workflows
    ]
    return WorkflowPage(lines, more_entries=page.more)


def _additions(asked: Mapping[str, Any]) -> read_submission.Additions:
    """What the query of a submission adds to the workflow."""
    return read_submission.Additions(
        labels=read_pairs("label", asked["label"]),
        environment=read_pairs("env_vars", asked["env_vars"]),
        after=tuple(asked["after"] or ()),
        afterok=tuple(asked["afterok"] or ()),
        retries=asked["retries"],
        array=asked["array"],
        upload=asked["upload"],
    )


def _sent(data: TemplateSpec) -> read_submission.Sent:
    return read_submission.Sent(
        text=data.file,
        variables=tuple(data.set_variables),
        strings=tuple(data.set_string_variables),
        template=data.uploaded_templated_spec,
    )


def _submission(links: Links, accepted: Accepted) -> Submission:
    array = accepted.array
    name = "" if accepted.workflow is None else accepted.workflow.workflow_id
    name = name if array is None else array.array_id
    limits = accepted.default_limits
    return Submission(
        name=name,
        overview=links.overview(name),
        logs=links.logs(name),
        warnings=list(accepted.warnings),
        elements=None if array is None else array.count,
        default_limits=None
        if limits is None
        else DefaultTaskLimits(
            memory=write_amount("memory", limits.memory_bytes),
            storage=write_amount("storage", limits.storage_bytes),
        ),
    )


HANDLERS = (
    submit,
    restart,
    list_workflows,
    list_arrays,
    get_array,
    get_workflow,
    update_workflow,
    cancel,
    tag,
    why,
)
