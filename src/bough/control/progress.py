"""What backends saw, written down: attempts that run, that ended, and what follows from that.

What a backend says is what it sees, told as often as it is asked; so everything here may come
twice. Must not know how anything is run.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bough.control import drain
from bough.control.case import Case, open_cases, write_cases
from bough.control.lifecycle import verdict
from bough.control.settings import read_workflow_settings
from bough.control.site import Site
from bough.model.backend import Observation, Sight
from bough.model.pool import Pool
from bough.model.settings import WorkflowSettings
from bough.model.workflow import ExitCode, Task, TaskSpec, TaskStatus
from bough.store import pools as pool_store
from bough.store import tasks as task_store

#: Workflows that are changed in one transaction, so that others get their turn.
_AT_ONCE = 200


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
    workflows = sorted(news)
    for start in range(0, len(workflows), _AT_ONCE):
        part = {uuid: news[uuid] for uuid in workflows[start : start + _AT_ONCE]}
        ended |= _write(site, part)
    for pool in sorted(ended):
        drain.check_drain(site, pool)
    if news:
        site.wake()
    return tuple(
        attempt for attempt, each in seen.items() if each.sight in (Sight.ENDED, Sight.UNSTARTABLE)
    )


def _is_news(task: Task, observation: Observation) -> bool:
    if task.status.finished:
        return False
    if observation.sight is Sight.RUNNING:
        return task.status is not TaskStatus.RUNNING
    return observation.sight in (Sight.ENDED, Sight.UNSTARTABLE)


def _write(site: Site, news: dict[str, list[Observation]]) -> set[str]:
    """One transaction; the pools in which a workflow has ended."""
    ended: set[str] = set()
    with site.store.write() as connection:
        settings = read_workflow_settings(connection)
        cases = open_cases(site, connection, list(news))
        names = sorted({case.pool for case in cases})
        pools = {name: pool_store.find_pool(connection, name) for name in names}
        for case in cases:
            for each in news[case.workflow.uuid]:
                _note(case, each, pools[case.pool], settings)
            case.settle()
            if case.workflow.status.finished:
                ended.add(case.workflow.pool)
        write_cases(connection, cases, site.clock.now_ms())
    return ended


def _note(
    case: Case, observation: Observation, pool: Pool | None, settings: WorkflowSettings
) -> None:
    task = case.task(observation.attempt)
    if task is None or not _is_news(task, observation):
        return
    if observation.sight is Sight.RUNNING:
        case.put(
            msgspec.structs.replace(task, status=TaskStatus.RUNNING, started_ms=observation.at_ms)
        )
        return
    if observation.sight is Sight.UNSTARTABLE and task.releasing is None:
        message = observation.message or "The task could not be started."
        case.end(task, TaskStatus.FAILED_START_ERROR, message, ExitCode.START_ERROR)
        return
    _end(case, task, observation, pool, settings)


def _end(
    case: Case,
    task: Task,
    observation: Observation,
    pool: Pool | None,
    settings: WorkflowSettings,
) -> None:
    before = [each for each in case.attempts(task) if each.retry_id < task.retry_id]
    code = observation.exit_code
    found = verdict(
        task,
        _spec(case, task),
        {} if pool is None else pool.default_exit_actions,
        settings,
        exit_code=ExitCode.UNKNOWN if code is None else code,
        preemptions=sum(each.status is TaskStatus.FAILED_PREEMPTED for each in before),
        message=observation.message,
    )
    case.end(task, found.status, found.message, found.exit_code)
    if found.again:
        case.retry(task)


def _spec(case: Case, task: Task) -> TaskSpec:
    tasks = case.groups[task.group_uuid].spec.tasks
    return next(spec for spec in tasks if spec.name == task.name)
