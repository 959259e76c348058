"""Sends decisions to the backends, after the transaction that decided. Repeating is harmless.

A message names attempts; their specs, and the secrets that they may see, are looked up when the
backend is told, and kept nowhere else.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from bough.control.config.policy import PolicyReader, grace_s
from bough.control.config.settings import read_workflow_settings
from bough.control.people.credentials import read_secret
from bough.control.site import Site
from bough.control.workflows import observations
from bough.control.workflows.lifecycle import is_victim
from bough.control.workflows.workflow_changes import START
from bough.errors import BoughError, NotLeading, Unavailable
from bough.model.backend import Backend, Launch, Observation, Sight, Start, Stop
from bough.model.record import OutboxMessage
from bough.model.workflow import Group, Task, Workflow
from bough.store import pools as pool_store
from bough.store import records as record_store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store
from bough.store.rows import convert

LOG = logging.getLogger(__name__)

#: How many messages are sent before their delivery is written.
_AT_ONCE = 20


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


def deliver(site: Site, backends: Mapping[str, Backend]) -> int:
    """Deliver all messages in order, and say how many were. What fails is tried again."""
    with site.store.read() as connection:
        messages = record_store.list_outbox(connection, sorted(backends))
    told = 0
    silent: set[str] = set()
    for start in range(0, len(messages), _AT_ONCE):
        told += _deliver(site, backends, messages[start : start + _AT_ONCE], silent)
    return told


def remind(site: Site, backend: Backend) -> int:
    """Tell a backend again about everything that is on its nodes, in case it has forgotten."""
    now_ms = site.clock.now_ms()
    with site.store.read() as connection:
        termination_s = read_workflow_settings(connection).termination_grace_s
        victim_s = grace_s(PolicyReader().read(connection))
        tasks = task_store.holding(connection, backend.name)
    files = _read_files(site, [task.attempt for task in tasks])
    for group in sorted({task.group_uuid for task in tasks if task.releasing is None}):
        try:
            attempts = [task.attempt for task in tasks if task.group_uuid == group]
            for start in _starts(files, attempts):
                backend.start(start)
        except _Unstartable as error:
            observations.observe(site, [error.seen(now_ms)])
        except _Sealed as error:
            LOG.warning("a group waits: %s", error)
    for task in tasks:
        if task.releasing is not None:
            since_ms = now_ms if task.released_ms is None else task.released_ms
            whole_s = victim_s if is_victim(task.releasing) else termination_s
            left_s = max(0, whole_s - (now_ms - since_ms) // 1_000)
            backend.stop(Stop((task.attempt,), task.releasing, left_s))
    return len(tasks)


def _deliver(
    site: Site, backends: Mapping[str, Backend], messages: Sequence[OutboxMessage], silent: set[str]
) -> int:
    """Tell some of it; a backend that does not answer is not asked again, as order matters."""
    done: list[int] = []
    failed: dict[int, str] = {}
    lost: list[Observation] = []
    files = _read_files(site, _attempts(messages))
    for message in messages:
        if message.backend in silent:
            continue
        try:
            _tell(backends[message.backend], message, files)
            done.append(message.number)
        except _Unstartable as error:
            done.append(message.number)
            lost.append(error.seen(site.clock.now_ms()))
        except _Sealed as error:
            failed[message.number] = str(error)
        except NotLeading:
            raise
        except (BoughError, OSError) as error:
            silent.add(message.backend)
            failed[message.number] = str(error)
    if lost:
        observations.observe(site, lost)
    if done or failed:
        with site.store.write() as connection:
            record_store.finish_outbox(connection, done)
            for number, error in failed.items():
                record_store.fail_outbox(connection, number, error)
    return len(done)


def _attempts(messages: Iterable[OutboxMessage]) -> list[str]:
    """The attempts that are to be started."""
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
        secrets = {
            group.uuid: {
                name: _secret(connection, site, workflows[group.workflow_uuid].submitted_by, name)
                for name in _credentials(group, tasks)
            }
            for group in groups
        }
    return _Files(
        {task.attempt: task for task in tasks},
        {group.uuid: group for group in groups},
        workflows,
        pools,
        secrets,
    )


def _secret(
    connection: sa.Connection, site: Site, user: str, name: str
) -> dict[str, str] | Unavailable | None:
    try:
        return read_secret(connection, site, user, name)
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
        yield Start(workflow.workflow_id, group.name, launches)


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
        spec=spec.launch,
        secrets=seen,
    )


def _credentials(group: Group, tasks: Iterable[Task]) -> list[str]:
    names = {task.name for task in tasks if task.group_uuid == group.uuid}
    uses = (
        use.name
        for spec in group.spec.tasks
        if spec.name in names and spec.launch is not None
        for use in spec.launch.credentials
    )
    return sorted(set(uses))
