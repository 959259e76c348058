"""Sends decisions to the backends, after the transaction that decided. Repeating is harmless.

A message names attempts; their specs, and the secrets that they may see, are looked up when the
backend is told, and kept nowhere else.
"""

from __future__ import annotations

import errno
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from bough.control.config.label_policy import labels_on_pods
from bough.control.config.pod_templates import read_templates
from bough.control.config.policy import PolicyReader, grace_s
from bough.control.config.settings import read_workflow_settings
from bough.control.people.credentials import read_secret
from bough.control.recording import happen
from bough.control.scheduling.data_spaces import Spaces, read_spaces, spaces_of
from bough.control.scheduling.gang_terms import read_gangs
from bough.control.scheduling.input_sources import (
    NO_SOURCES,
    Sources,
    read_sources,
    sources_of,
)
from bough.control.scheduling.task_templates import BadTemplate, templates_of
from bough.control.site import Site
from bough.control.workflows import observations
from bough.control.workflows.lifecycle import is_victim
from bough.control.workflows.store_urls import StoreSecrets, store_secrets
from bough.control.workflows.workflow_changes import START
from bough.errors import Conflict, Invalid, NotLeading, Unavailable
from bough.model.backend import Backend, GangTerms, Launch, Observation, Sight, Start, Stop
from bough.model.pool import Json, Pool
from bough.model.record import EventKind, OutboxMessage
from bough.model.settings import WorkflowSettings
from bough.model.subpool import Subpool
from bough.model.workflow import Group, Task, TaskSpec, Workflow
from bough.store import pools as pool_store
from bough.store import records as record_store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store
from bough.store.rows import convert

LOG = logging.getLogger(__name__)

#: How many messages are sent before their delivery is written.
_AT_ONCE = 20
#: How often a start is tried that fails while others succeed.
START_TRIES = 3
#: After so many failures in one round without a success, a backend is left alone until the next.
_SILENT = 3


class _Unstartable(Exception):
    """A task cannot be started, and why."""

    def __init__(self, attempt: str, message: str) -> None:
        self._attempt = attempt
        super().__init__(message)

    def seen(self, at_ms: int) -> Observation:
        """The same, as a backend would tell it."""
        return Observation(self._attempt, Sight.UNSTARTABLE, at_ms, message=str(self))


class _Sealed(Exception):
    """A credential cannot be decrypted here and now, so what uses it waits."""


class _Files(NamedTuple):
    """What is kept of attempts and of all that they belong to, by identity."""

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


def deliver(site: Site, backends: Mapping[str, Backend]) -> int:
    """Deliver all messages in order, and say how many were. What fails is tried again.

    What goes wrong with one workflow holds up its own messages alone. A start that fails while
    others are taken is given up after some tries, one that is refused at once.
    """
    with site.store.read() as connection:
        messages = record_store.list_outbox(connection, sorted(backends))
    delivery = _Delivery(site, backends)
    for start in range(0, len(messages), _AT_ONCE):
        delivery.tell(messages[start : start + _AT_ONCE])
    delivery.judge()
    return delivery.told


