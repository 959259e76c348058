"""Scenarios 23 to 43: what a pool takes, what waits, and what never starts by accident."""

from __future__ import annotations

import pytest

from bough.errors import Refused
from bough.model.access import Actor
from bough.model.subpool import SubpoolState
from bough.model.workflow import Priority, WorkflowSpec, WorkflowStatus
from tests.store.usecases import Filter, SubmitMode, pools, query, restart, submit
from tests.store.world import big_node, job, one_group, refusal

TOO_MANY = (
    "Pool {} has {} GPUs guaranteed for NORMAL/HIGH priority workflows and group group requires {} "
    "GPUs. Higher gpu counts must be submitted with LOW priority"
)


def test_scenario_023_a_high_job_beyond_the_unallocated_part_is_refused(divided):
    assert (400, TOO_MANY.format("team", 10, 15)) == refusal(divided.submit, 15)
    assert [(10, 0, 10), (30, 0, 30), (40, 0, 40), (20, 0, 20)] == [
        divided.numbers(name) for name in ("team", "team--a", "team--b", "team--c")
    ]


def test_scenario_023_the_refusal_names_its_record_and_its_code(divided):
    with pytest.raises(Refused) as caught:
        divided.submit(15)

    assert ("usage", "job-1") == (caught.value.code, caught.value.workflow_id)


def test_a_refusal_counts_a_single_gpu(team):
    team.create("a", 99)
    told = refusal(team.submit, 2)[1]
    assert told.startswith("Pool team has 1 GPU guaranteed for NORMAL/HIGH priority workflows and ")


def test_scenario_024_a_normal_job_is_refused_alike(divided):
    expected = (400, TOO_MANY.format("team", 10, 15))
    assert expected == refusal(divided.submit, 15, priority=Priority.NORMAL)


def test_scenario_025_a_low_job_beyond_the_unallocated_part_runs(divided):
    low = divided.run(15, priority=Priority.LOW)

    assert "osmo-pool-ns-team--_shared" == divided.queue_of(low)
    usage = divided.rows()["team"].usage
    assert (0, 15) == (usage.quota_used, usage.total_usage)


def test_scenario_026_exactly_the_unallocated_part_is_accepted(divided):
    divided.submit(10)

    assert (400, TOO_MANY.format("team", 10, 11)) == refusal(divided.submit, 11)


def test_scenarios_027_to_029_what_fits_the_quota_but_not_now_waits_and_starts_by_itself(divided):
    first = divided.run(8)
    second = divided.submit(5)
    divided.settle()
    assert WorkflowStatus.PENDING is divided.status(second)

    low = divided.run(5, priority=Priority.LOW)
    assert WorkflowStatus.RUNNING is divided.status(low)

    divided.finish(first)
    assert WorkflowStatus.RUNNING is divided.status(second)
    assert (10, 5, 5) == divided.numbers()


def test_scenario_030_only_an_active_subpool_accepts(divided):
    last = divided.run(5, "team--a")
    divided.delete("a")
    expected = "Subpool team--a is DELETING and does not accept new workflows."
    assert (409, expected) == refusal(divided.submit, 5, "team--a")

    divided.finish(last)
    expected = "Subpool team--a is ARCHIVED and does not accept new workflows."
    assert (409, expected) == refusal(divided.submit, 5, "team--a")


def test_scenario_031_the_state_comes_before_the_priority(divided):
    divided.run(5, "team--a")
    divided.delete("a")

    status, _ = refusal(divided.submit, 5, "team--a", Priority.LOW)
    assert 409 == status


def test_scenario_032_a_subpool_has_the_same_cap(divided):
    assert (400, TOO_MANY.format("team--a", 30, 31)) == refusal(divided.submit, 31, "team--a")
    divided.submit(31, "team--a", Priority.LOW)


def test_scenario_033_the_cap_is_for_each_group(divided):
    serial = WorkflowSpec(
        "serial", (one_group(8, name="first"), one_group(8, name="second", upstream=("first",)))
    )
    divided.submit(0, spec=serial)

    status, message = refusal(divided.submit, 0, spec=job(16, tasks=2))
    assert (400, TOO_MANY.format("team", 10, 16)) == (status, message)


def test_scenario_034_a_job_without_gpus_runs_where_nothing_is_left(team):
    team.create("a", 100)

    workflow = team.run(0)

    assert WorkflowStatus.RUNNING is team.status(workflow)


def test_scenario_035_without_subpools_the_cap_is_the_quota(team):
    team.submit(100)

    assert (400, TOO_MANY.format("team", 100, 101)) == refusal(team.submit, 101)


def test_scenario_036_a_pool_without_limit_has_no_cap(world):
    world.pool("team", -1)

    assert WorkflowStatus.PENDING is world.submit(5_000).status


def test_scenario_037_nothing_unallocated_means_low_only(team):
    team.create("a", 100)

    expected = TOO_MANY.format("team", 0, 1).replace(" 1 GPUs", " 1 GPU")
    assert (400, expected) == refusal(team.submit, 1)
    team.run(1, priority=Priority.LOW)


def test_scenario_038_a_restart_is_a_new_submission(divided):
    failed = divided.run(5, "team--a")
    divided.finish(failed, exit_code=1)
    divided.run(5, "team--a")
    divided.delete("a")
    assert WorkflowStatus.FAILED is divided.status(failed)

    status, message = refusal(restart, divided.site, divided.admin, failed.workflow_id)
    assert (409, "Subpool team--a is DELETING and does not accept new workflows.") == (
        status,
        message,
    )
    again = restart(divided.site, divided.admin, failed.workflow_id, "team").workflow
    assert ("team", failed.workflow_id) == (again.pool, again.restarts)


