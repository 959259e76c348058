"""The laws of the crash tests notice what they are there for: each is broken once on purpose."""

from __future__ import annotations

import socket
import time

import pytest

from bough.api.pools import QueueUsage
from bough.api.workflows import Submission
from bough.model.change_record import EventKind, StoredEvent
from bough.model.cluster import Resources
from bough.model.subpool import Subpool, SubpoolState
from bough.model.workflow import (
    Group,
    GroupSpec,
    Priority,
    Task,
    TaskSpec,
    TaskStatus,
    Workflow,
    WorkflowStatus,
)
from tests.crash import laws
from tests.crash.jobs import GroupPlan, Job, TaskPlan
from tests.crash.load import Answer, Load, check_quotas
from tests.crash.record import Record
from tests.crash.witness import Run, Witness

JOB = Job("job", "team", "NORMAL", (GroupPlan("one", (TaskPlan("main", lines=2),)),))
RUN = Run("t/0", (0,), "job", "main", 1.0, True, "done", 2, 2.0)
LOG = ["2026/01/01 00:00:00 [main] line 1\n", "2026/01/01 00:00:01 [main] line 2\n"]


class Story:
    """One workflow of one task that ran and was completed, as it should be."""

    def __init__(self) -> None:
        self.workflow = Workflow(
            uuid="w",
            workflow_id="job-1",
            name="job",
            number=1,
            submitted_by="ann",
            pool="team",
            backend="default",
            priority=Priority.NORMAL,
            status=WorkflowStatus.COMPLETED,
            submitted_ms=0,
        )
        spec = GroupSpec("one", (TaskSpec("main", Resources(gpus=1), lead=True),))
        self.group = Group("g", "w", "one", 0, "queue", TaskStatus.COMPLETED, spec, 1)
        self.tasks = [Task("t", "w", "g", "main", 0, TaskStatus.COMPLETED, 1, lead=True)]
        self.states = [TaskStatus.INITIALIZING, TaskStatus.RUNNING, TaskStatus.COMPLETED]
        self.subpools: list[Subpool] = []
        self.messages = 0
        self.load = Load(lambda: pytest.fail("no server is asked"), 0, 0, 16)
        self.load.jobs["job"] = JOB
        self.load.submissions["job"] = Answer("done", Submission("job-1", ""))
        self.witness = Witness()
        self.witness.runs.append(RUN)
        self.log = LOG

    def record(self, *, lost: bool = False) -> Record:
        workflows = {} if lost else {"job-1": self.workflow}
        return Record(
            workflows=workflows,
            groups={} if lost else {"w": [self.group]},
            tasks={} if lost else {"w": self.tasks},
            events={"job-1": self._events()},
            pools=[],
            subpools=self.subpools,
            messages=self.messages,
        )

    def wrongs(self, *, lost: bool = False) -> list[str]:
        record = self.record(lost=lost)
        return [
            *laws.nothing_accepted_is_lost(record, self.load),
            *laws.nothing_is_half(record, self.load),
            *laws.each_attempt_runs_once(record, self.witness),
            *laws.no_gpu_has_two_holders(self.witness),
            *laws.nothing_is_left(record, self.witness),
            *laws.quotas_are_whole(record, self.load),
            *laws.events_tell_a_legal_story(record),
            *laws.logs_are_complete(record, self.witness, lambda *_: self.log),
        ]

    def _events(self) -> list[StoredEvent]:
        steps = ((WorkflowStatus.PENDING, WorkflowStatus.RUNNING), (WorkflowStatus.RUNNING, None))
        told = [StoredEvent(EventKind.WORKFLOW_SUBMITTED, 0, "job-1")]
        for status in self.states:
            data = {"task": "main", "retry_id": 0}
            told.append(StoredEvent(EventKind.TASK_STATUS, 0, "job-1", None, status, data))
        for before, after in steps:
            data = {"before": before.value, "after": (after or self.workflow.status).value}
            told.append(StoredEvent(EventKind.WORKFLOW_STATUS, 0, "job-1", data=data))
        return told


