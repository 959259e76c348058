"""What backends saw, stored: attempts that run, that ended, and what follows from that.

A backend tells everything that it sees, as often as it is asked; so everything here may come twice.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec
import sqlalchemy as sa

from bough.control.config.settings import read_workflow_settings
from bough.control.pools import subpool_drain
from bough.control.site import Site
from bough.control.workflows.lifecycle import (
    EXEC_TIMEOUT,
    FELLOW,
    START_REASONS,
    AttemptOutcome,
    follow_lead,
    is_final,
    is_overtaken,
    is_stuck,
    stuck_reason,
    verdict,
)
from bough.control.workflows.load_changes import open_changes, write_changes
from bough.control.workflows.workflow_changes import WorkflowChange
from bough.errors import Broken
from bough.model.backend import Observation, Sight
from bough.model.pool import Pool
from bough.model.settings import WorkflowSettings
from bough.model.transitions import TaskEvent
from bough.model.workflow import QUEUED, Group, Task, TaskStatus
from bough.store import pools as pool_store
from bough.store import tasks as task_store
from bough.store.database import again_if_given_up

LOG = logging.getLogger(__name__)

#: Workflows that are changed in one transaction, so that others get their turn.
_AT_ONCE = 200
_OVER = (Sight.ENDED, Sight.UNSTARTABLE, Sight.LOST, Sight.PREEMPTED)
#: Events that are not a consequence of another task's end.
_OWN_FAILURES = (
    TaskEvent.FAIL,
    TaskEvent.PREEMPT,
    TaskEvent.EVICT,
    TaskEvent.LOSE,
    *START_REASONS,
)


def observe(site: Site, observations: Sequence[Observation]) -> tuple[str, ...]:
    """Write down what was seen; the attempts whose end is now kept and need not be told again."""
    seen = {each.attempt: each for each in observations}
    with site.store.read() as connection:
        known = {task.attempt: task for task in task_store.attempts(connection, list(seen))}
    news: dict[str, list[Observation]] = {}
    for attempt, each in seen.items():
        task = known.get(attempt)
        if task is not None and _is_news(task, each):
            news.setdefault(task.workflow_uuid, []).append(each)
    ended: set[str] = set()
    broken: set[str] = set()
    workflows = sorted(news)
    for start in range(0, len(workflows), _AT_ONCE):
        part = {uuid: news[uuid] for uuid in workflows[start : start + _AT_ONCE]}
        ended |= _write_apart(site, part, broken)
    for pool in sorted(ended):
        subpool_drain.check_drain(site, pool)
    if news:
        site.wake()
    unknown = {each.attempt for uuid in broken for each in news[uuid]}
    return tuple(
        attempt for attempt, each in seen.items() if each.sight in _OVER and attempt not in unknown
    )


def note_all(
    site: Site,
    connection: sa.Connection,
    changes: Sequence[WorkflowChange],
    news: dict[str, list[Observation]],
) -> set[str]:
    """Note what was seen of workflows that are open; the pools in which one has ended."""
    settings = read_workflow_settings(connection)
    names = sorted({change.pool for change in changes})
    pools = {name: pool_store.find_pool(connection, name) for name in names}
    ended: set[str] = set()
    for change in changes:
        for each in sorted(news[change.workflow.uuid], key=lambda each: each.at_ms):
            _note(change, each, pools[change.pool], settings)
        change.settle()
        if change.workflow.status.finished:
            ended.add(change.workflow.pool)
    write_changes(connection, changes, site.clock.now_ms())
    return ended


def _is_news(task: Task, observation: Observation) -> bool:
    if not task.status.holds_node:
        return False
    if observation.sight is Sight.RUNNING:
        return task.status is not TaskStatus.RUNNING
    if observation.sight is Sight.STUCK:
        return task.releasing is None
    if observation.sight is Sight.STARTING:
        unsaid = (task.failure_message or "") != observation.message
        unsaid |= _located(task, observation) is not task
        return unsaid and task.status is TaskStatus.INITIALIZING and task.releasing is None
    return observation.sight in _OVER


def _write_apart(site: Site, news: dict[str, list[Observation]], broken: set[str]) -> set[str]:
    """The same; a workflow whose record is broken is left as it is, and stops no other."""
    try:
        return _write(site, news)
    except Broken as error:
        if len(news) == 1:
            broken.update(news)
            LOG.error("the record of workflow %s is broken: %s", *news, error)
            return set()
    ended: set[str] = set()
    for uuid, each in news.items():
        ended |= _write_apart(site, {uuid: each}, broken)
    return ended


@again_if_given_up
def _write(site: Site, news: dict[str, list[Observation]]) -> set[str]:
    """One transaction; the pools in which a workflow has ended."""
    with site.store.write() as connection:
        return note_all(site, connection, open_changes(site, connection, list(news)), news)


def _note(
    change: WorkflowChange, observation: Observation, pool: Pool | None, settings: WorkflowSettings
) -> None:
    task = change.task(observation.attempt)
    if task is None or not _is_news(task, observation):
        return
    task = _located(task, observation)
    if observation.sight is Sight.STARTING:
        # What it waits for is no failure, but is read where a failure would be.
        change.put(msgspec.structs.replace(task, failure_message=observation.message or None))
        return
    if observation.sight is Sight.STUCK:
        # Stored before it is told to end: so after a crash it is not started once more.
        change.release(task, stuck_reason(observation.fault), observation.message)
        return
    if observation.sight is Sight.RUNNING:
        runs = msgspec.structs.replace(_without_wait(task), started_ms=observation.at_ms)
        change.put(runs, TaskEvent.RUN)
        return
    task = _without_wait(task)
    if observation.exit_code is not None and task.started_ms is None:
        # It ended before it was seen running.
        task = msgspec.structs.replace(task, started_ms=task.scheduled_ms)
    if is_overtaken(task, observation):
        # What it was told came too late to count.
        task = msgspec.structs.replace(task, releasing=None, released_ms=None, failure_message=None)
    group = change.groups[task.group_uuid]
    lead = change.ended_lead(group)
    if lead is not None and _follows(task, lead):
        found = follow_lead(lead.status, observation)
    else:
        spec = next(each for each in group.spec.tasks if each.name == task.name)
        actions = {} if pool is None else pool.default_exit_actions
        found = verdict(task, spec, actions, settings, observation, change.counted(task))
    change.end(task, found.event, found.message, found.exit_code, observation.at_ms)
    if found.again or _comes_along(change, group, task, found):
        change.retry(task)
    _involve_others(change, group, task, found, observation)


def _located(task: Task, observation: Observation) -> Task:
    """The same on the node that a scheduler of its cluster chose."""
    if observation.node is None or observation.node == task.node:
        return task
    return msgspec.structs.replace(task, node=observation.node)


def _without_wait(task: Task) -> Task:
    """The same without what it waited for while it was being started."""
    if task.releasing is not None or task.failure_message is None:
        return task
    return msgspec.structs.replace(task, failure_message=None)


def _follows(task: Task, lead: Task) -> bool:
    """Whether an attempt ends as its lead did, whatever else it was told."""
    if lead.status is TaskStatus.COMPLETED and task.releasing in (EXEC_TIMEOUT, FELLOW):
        # The group had done what it is for before its time was over.
        return True
    return not is_final(task.releasing)


def _comes_along(change: WorkflowChange, group: Group, task: Task, found: AttemptOutcome) -> bool:
    """Whether another attempt follows only as the lead waits for one: then all start again."""
    told = task.releasing is not None and not is_stuck(task.releasing)
    if not told or not group.spec.ignore_nonlead_status:
        return False
    waits = any(each.lead and each.status in QUEUED for each in change.latest(group))
    return waits and found.event in _OWN_FAILURES


def _involve_others(
    change: WorkflowChange,
    group: Group,
    task: Task,
    found: AttemptOutcome,
    observation: Observation,
) -> None:
    """A gang starts together or not at all; where one of its tasks counts, so it ends."""
    unstarted = observation.sight is Sight.UNSTARTABLE and task.releasing is None
    unstartable = unstarted or is_stuck(task.releasing)
    needed = unstartable and not task.growth
    if found.again:
        alone = found.event in (TaskEvent.GIVE_BACK, TaskEvent.RESTART)
        if needed or (not alone and (task.lead or not group.spec.ignore_nonlead_status)):
            change.restart_others(task)
    elif needed and found.event in START_REASONS:
        text = f"Task {task.name} of its group could not be started. {found.message}"
        change.end_group(group, START_REASONS[found.event], found.event, text, found.exit_code)
    elif found.event in _OWN_FAILURES and not group.spec.ignore_nonlead_status:
        text = f"Task {task.name} of its group has failed. {found.message}"
        change.end_group(group, FELLOW, TaskEvent.FELLOW_FAILED, text)
