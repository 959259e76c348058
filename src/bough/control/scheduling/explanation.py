"""Why a workflow waits, shown by planning: the certificate, and on request what would help.

The plan is that of what the store says now, by the server's policy (`live_plan`); nothing is
applied for a question. What is true of many groups is said once. What runs is explained, too: since
when, where, and whether it can be preempted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from bough.api.why import CertificateAnswer, RemedyList
from bough.control.gangs_of_groups import gang_name
from bough.control.people.access import allows, authorise, resource_of
from bough.control.pools.pool_setup import read_pool_setup
from bough.control.scheduling.plan_questions import Answers, GangAnswer, Question
from bough.control.site import Site
from bough.control.workflows import query
from bough.control.workflows.preemptions import PreemptionRecord
from bough.control.workflows.query import Why, WorkflowView
from bough.model.access import Action, Actor
from bough.model.workflow import QUEUED, Group, Task, TaskStatus, Workflow
from bough.store import change_records as record_store
from bough.store import nodes as node_store

#: How many groups or nodes a sentence names.
NAMED = 3


class Explained(msgspec.Struct, frozen=True):
    """Why one group waits, and all that wait like it."""

    group: str
    status: TaskStatus
    #: One word that programs can rely on, and a sentence for people.
    reason: str | None
    message: str | None
    #: The other groups of which all of this is true, and how many tasks they have all together.
    alike: tuple[str, ...] = ()
    tasks: int = 0
    #: `None` where it waits for other groups, or was decided meanwhile.
    certificate: CertificateAnswer | None = None
    #: `None` unless they were asked for.
    remedies: RemedyList | None = None
    #: When it had to end for others, in order.
    preemptions: tuple[PreemptionRecord, ...] = ()


class Runs(msgspec.Struct, frozen=True):
    """Groups that run: since when, where, and whether they can be preempted."""

    groups: tuple[str, ...]
    status: TaskStatus
    message: str
    since_ms: int | None
    #: How many of their tasks each node has.
    nodes: dict[str, int]
    #: GPUs that cannot be taken from them, and GPUs that can: those of LOW, and those beyond the
    #: minimum of an elastic group.
    guaranteed: int
    preemptible: int
    #: Tasks of an elastic group that do not run, and what a plan says about them.
    waiting_tasks: int = 0
    certificate: CertificateAnswer | None = None
    preemptions: tuple[PreemptionRecord, ...] = ()


class WorkflowExplanation(msgspec.Struct, frozen=True):
    """Why a workflow waits; no groups: nothing of it does."""

    workflow: Workflow
    groups: tuple[Explained, ...]
    running: tuple[Runs, ...] = ()


class Explainer:
    """Answers the questions that a server is asked."""

    def __init__(self, site: Site, ask: Callable[[Question], Answers]) -> None:
        """ask:  asks the plan of now (`live_plan`), wherever that is."""
        self._site = site
        self._ask = ask

    def explain(
        self, actor: Actor, name: str, *, with_remedies: bool = False, queues: bool = False
    ) -> WorkflowExplanation:
        """Why each waiting group of a workflow waits.

        Names are those of pools; on request those of queues, if the actor may list them.
        """
        site = self._site
        if queues:
            authorise(actor, Action.QUEUE_LIST, names=site.role_names)
        view = query.get_workflow(site, actor, name)
        waits = _told_once(view, query.reasons_of(view.groups, view.held))
        runs = self._with_troubles(view, _running(view))
        gangs = {group.name: gang_name(view.workflow, group) for group in view.groups}
        question = Question(
            actor.name,
            waiting=tuple(gangs[each.group] for each in waits if _is_planned(each)),
            growing=tuple(gangs[each.groups[0]] for each in runs if each.waiting_tasks),
            queues=queues,
            pools=self._open_pools(actor) if with_remedies else None,
        )
        if question.waiting or question.growing:
            found = self._ask(question)
            waits = [_explained(each, found.get(gangs[each.group])) for each in waits]
            runs = [_growing(each, found.get(gangs[each.groups[0]])) for each in runs]
        return WorkflowExplanation(view.workflow, tuple(waits), tuple(runs))

    def _with_troubles(self, view: WorkflowView, runs: list[Runs]) -> list[Runs]:
        """The same, with what keeps groups from being started, or from being heard of."""
        with self._site.store.read() as connection:
            backends = node_store.backends(connection)
            errors = record_store.outbox_errors(connection, view.workflow.workflow_id)
        uuids = {group.name: group.uuid for group in view.groups}
        found: list[Runs] = []
        for each in runs:
            held = {task.backend for name in each.groups for task in view.tasks[name]}
            troubles = [
                record.fault
                for record in backends.values()
                if record.name in held and record.fault is not None
            ]
            uuid = next((uuids[name] for name in each.groups if uuids[name] in errors), None)
            if uuid is not None:
                troubles.append(f"It could not be started so far: {errors[uuid]}")
            troubles += self._said_elsewhere(view, each)
            message = ". ".join([each.message, *(text.rstrip(".") for text in troubles)])
            found.append(msgspec.structs.replace(each, message=message))
        return found

    def _said_elsewhere(self, view: WorkflowView, runs: Runs) -> list[str]:
        """What the scheduler of a cluster says of tasks that wait for it, each thing once."""
        if not self._site.is_placed_elsewhere(view.workflow.backend):
            return []
        waiting = [
            task
            for name in runs.groups
            for task in view.tasks[name]
            if task.status is TaskStatus.INITIALIZING and task.node is None
        ]
        said = sorted({task.failure_message for task in waiting if task.failure_message})
        if waiting and not said:
            said = ["it has said nothing yet"]
        return [f"It has its quota and waits for the cluster's scheduler: {each}" for each in said]

    def _open_pools(self, actor: Actor) -> frozenset[str]:
        """The pools that an actor may submit to."""
        names = self._site.role_names
        with self._site.store.read() as connection:
            config = read_pool_setup(connection)
        return frozenset(
            pool.name
            for pool in config.pools
            if allows(actor, Action.WORKFLOW_CREATE, resource_of(pool), names)
        )


def _explained(wait: Explained, found: GangAnswer | None) -> Explained:
    """The same, with what a plan says about it."""
    if found is None:
        return wait
    return msgspec.structs.replace(
        wait,
        reason=found.reason,
        message=found.sentence,
        certificate=found.certificate,
        remedies=found.remedies,
    )


def _growing(runs: Runs, found: GangAnswer | None) -> Runs:
    """An elastic group of which some tasks wait, with what a plan says about these."""
    if found is None:
        return runs
    message = f"{runs.message}: {found.sentence}"
    return msgspec.structs.replace(runs, message=message, certificate=found.certificate)


def _is_planned(wait: Explained) -> bool:
    """Whether it is in a queue, and does not wait for other groups."""
    return wait.status is not TaskStatus.WAITING


# What waits


def _told_once(view: WorkflowView, waits: Sequence[Why]) -> list[Explained]:
    """Groups of the same shape that wait for the same as one, in the order of the workflow."""
    groups = {group.name: group for group in view.groups}
    classes: dict[tuple[object, ...], list[Why]] = {}
    for wait in waits:
        group = groups[wait.group]
        own = gang_name(view.workflow, group)
        message = (wait.message or "").replace(own, "")
        key = (wait.status, wait.reason, message, *_shape(group))
        classes.setdefault(key, []).append(wait)
    return [
        Explained(
            first.group,
            first.status,
            first.reason,
            first.message,
            alike=tuple(each.group for each in others),
            tasks=sum(len(groups[each.group].spec.tasks) for each in (first, *others)),
            preemptions=view.preemptions.get(first.group, ()),
        )
        for first, *others in classes.values()
    ]


def _shape(group: Group) -> tuple[object, ...]:
    """What a plan looks at; groups that agree in it and in their queue are planned alike."""
    spec = group.spec
    requests = Counter(
        (msgspec.json.encode(task.requests), task.platform, task.nodes_excluded)
        for task in spec.tasks
    )
    return (group.queue, frozenset(requests.items()), spec.minimum, len(spec.subgroups))


# What runs


def _running(view: WorkflowView) -> list[Runs]:
    """All groups that run as one, but those that still want something, or were preempted."""
    together: dict[str, list[Group]] = {}
    for group in view.groups:
        if group.status.holds_node:
            apart = _waiting(view, group) or group.name in view.preemptions
            together.setdefault(group.name if apart else group.status, []).append(group)
    return [_runs(view, groups) for groups in together.values()]


def _runs(view: WorkflowView, groups: list[Group]) -> Runs:
    held = [task for group in groups for task in view.tasks[group.name] if task.status.holds_node]
    preemptible = view.workflow.priority.preemptible
    losable = sum(task.gpus for task in held if preemptible or task.growth)
    since = min((task.started_ms or task.scheduled_ms or 0 for task in held), default=None)
    waiting = sum(len(_waiting(view, group)) for group in groups)
    runs = Runs(
        groups=tuple(group.name for group in groups),
        status=groups[0].status,
        message="",
        since_ms=since,
        nodes=dict(Counter(task.node or "" for task in held)),
        guaranteed=sum(task.gpus for task in held) - losable,
        preemptible=losable,
        waiting_tasks=waiting,
        preemptions=view.preemptions.get(groups[0].name, ()),
    )
    return msgspec.structs.replace(runs, message=_say_runs(runs))


def _waiting(view: WorkflowView, group: Group) -> list[Task]:
    return [task for task in view.tasks[group.name] if task.status in QUEUED]


def _say_runs(runs: Runs) -> str:
    one = len(runs.groups) == 1
    does = "runs" if one else "run"
    if runs.status is TaskStatus.INITIALIZING:
        does = "is being started" if one else "are being started"
    since = ""
    if runs.since_ms is not None:
        since = (
            f" since {datetime.fromtimestamp(runs.since_ms // 1_000, UTC):%Y-%m-%d %H:%M:%S} UTC"
        )
    shares = [
        *([f"{_gpus(runs.guaranteed)} guaranteed"] if runs.guaranteed else []),
        *([f"{_gpus(runs.preemptible)} that may be preempted"] if runs.preemptible else []),
    ]
    where = _name_some(
        [f"{node or 'no node yet'} ({count})" for node, count in runs.nodes.items()], "nodes"
    )
    text = f"{_name_some(runs.groups, 'groups')} {does}{since} on {where}"
    text += f": {' and '.join(shares) or 'without GPUs'}"
    if runs.waiting_tasks:
        tasks = "1 task waits" if runs.waiting_tasks == 1 else f"{runs.waiting_tasks} tasks wait"
        text += f"; {tasks}"
    return text


def _name_some(names: Iterable[str], what: str) -> str:
    listed = list(names)
    if len(listed) <= NAMED + 1:
        return ", ".join(listed)
    return f"{', '.join(listed[:NAMED])} and {len(listed) - NAMED} more {what}"


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"