@pytest.fixture
def story():
    made = Story()
    with made.witness:
        yield made


def test_a_story_that_is_right_breaks_no_law(story):
    assert [] == story.wrongs()


def test_a_workflow_that_was_accepted_and_is_gone_is_noticed(story):
    assert "job-1 was accepted, and is not there" in story.wrongs(lost=True)


def test_a_task_that_is_said_to_be_completed_and_did_not_run_is_noticed(story):
    story.witness.runs.clear()

    assert ["job-1/main#0 (t/0) is COMPLETED, and no client saw it done"] == story.wrongs()


def test_an_attempt_that_runs_twice_is_noticed(story):
    later = Run("t/0", (1,), "job", "main", 3.0, True, "done", 2, 4.0)
    story.witness.runs.append(later)

    assert ["job/main (t/0) ran 2 times"] == story.wrongs()


def test_an_attempt_after_one_that_nothing_has_ended_is_noticed(story):
    story.tasks.append(Task("t", "w", "g", "main", 1, TaskStatus.COMPLETED, 1))

    (wrong, *_) = story.wrongs()
    assert "w/main#0 is COMPLETED (None), and another attempt follows" == wrong


def test_a_gpu_with_two_holders_is_noticed_by_their_clocks(story):
    other = Run("u/0", (0,), "job", "main", 1.5, True, "done", 2, 3.0)
    story.witness.runs.append(other)

    assert "GPU 0 is used by t/0 and u/0 at once" in story.wrongs()


def test_a_gpu_with_two_holders_is_noticed_when_the_second_comes(story):
    address = ("127.0.0.1", story.witness.port)
    with socket.create_connection(address) as one, socket.create_connection(address) as other:
        one.sendall(b"start a/0 3,4 job main 1.0\n")
        _until(lambda: len(story.witness.living) == 1)
        other.sendall(b"start b/0 4,5 job main 2.0\n")
        _until(lambda: story.witness.wrongs)

    assert ["GPU 4 is given to job/main (b/0) while job/main (a/0) has it"] == story.witness.wrongs


def test_a_gpu_whose_holder_has_gone_is_free(story):
    address = ("127.0.0.1", story.witness.port)
    for name in ("a", "b"):
        with socket.create_connection(address) as connection:
            connection.sendall(f"start {name}/0 3 job main 1.0\n".encode())
    _until(lambda: len(story.witness.runs) == 3 and not story.witness.living)

    assert [] == story.witness.wrongs


def test_a_line_that_is_missing_or_there_twice_is_noticed(story):
    for log in (LOG[:1], LOG[1:], [*LOG, LOG[1]]):
        story.log = log
        assert 1 == len(story.wrongs()), log


def test_a_change_of_status_that_there_cannot_be_is_noticed(story):
    story.states.insert(0, TaskStatus.RUNNING)

    (first, *_) = story.wrongs()
    assert first.startswith("job-1/main#0 went from SCHEDULING to RUNNING")


def test_what_was_told_and_is_not_true_is_noticed(story):
    story.states.pop()

    (wrong,) = story.wrongs()
    assert wrong.startswith("job-1/main#0 is COMPLETED, but was said to be RUNNING")


def test_what_was_never_told_and_what_is_never_emptied_is_noticed(story):
    story.messages = 2
    story.subpools = [Subpool("team", "red", SubpoolState.DELETING, 4)]

    assert ["2 messages were never run", "team--red is still DELETING"] == story.wrongs()


def test_quotas_that_do_not_add_up_are_noticed():
    queues = [
        QueueUsage(name, None, True, quota, None, 1, 0, 0, None, None)
        for name, quota in (
            ("osmo-pool-ns-team", 16),
            ("osmo-pool-ns-team--_shared", 12),
            ("osmo-pool-ns-team--red", 4),
        )
    ]

    assert [] == check_quotas(queues, 16)
    assert 1 == len(check_quotas(queues[:2], 16))


def _until(condition) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