def remind(site: Site, backend: Backend) -> bool:
    """Tell a backend again about everything that is on its nodes, in case it has forgotten.

    Whether it took all of it; each group and each stop is tried, whatever becomes of the others.
    """
    now_ms = site.clock.now_ms()
    with site.store.read() as connection:
        termination_s = read_workflow_settings(connection).termination_grace_s
        victim_s = grace_s(PolicyReader().read(connection))
        tasks = task_store.holding(connection, backend.name)
    files = _read_files(site, [task.attempt for task in tasks])
    taken = True
    for group in sorted({task.group_uuid for task in tasks if task.releasing is None}):
        attempts = [task.attempt for task in tasks if task.group_uuid == group]
        taken &= _remind_start(site, backend, files, attempts)
    for task in tasks:
        if task.releasing is not None:
            since_ms = now_ms if task.released_ms is None else task.released_ms
            whole_s = victim_s if is_victim(task.releasing) else termination_s
            left_s = max(0, whole_s - (now_ms - since_ms) // 1_000)
            try:
                backend.stop(Stop((task.attempt,), task.releasing, left_s, again=True))
            except NotLeading:
                raise
            except Exception as error:
                LOG.warning("backend %s does not stop %s: %s", backend.name, task.name, error)
                taken = False
    return taken


def _remind_start(site: Site, backend: Backend, files: _Files, attempts: list[str]) -> bool:
    try:
        for start in _starts(files, attempts):
            backend.start(start)
    except _Unstartable as error:
        observations.observe(site, [error.seen(site.clock.now_ms())])
    except _Sealed as error:
        LOG.warning("a group waits: %s", error)
    except NotLeading:
        raise
    except Exception as error:
        LOG.warning("backend %s does not take a group again: %s", backend.name, error)
        return False
    return True


class _Delivery:
    """One round of delivering messages to backends."""

    def __init__(self, site: Site, backends: Mapping[str, Backend]) -> None:
        self._site = site
        self._backends = backends
        self.told = 0
        #: Workflows of which something could not be told, so that nothing after it is told either.
        self._held: set[str] = set()
        #: Backends that took something, and how often the others failed.
        self._took: set[str] = set()
        self._failures: Counter[str] = Counter()
        self._failed: list[tuple[OutboxMessage, Exception]] = []

    def tell(self, messages: Sequence[OutboxMessage]) -> None:
        """Deliver some of the messages."""
        done: list[int] = []
        unstartable: list[Observation] = []
        files = _read_files(self._site, _attempts(messages))
        for message in messages:
            if message.subject in self._held or self._is_silent(message.backend):
                continue
            try:
                _tell(self._backends[message.backend], message, files)
            except _Unstartable as error:
                unstartable.append(error.seen(self._site.clock.now_ms()))
            except NotLeading:
                raise
            except Exception as error:
                self._fail(message, error)
                continue
            else:
                self._took.add(message.backend)
            done.append(message.number)
        if unstartable:
            observations.observe(self._site, unstartable)
        if done:
            with self._site.store.write() as connection:
                record_store.finish_outbox(connection, done)
        self.told += len(done)

    def judge(self) -> None:
        """Decide what to do about messages that could not be delivered, now that all were tried."""
        given_up: list[tuple[OutboxMessage, Exception]] = []
        tried_again: list[tuple[OutboxMessage, Exception, bool]] = []
        for message, error in self._failed:
            own = message.kind == START and self._is_its_own(message, error)
            if own and (_is_refused(error) or message.attempts + 1 >= START_TRIES):
                given_up.append((message, error))
            else:
                tried_again.append((message, error, own))
        for message, error in given_up:
            now_ms, text = self._site.clock.now_ms(), f"The start was refused: {error}"
            observations.observe(
                self._site,
                [
                    Observation(attempt, Sight.UNSTARTABLE, now_ms, message=text)
                    for attempt in message.payload["attempts"]
                ],
            )
        if self._failed:
            with self._site.store.write() as connection:
                record_store.finish_outbox(connection, [each.number for each, _ in given_up])
                for message, error, counts in tried_again:
                    _note_failure(self._site, connection, message, str(error), counts=counts)

    def _is_silent(self, backend: str) -> bool:
        """Whether a backend failed often without a success.

        It is then left alone until later.
        """
        return backend not in self._took and self._failures[backend] >= _SILENT

    def _fail(self, message: OutboxMessage, error: Exception) -> None:
        self._failed.append((message, error))
        self._held.add(message.subject)
        if not isinstance(error, (Invalid, Conflict, _Sealed)):
            self._failures[message.backend] += 1

    def _is_its_own(self, message: OutboxMessage, error: Exception) -> bool:
        """Whether it is this group that cannot be started, and not the backend that cannot start.

        While nothing is taken, only an error says that it is about the group. A full disk concerns
        all, also where something is taken: to end a task needs no room.
        """
        if isinstance(error, _Sealed) or _lacks_room(error):
            return False
        return message.backend in self._took or not isinstance(error, (Unavailable, OSError))


def _lacks_room(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def _is_refused(error: Exception) -> bool:
    return isinstance(error, (Invalid, Conflict))


def _note_failure(
    site: Site, connection: sa.Connection, message: OutboxMessage, error: str, *, counts: bool
) -> None:
    """Store what went wrong, and log it where it is new."""
    if record_store.fail_outbox(connection, message.number, error, counts=counts):
        text = f"it could not be told to backend {message.backend}, and is tried again: {error}"
        data = {"reason": message.kind, "message": text, "backend": message.backend}
        workflow = workflow_store.find(connection, message.subject)
        pool = None if workflow is None else pool_store.find(connection, workflow.pool)
        name = pool.parent if isinstance(pool, Subpool) else None if pool is None else pool.name
        kind = EventKind.WAITING
        happen(connection, site, kind, message.subject, pool=name, data=data)


def _attempts(messages: Iterable[OutboxMessage]) -> list[str]:
    """The attempts to start."""
    return [
        attempt
        for message in messages
        if message.kind == START
        for attempt in message.payload["attempts"]
    ]


def _tell(backend: Backend, message: OutboxMessage, files: _Files) -> None:
    if message.kind == START:
        for start in _starts(files, message.payload["attempts"]):
            backend.start(start)
    else:
        backend.stop(convert(message.payload, Stop))


def _read_files(site: Site, attempts: Iterable[str]) -> _Files:
    """Look up, at once, all that is needed to start attempts that still hold their nodes.

    What was cancelled, has ended, or was told to end since then is not started any more.
    """
    names = sorted(attempts)
    if not names:
        return _Files({}, {}, {}, {}, {})
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
        configured = _configured(connection, workflows.values()) if templates else {}
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
    return _Files(
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
    )


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


def _starts(files: _Files, attempts: Iterable[str]) -> Iterator[Start]:
    """The starts of attempts, by group."""
    members: dict[str, dict[str, Task]] = {}
    for attempt in sorted(attempts):
        task = files.tasks.get(attempt)
        if task is not None:
            members.setdefault(task.group_uuid, {})[task.name] = task
    for uuid, tasks in sorted(members.items()):
        group = files.groups[uuid]
        workflow = files.workflows[group.workflow_uuid]
        launches = tuple(
            _launch(files, workflow, group, tasks[spec.name])
            for spec in group.spec.tasks
            if spec.name in tasks
        )
        names = tuple(spec.name for spec in group.spec.tasks)
        yield Start(workflow.workflow_id, group.name, launches, names, files.gangs.get(uuid))


def _launch(files: _Files, workflow: Workflow, group: Group, task: Task) -> Launch:
    """What a backend must know to run an attempt."""
    spec = next(each for each in group.spec.tasks if each.name == task.name)
    names = () if spec.launch is None else tuple(each.name for each in spec.launch.credentials)
    seen: dict[str, dict[str, str]] = {}
    for name in names:
        payload = files.secrets[group.uuid][name]
        if payload is None and task.started_ms is None:
            message = f"Credential {name} of {workflow.submitted_by} does not exist."
            raise _Unstartable(task.attempt, message)
        if isinstance(payload, Unavailable) and task.started_ms is None:
            raise _Sealed(f"{payload.message} {payload.hint}")
        # What runs already is only reminded of, and has its secrets.
        seen[name] = payload if isinstance(payload, dict) else {}
    seen |= _store_secrets(files, group, task)
    spaces, fault = spaces_of(files.spaces.get(workflow.uuid, {}), spec)
    if fault and task.started_ms is None:
        raise _Unstartable(task.attempt, fault)
    return Launch(
        attempt=task.attempt,
        name=task.name,
        node=task.node or "",
        gpus=task.gpus,
        hold_s=spec.hold_s,
        started_ms=task.started_ms,
        retry_id=task.retry_id,
        user=workflow.submitted_by,
        pool=files.pools.get(workflow.pool, ""),
        cpu_milli=spec.requests.cpu_milli,
        memory_bytes=spec.requests.memory_bytes,
        storage_bytes=spec.storage_bytes,
        spec=spec.launch,
        secrets=seen,
        sources=sources_of(files.sources, workflow, spec),
        spaces=spaces,
        grace_s=files.settings.termination_grace_s,
        about=_about(workflow, group, task, spec),
        labels=labels_on_pods(workflow.labels, files.settings.labels_config.pod_label_prefix),
        pod_templates=_templates(files, workflow, group, task, spec),
        subgroup=spec.subgroup,
        nodes_excluded=spec.nodes_excluded,
    )


def _store_secrets(files: _Files, group: Group, task: Task) -> StoreSecrets:
    """What opens the stores of its URLs; what runs already has it."""
    found = files.stores.get((group.uuid, task.name))
    if found is None or task.started_ms is not None:
        return {}
    if isinstance(found, Unavailable):
        raise _Sealed(f"{found.message} {found.hint}")
    secrets, fault = found
    if fault:
        raise _Unstartable(task.attempt, fault)
    return secrets


def _templates(
    files: _Files, workflow: Workflow, group: Group, task: Task, spec: TaskSpec
) -> tuple[dict[str, Json], ...]:
    """The templates of its pool, and of its platform on top, with its variables in them."""
    labels = {
        **_about(workflow, group, task, spec),
        "workflow_id": workflow.workflow_id,
        "group_name": group.name,
        "submitted_by": workflow.submitted_by,
        "task_name": task.name,
        "task_uuid": task.uuid,
        "retry_id": str(task.retry_id),
    }
    pool = files.configured.get(workflow.pool)
    try:
        return templates_of(files.templates, pool, task, spec, labels)
    except BadTemplate as error:
        raise _Unstartable(task.attempt, str(error)) from None


def _about(workflow: Workflow, group: Group, task: Task, spec: TaskSpec) -> dict[str, str]:
    """What people look for a task by, where it runs."""
    return {
        "workflow_uuid": workflow.uuid,
        "group_uuid": group.uuid,
        "lead_container": str(task.lead).lower(),
        "pool": workflow.pool,
        "platform": spec.platform or "",
        "priority": workflow.priority.value,
    }


def _credentials(group: Group, tasks: Iterable[Task]) -> list[str]:
    names = {task.name for task in tasks if task.group_uuid == group.uuid}
    uses = (
        use.name
        for spec in group.spec.tasks
        if spec.name in names and spec.launch is not None
        for use in spec.launch.credentials
    )
    return sorted(set(uses))
