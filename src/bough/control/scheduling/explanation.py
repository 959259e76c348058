"""Why a workflow waits, shown by planning: the certificate, and on request what would help.

The plan is made from what the store says now, by the server's policy, and nothing of it is applied.
One question at a time, so that many questions do not keep the scheduler from its work. What is the
same for many groups is told once. What runs is explained, too: since when, where, and by which
right.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from bough.api.why import CertificateAnswer, RemedyList
from bough.control.gangs import gang_name
from bough.control.people.access import allows, authorise, resource_of
from bough.control.pools.pool_config import read_pool_setup
from bough.control.pools.queue_names import PoolWords
from bough.control.scheduling.pool_remedies import PoolSource
from bough.control.scheduling.snapshot import SnapshotBuilder, SnapshotView
from bough.control.site import Site
from bough.control.workflows import query
from bough.control.workflows.preemptions import PreemptionRecord
from bough.control.workflows.query import Why, WorkflowView
from bough.core.cycle.memo import Memo
from bough.core.explain.certificate import certificate
from bough.core.explain.growth import explain_growth
from bough.core.explain.remedies import remedies
from bough.errors import Throttled
from bough.formats.certificates import certificate_answer, remedy_list
from bough.model.access import Action, Actor
from bough.model.reason import WaitReason
from bough.model.snapshot import Snapshot
from bough.model.words import OBJECT_WORDS, Words
from bough.model.workflow import QUEUED, Group, Task, TaskStatus, Workflow
from bough.store import nodes as node_store
from bough.store import records as record_store

#: How long a question waits for its turn, and how many plans are made to find remedies.
TURN_S = 20
MOST_PLANS = 20
#: So many groups or nodes are named in a sentence.
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
    """Groups that run: since when, where, and by which right."""

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
    """Answers all questions that one server is asked.

    What was read and made for one is kept for the next, so that only what has changed since is read
    and made again.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._turn = threading.Lock()
        self._builder: SnapshotBuilder | None = None
        self._memo = Memo()

    def explain(
        self, actor: Actor, name: str, *, with_remedies: bool = False, queues: bool = False
    ) -> WorkflowExplanation:
        """Why each group of a workflow that waits does.

        Names are those of pools; on request those of queues, if the actor may list them.
        """
        site = self._site
        if queues:
            authorise(actor, Action.QUEUE_LIST, names=site.role_names)
        view = query.get_workflow(site, actor, name)
        waits = _told_once(view, query.why(site, actor, name))
        runs = self._with_troubles(view, _running(view))
        if any(_is_planned(each) for each in waits) or any(each.waiting_tasks for each in runs):
            gangs = {group.name: gang_name(view.workflow, group) for group in view.groups}
            words = OBJECT_WORDS if queues else PoolWords(site)
            waits, runs = self._plan(gangs, waits, runs, words, actor if with_remedies else None)
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
            message = ". ".join([each.message, *(text.rstrip(".") for text in troubles)])
            found.append(msgspec.structs.replace(each, message=message))
        return found

    def _plan(
        self,
        gangs: dict[str, str],
        waits: list[Explained],
        runs: list[Runs],
        words: Words,
        asker: Actor | None,
    ) -> tuple[list[Explained], list[Runs]]:
        """The same, with what a plan of now says about each group that is in a queue.

        asker:  the one that wants remedies; `None`: no one does.
        """
        if not self._turn.acquire(timeout=TURN_S):
            raise Throttled("Too many ask why their work waits; try again.")
        try:
            snapshot_view = self._take()
            return [
                self._explained(snapshot_view, gangs[each.group], each, words, asker)
                if _is_planned(each)
                else each
                for each in waits
            ], [
                self._growing(snapshot_view, gangs[each.groups[0]], each, words)
                if each.waiting_tasks
                else each
                for each in runs
            ]
        except BaseException:
            # Nothing is kept that may be half done.
            self._builder = None
            raise
        finally:
            self._turn.release()

    def _take(self) -> SnapshotView:
        if self._builder is None:
            self._builder, self._memo = SnapshotBuilder(self._site), Memo()
        self._builder.reread_nominated()
        return self._builder.take()

    def _source(self, snapshot: Snapshot, asker: Actor) -> PoolSource:
        site, action = self._site, Action.WORKFLOW_CREATE
        with site.store.read() as connection:
            config = read_pool_setup(connection)
        allowed = {
            pool.name
            for pool in config.pools
            if allows(asker, action, resource_of(pool), site.role_names)
        }
        return PoolSource(snapshot, config, site.namespace, site.prefix, allowed)

    def _explained(
        self,
        snapshot_view: SnapshotView,
        gang: str,
        wait: Explained,
        words: Words,
        asker: Actor | None,
    ) -> Explained:
        snapshot, policy = snapshot_view.snapshot, snapshot_view.policy
        entry = snapshot_view.entries.get(gang)
        if entry is not None and entry.pool in snapshot_view.offline:
            # Whatever a plan says of it, nothing can start there.
            offline, reason = snapshot_view.offline[entry.pool], WaitReason.BACKEND.value
            return msgspec.structs.replace(wait, reason=reason, message=offline)
        found = certificate(snapshot, policy, gang, self._memo, words)
        helpful: RemedyList | None = None
        if asker is not None:
            source = self._source(snapshot, asker)
            searched = remedies(snapshot, policy, gang, most_plans=MOST_PLANS, source=source)
            helpful = remedy_list(searched, words)
        return msgspec.structs.replace(
            wait,
            reason=wait.reason if found is None else found.reason,
            message=wait.message if found is None else found.sentence,
            certificate=certificate_answer(found, words),
            remedies=helpful,
        )

    def _growing(self, snapshot_view: SnapshotView, gang: str, runs: Runs, words: Words) -> Runs:
        """An elastic group of which some tasks wait, with what a plan says about these."""
        snapshot, policy = snapshot_view.snapshot, snapshot_view.policy
        wanted = explain_growth(snapshot, policy, gang, words=words)
        if wanted is None:
            return runs
        message = f"{runs.message}: {wanted.sentence}"
        told = certificate_answer(wanted.certificate, words)
        return msgspec.structs.replace(runs, message=message, certificate=told)


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
    where = _name_some([f"{node} ({count})" for node, count in runs.nodes.items()], "nodes")
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