def test_scenario_038_only_what_failed_can_be_restarted(team):
    done = team.run(5)
    team.finish(done)

    status, message = refusal(restart, team.site, team.admin, done.workflow_id)
    assert (400, True) == (status, "COMPLETED" in message)


def test_scenario_039_validation_is_refused_alike_and_a_dry_run_is_not(divided):
    divided.run(5, "team--a")
    divided.delete("a")
    site, admin = divided.site, divided.admin

    status, _ = refusal(submit, site, admin, "team--a", job(5), mode=SubmitMode.VALIDATE)

    assert 409 == status
    assert submit(site, admin, "team--a", job(5), mode=SubmitMode.DRY_RUN).workflow is None


def test_scenario_039_a_validation_keeps_nothing(team):
    assert submit(team.site, team.admin, "team", job(5), mode=SubmitMode.VALIDATE).workflow is None
    status, _ = refusal(submit, team.site, team.admin, "team", job(101), mode=SubmitMode.VALIDATE)

    assert 400 == status
    assert () == query.list_workflows(team.site, team.admin, Filter()).workflows


def test_scenario_040_maintenance_is_for_the_pool_and_its_subpools(divided):
    user = divided.user("ann", "osmo-team-user")
    pools.patch_pool(divided.site, divided.admin, "team", {"enable_maintenance": True})

    for name in ("team", "team--a"):
        expected = (
            f"Pool {name} is undergoing maintenance. Users will have to wait until maintenance is "
            "completed before submission."
        )
        assert (400, expected) == refusal(divided.submit, 1, name, actor=user)
        divided.submit(1, name)
    mine = query.list_workflows(divided.site, user, Filter(users=("ann",)))
    assert () == mine.workflows


def test_scenario_041_a_refusal_is_recorded_and_counts_nowhere(divided):
    refusal(divided.submit, 31, "team--a")

    page = query.list_workflows(divided.site, divided.admin, Filter())
    assert [WorkflowStatus.FAILED_SUBMISSION] == [each.status for each in page.workflows]
    assert SubpoolState.ARCHIVED is divided.delete("a").state


def test_scenario_043_a_subpool_may_have_to_wait_for_what_ran_before_it(team):
    # Nodes are not what is in the way.
    team.backend.offer((big_node(200),))
    before = [team.run(gpus) for gpus in (30, 19, 1)]
    team.split(a=30, b=40, c=20)

    inside = team.run(30, "team--a")
    other = team.submit(40, "team--b")
    team.settle()
    assert WorkflowStatus.PENDING is team.status(other)
    assert [WorkflowStatus.RUNNING] * 4 == [team.status(each) for each in (*before, inside)]

    # It waits until all of them together fit into the pool's 100.
    team.finish(before[1])
    assert WorkflowStatus.PENDING is team.status(other)
    team.finish(before[2])
    running = [team.status(each) for each in (before[0], inside, other)]
    assert [WorkflowStatus.RUNNING] * 3 == running


def test_a_user_holds_no_more_gpus_in_a_pool_than_one_may(team):
    pools.patch_pool(team.site, team.admin, "team", {"user_gpu_limit": 8})
    team.create("a", 30)
    ann, ben = team.user("ann", "osmo-team-user"), team.user("ben", "osmo-team-user")

    first = team.submit(6, "team--a", actor=ann)
    second = team.submit(4, "team", actor=ann)
    other = team.submit(8, "team", actor=ben)
    low = team.submit(20, "team", Priority.LOW, actor=ann)
    team.settle()

    statuses = [team.status(each) for each in (first, second, other, low)]
    running, pending = WorkflowStatus.RUNNING, WorkflowStatus.PENDING
    assert [running, pending, running, running] == statuses
    (reason,) = query.why(team.site, ann, second.workflow_id)
    assert "owner_limit" == reason.reason

    team.finish(first)
    assert running is team.status(second)


def test_a_group_above_what_one_user_may_hold_is_refused(team):
    pools.patch_pool(team.site, team.admin, "team", {"user_gpu_limit": 8})

    status, message = refusal(team.submit, 9)

    assert (400, True) == (status, "lets one user hold 8 GPUs" in message)


def test_what_waits_says_why(divided):
    divided.run(8)
    second = divided.submit(5)
    divided.settle()

    (reason,) = query.why(divided.site, divided.admin, second.workflow_id)

    assert ("group", "quota") == (reason.group, reason.reason)
    assert "short of 3" in reason.message


def test_a_platform_must_be_one_of_the_pools(world):
    world.pool("team", 10, platforms={"h100": {}, "a100": {}}, default_platform="h100")
    world.submit(1)
    task = one_group(1).tasks[0]
    odd = one_group(1).__class__("group", (type(task)("task", task.requests, platform="v100"),))

    status, message = refusal(world.submit, 1, spec=WorkflowSpec("odd", (odd,)))

    assert (400, "Platform v100 does not exist in pool team!") == (status, message)


def test_a_request_without_a_user_may_submit_nothing(team):
    assert (401, True) == (refusal(team.submit, 1, actor=Actor(""))[0], True)
    assert (403, "access denied") == refusal(team.submit, 1, actor=Actor("eve"))
