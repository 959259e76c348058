"""Events as lines of text: one for each task, in the form and the words that interfaces read."""

from __future__ import annotations

from typing import Any

from bough.model.change_record import EventKind, StoredEvent
from bough.server.event_lines import EventLine, EventLines

AT_MS = 1_770_885_537_999
AT = "2026-02-12 08:38:57+00:00"
GROUPS = {"all": ["a", "b"], "later": ["c"]}


def told(*events: tuple[EventKind, str, Any]) -> list[EventLine]:
    lines = EventLines(GROUPS)
    return [
        line
        for kind, message, data in events
        for line in lines.lines(StoredEvent(kind, AT_MS, "job-1", "team", message, data))
    ]


def texts(*events: tuple[EventKind, str, Any]) -> list[str]:
    return [line.text for line in told(*events)]


def test_a_group_that_waits_is_told_of_each_of_its_tasks():
    data = {"group": "all", "reason": "quota", "message": "quota: short of 3 GPUs"}

    assert [
        EventLine("a", 0, f"{AT} [a] FailedScheduling: quota: short of 3 GPUs\n"),
        EventLine("b", 0, f"{AT} [b] FailedScheduling: quota: short of 3 GPUs\n"),
    ] == told((EventKind.WAITING, "", data))


def test_a_task_is_told_from_its_start_to_its_end():
    nodes = {"group": "all", "nodes": {"a": "node-0"}}
    runs = {"task": "a", "retry_id": 0, "node": "node-0", "exit_code": None, "message": None}
    ended = {**runs, "exit_code": 3, "message": "it gave up"}

    assert [
        f"{AT} [a] Scheduled: INITIALIZING on node-0\n",
        f"{AT} [a] Started: RUNNING on node-0\n",
        f"{AT} [a] Failed: FAILED, exit code 3: it gave up\n",
        f"{AT} [a] Completed: COMPLETED, exit code 0\n",
        f"{AT} [a] Evicted: FAILED_PREEMPTED: it gave up\n",
    ] == texts(
        (EventKind.TASK_STATUS, "INITIALIZING", nodes),
        (EventKind.TASK_STATUS, "RUNNING", runs),
        (EventKind.TASK_STATUS, "FAILED", ended),
        (EventKind.TASK_STATUS, "COMPLETED", {**runs, "exit_code": 0}),
        (EventKind.TASK_STATUS, "FAILED_PREEMPTED", {**ended, "exit_code": None}),
    )


def test_what_happens_to_a_group_is_told_of_the_latest_attempts():
    again = {"task": "a", "retry_id": 2, "message": None}
    waits = {"group": "all", "message": "quota: x"}
    taken = {"tasks": ["a"], "message": "reclaim"}

    found = told(
        (EventKind.TASK_STATUS, "SCHEDULING", again),
        (EventKind.WAITING, "", waits),
        (EventKind.TASK_STATUS, "INITIALIZING", {"group": "all", "nodes": {"a": "n"}}),
        (EventKind.PREEMPTED, "given back:", taken),
    )

    assert [("a", 2), ("a", 2), ("b", 0), ("a", 2), ("a", 2)] == [each[:2] for each in found]
    assert f"{AT} [a retry-2] Queued: SCHEDULING\n" == found[0].text
    assert f"{AT} [a retry-2] DisruptionTarget: given back: reclaim\n" == found[-1].text


def test_a_workflow_as_a_whole_is_told_by_its_name():
    untold = {"reason": "start", "message": "it could not be told"}

    assert [
        f"{AT} [job-1] Submitted: job-1\n",
        f"{AT} [job-1] Moved: moved from a to b\n",
        f"{AT} [job-1] FailedSync: it could not be told\n",
        f"{AT} [job-1] Queued: PENDING\n",
        f"{AT} [job-1] Failed: FAILED_CANCELED\n",
        f"{AT} [job-1] Failed: no such pool\n",
    ] == texts(
        (EventKind.WORKFLOW_SUBMITTED, "", {"pool": "team"}),
        (EventKind.WORKFLOW_MOVED, "moved from a to b", None),
        (EventKind.WAITING, "", untold),
        (EventKind.WORKFLOW_STATUS, "PENDING", {"before": "RUNNING"}),
        (EventKind.WORKFLOW_STATUS, "FAILED_CANCELED", {}),
        (EventKind.WORKFLOW_REFUSED, "no such pool", None),
    )


def test_a_line_stays_one_line_of_text():
    data = {"task": "a", "retry_id": 0, "message": "two\nlines\r and \udc80"}

    (text,) = texts((EventKind.TASK_STATUS, "FAILED", data))

    assert f"{AT} [a] Failed: FAILED: two lines  and ?\n" == text
