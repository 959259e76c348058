"""What is sent as a workflow, or was sent before, into a spec: rendered, read, with additions."""

from __future__ import annotations

import msgspec

from bough.control.people.access import allows, resource_of_workflow
from bough.control.setup_cache import Setup
from bough.control.site import Site
from bough.control.workflows.apps import app_of
from bough.control.workflows.query import get_spec, get_workflow
from bough.control.workflows.rendering import Rendered, render
from bough.control.workflows.specs import (
    read_spec,
    recall_spec,
    with_environment,
    with_environment_of,
    with_project,
    with_retries,
)
from bough.errors import Forbidden, Invalid
from bough.formats.workflow.array import parse_array
from bough.formats.workflow.templates import is_template
from bough.formats.workflow.values import workflow_fault
from bough.model.access import Action, Actor
from bough.model.array import ArraySpec
from bough.model.task_template import CredentialUse
from bough.model.workflow import Predecessor, WorkflowSpec
from bough.store import credentials as credential_store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store

#: Other workflows that the tasks of one can read from.
MAXIMUM_OTHERS = 100


class Sent(msgspec.Struct, frozen=True):
    """A workflow as it is sent."""

    text: str
    #: `name=value`, typed as YAML types them, and always text.
    variables: tuple[str, ...] = ()
    strings: tuple[str, ...] = ()
    #: What the text was rendered from before it was sent; it is not rendered again then.
    template: str | None = None


class Additions(msgspec.Struct, frozen=True):
    """What a submission adds to the workflow's own."""

    labels: dict[str, str] = {}
    environment: dict[str, str] = {}
    #: Workflows that it starts after, and those that must have completed then.
    after: tuple[str, ...] = ()
    afterok: tuple[str, ...] = ()
    #: For tasks that say nothing about it.
    retries: int | None = None
    #: As `0-49%8`.
    array: str | None = None
    #: The URL of a folder that was uploaded for it, for the working folder of every task.
    upload: str | None = None


def read_sent(
    site: Site,
    actor: Actor,
    sent: Sent,
    more: Additions,
    *,
    uploading: bool = False,
    strict_osmo: bool = False,
) -> WorkflowSpec:
    """Read what is sent; a template is rendered first.

    With `uploading`, files may still be on the submitter's machine, and credentials unknown; with
    `strict_osmo`, what OSMO would refuse is refused too.
    """
    if sent.template is None:
        rendered = render(sent.text, sent.variables, sent.strings, actor.name)
    else:
        rendered = Rendered(sent.text, sent.template)
    spec = _read(site, rendered, more.labels, uploading=uploading, strict_osmo=strict_osmo)
    spec = _with_additions(spec, more)
    if not uploading:
        check_uses(site, actor, spec)
        spec = _wait_for_inputs(site, spec)
    return spec


def recall_sent(
    setup: Setup, sent: Sent, more: Additions, *, strict_osmo: bool = False
) -> WorkflowSpec | None:
    """Read what is sent, if it was read before and nothing in it has to be asked for."""
    if sent.template is not None or sent.variables or sent.strings:
        return None
    most = setup.settings.max_num_tasks
    spec = recall_spec(sent.text, more.labels, maximum_tasks=most, strict_osmo=strict_osmo)
    # Only small texts are kept, so this is quick then.
    if spec is None or is_template(sent.text):
        return None
    spec = _with_additions(spec, more)
    return None if _credential_uses(spec) or _readers(spec) else spec


def read_again(site: Site, actor: Actor, workflow_id: str, more: Additions) -> WorkflowSpec:
    """Read a workflow that was submitted before, with all that was added to it then."""
    earlier = get_workflow(site, actor, workflow_id)
    text = get_spec(site, actor, workflow_id)
    template = get_spec(site, actor, workflow_id, template=True)
    labels = {**earlier.workflow.labels, **more.labels}
    rendered = Rendered(text, None if template == text else template)
    spec = _read(site, rendered, labels, uploading=False)
    check_uses(site, actor, spec)
    spec = with_environment_of(spec, (group.spec for group in earlier.groups))
    spec = msgspec.structs.replace(spec, app=app_of(earlier.workflow))
    return _wait_for_inputs(site, _with_additions(spec, more))


def _with_additions(spec: WorkflowSpec, more: Additions) -> WorkflowSpec:
    after = {each.workflow: each for each in spec.after}
    for field, names in (("after", more.after), ("afterok", more.afterok)):
        for name in names:
            fault = workflow_fault(name)
            if fault is not None:
                raise Invalid(f"{field}: {fault}.")
            after[name] = Predecessor(name, completed=field == "afterok")
    spec = msgspec.structs.replace(spec, after=tuple(after.values()))
    if more.array is not None:
        spec = msgspec.structs.replace(spec, array=_parse_array(more.array))
    spec = with_project(spec, more.upload)
    return with_retries(with_environment(spec, more.environment), more.retries)


