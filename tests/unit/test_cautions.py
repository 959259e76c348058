"""Warnings about a submitted workflow that will not run as it is written."""

from __future__ import annotations

import pytest

from bough.control.workflows.submit_warnings import cautions
from bough.model.cluster import Resources
from bough.model.pool import Pool
from bough.model.settings import WorkflowSettings
from bough.model.workflow import GroupSpec, TaskSpec, WorkflowSpec

NODE = Resources(gpus=8, cpu_milli=4_500, memory_bytes=2**36)


def flow(*tasks: TaskSpec, **more: int) -> WorkflowSpec:
    return WorkflowSpec("job", (GroupSpec("group", tasks),), **more)


def test_a_timeout_that_is_cut_is_told():
    pool = Pool("team", max_exec_timeout="2h", max_queue_timeout="1d")
    spec = flow(TaskSpec("main"), exec_timeout_s=3 * 3_600, queue_timeout_s=60)

    assert ("exec_timeout is cut to 2h, the most that pool team allows.",) == cautions(
        spec, pool, WorkflowSettings(), None
    )


@pytest.mark.parametrize("codes", ["3", "0-2,3006", "200-4000"])
def test_a_retry_that_is_switched_off_is_told(codes):
    spec = flow(*(TaskSpec(name, exit_actions={"RESCHEDULE": codes}) for name in "abcd"))

    (found,) = cautions(spec, Pool("team"), WorkflowSettings(), NODE)

    assert found.startswith("exitActions of a, b, c and 1 more: RESCHEDULE has no effect")
    assert () == cautions(spec, Pool("team"), WorkflowSettings(max_retry_per_task=1), NODE)


def test_what_goes_as_it_is_written_needs_no_word():
    pool = Pool("team", max_exec_timeout="2h")
    preempted = TaskSpec("main", exit_actions={"RESCHEDULE": "3006", "FAIL": "1"})

    assert () == cautions(flow(preempted, exec_timeout_s=7_200), pool, WorkflowSettings(), NODE)


@pytest.mark.parametrize(
    ("needs", "told"),
    [
        (Resources(gpus=16, cpu_milli=9_000), "needs 16 GPUs, and no node has more than 8"),
        (Resources(cpu_milli=5_000), "needs 5 CPUs, and no node has more than 4500m"),
        (Resources(memory_bytes=2**37), "needs 128Gi of memory, and no node has more than 64Gi"),
    ],
)
def test_a_task_that_no_node_is_large_enough_for_is_told(needs, told):
    spec = flow(TaskSpec("small", Resources(gpus=8)), TaskSpec("main", needs))

    assert (f"Task main {told}; it waits until one does.",) == cautions(
        spec, Pool("team"), WorkflowSettings(), NODE
    )
