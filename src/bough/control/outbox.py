"""Telling backends what was decided, after the transaction that decided it. Repeating is harmless.

Must not know what is decided, nor how a backend does what it is told.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bough.control.application import launch_of
from bough.control.case import START
from bough.control.site import Site
from bough.control.snapshot import Entry
from bough.errors import BoughError
from bough.model.backend import Backend, Launch, Start, Stop
from bough.model.record import Errand
from bough.model.workflow import Task
from bough.store import records as record_store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store
from bough.store.conversion import convert


def deliver(site: Site, backends: Mapping[str, Backend]) -> int:
    """Tell everything that is to be told, in order; how much was. What fails is tried again."""
    with site.store.read() as connection:
        errands = record_store.list_errands(connection, sorted(backends))
        starting = [
            launch["attempt"]
            for errand in errands
            if errand.kind == START
            for launch in errand.payload["launches"]
        ]
        tasks = task_store.attempts(connection, starting)
    wanted = {task.attempt for task in tasks if task.status.holds_node}
    done: list[int] = []
    failed: dict[int, str] = {}
    silent: set[str] = set()
    for errand in errands:
        if errand.backend in silent:
            continue
        try:
            _tell(backends[errand.backend], errand, wanted)
            done.append(errand.number)
        except (BoughError, OSError) as error:
            # Order matters to a backend, so the rest waits with it.
            silent.add(errand.backend)
            failed[errand.number] = str(error)
    if done or failed:
        with site.store.write() as connection:
            record_store.finish_errands(connection, done)
            for number, error in failed.items():
                record_store.fail_errand(connection, number, error)
    return len(done)


def remind(site: Site, backend: Backend) -> int:
    """Tell a backend again about everything that is on its nodes, in case it has forgotten."""
    with site.store.read() as connection:
        tasks = task_store.holding(connection)
        uuids = sorted({task.workflow_uuid for task in tasks})
        workflows = {each.uuid: each for each in workflow_store.alive(connection)}
        groups = {each.uuid: each for each in task_store.groups_of(connection, uuids)}
    starts: dict[str, list[Launch]] = {}
    stops: list[Task] = []
    for task in tasks:
        workflow = workflows.get(task.workflow_uuid)
        if workflow is None or workflow.backend != backend.name:
            continue
        entry = Entry(workflow, groups[task.group_uuid], (task,), "", "")
        starts.setdefault(task.group_uuid, []).append(launch_of(entry, task))
        if task.releasing is not None:
            stops.append(task)
    for uuid, launches in starts.items():
        group = groups[uuid]
        name = workflows[group.workflow_uuid].workflow_id
        backend.start(Start(name, group.name, tuple(launches)))
    for task in stops:
        backend.stop(Stop((task.attempt,), task.releasing or ""))
    return sum(map(len, starts.values()))


def _tell(backend: Backend, errand: Errand, wanted: set[str]) -> None:
    if errand.kind == START:
        start = convert(errand.payload, Start)
        # What was cancelled, or has ended, since then is not started any more.
        launches = tuple(each for each in start.launches if each.attempt in wanted)
        if launches:
            backend.start(msgspec.structs.replace(start, launches=launches))
    else:
        backend.stop(convert(errand.payload, Stop))