def _parse_array(text: str) -> ArraySpec:
    try:
        return parse_array(text)
    except Invalid as error:
        raise Invalid(f"array: {error.message}.") from None


def check_uses(site: Site, actor: Actor, spec: WorkflowSpec) -> None:
    """Refuse credentials and workflows that the submitter does not have or may not read."""
    _check_credentials(site, actor, spec)
    _check_inputs(site, actor, spec)


def _check_credentials(site: Site, actor: Actor, spec: WorkflowSpec) -> None:
    """A task that would not find its credential would fail when it starts."""
    uses = _credential_uses(spec)
    if not uses:
        return
    with site.store.read() as connection:
        owned = credential_store.of_user(connection, actor.name)
    keys = {each.name: each.keys for each in owned}
    for task, use in uses:
        if use.name not in keys:
            raise Invalid(
                f"Task {task} uses the credential {use.name}, which {actor.name} does not have.",
                hint=f"set it with: bough credential set {use.name}",
            )
        for key in use.variables.values():
            if key not in keys[use.name]:
                raise Invalid(
                    f"Task {task} uses {key} of the credential {use.name}, which has only "
                    f"{', '.join(keys[use.name])}."
                )


def _check_inputs(site: Site, actor: Actor, spec: WorkflowSpec) -> None:
    """Outputs of other workflows need the right to read these workflows."""
    readers = _readers(spec)
    if len(readers) > MAXIMUM_OTHERS:
        raise Invalid(
            f"The tasks read from {len(readers)} other workflows; at most {MAXIMUM_OTHERS} are "
            "possible."
        )
    for workflow_id, task in readers.items():
        resource = resource_of_workflow(site, workflow_id)
        if resource is None:
            raise Invalid(f"Task {task} reads from workflow {workflow_id}, which does not exist.")
        if not allows(actor, Action.WORKFLOW_READ, resource, site.role_names):
            raise Forbidden(
                f"Task {task} reads from workflow {workflow_id}, which {actor.name} may not read."
            )


def _credential_uses(spec: WorkflowSpec) -> list[tuple[str, CredentialUse]]:
    """Which tasks use which credentials."""
    return [
        (task.name, use)
        for group in spec.groups
        for task in group.tasks
        for use in (task.launch.credentials if task.launch is not None else ())
    ]


def _readers(spec: WorkflowSpec) -> dict[str, str]:
    """Other workflows that tasks read from, each with one of these tasks."""
    return {
        each.workflow: task.name
        for group in spec.groups
        for task in group.tasks
        for each in (task.launch.inputs if task.launch is not None else ())
        if each.workflow is not None
    }


def _read(
    site: Site,
    rendered: Rendered,
    labels: dict[str, str],
    *,
    uploading: bool,
    strict_osmo: bool = False,
) -> WorkflowSpec:
    settings = site.kept.latest_setup(site.store).settings
    spec = read_spec(
        rendered.text,
        labels,
        template=rendered.template,
        maximum_tasks=settings.max_num_tasks,
        uploading=uploading,
        strict_osmo=strict_osmo,
    )
    warnings = (*rendered.warnings, *spec.warnings)
    return msgspec.structs.replace(spec, warnings=warnings)


def _wait_for_inputs(site: Site, spec: WorkflowSpec) -> WorkflowSpec:
    """The same workflow, made to start after those that have not produced its inputs yet.

    It does not matter how they end: what counts is whether the task it reads from completed, and
    that is checked when the reader starts.
    """
    wanted: dict[str, set[str]] = {}
    for group in spec.groups:
        for task in group.tasks:
            for each in task.launch.inputs if task.launch is not None else ():
                if each.workflow is not None and each.task is not None:
                    wanted.setdefault(each.workflow, set()).add(each.task)
    if not wanted:
        return spec
    known = {each.workflow for each in spec.after}
    with site.store.read() as connection:
        found = workflow_store.named(connection, sorted(set(wanted) - known))
        alive = {each.uuid: each.workflow_id for each in found if not each.status.finished}
        names = {task for tasks in wanted.values() for task in tasks}
        completed = task_store.completed(connection, sorted(alive), names) if alive else []
    left = {(alive[each.workflow_uuid], each.name) for each in completed}
    more = tuple(
        Predecessor(name)
        for name in sorted(alive.values())
        if any((name, task) not in left for task in wanted[name])
    )
    return msgspec.structs.replace(spec, after=(*spec.after, *more)) if more else spec
