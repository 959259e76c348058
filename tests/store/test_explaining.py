"""What was preempted for what, why something waits, and what runs: in events, queries and `why`."""

from __future__ import annotations

from bough.model.change_record import EventKind
from bough.model.workflow import Priority, WorkflowSpec, WorkflowStatus
from tests.policies import written
from tests.store.backends import grudging
from tests.store.usecases import Written, new_explainer, policy, query
from tests.store.world import World, one_group

HIGH, LOW = Priority.HIGH, Priority.LOW


def happened(world: World, workflow, kind: EventKind) -> list[dict[str, object]]:
    found = query.get_events(world.site, world.admin, workflow.workflow_id)
    return [each.data for each in found if each.kind is kind]


def reasons(world: World, workflow) -> list[object]:
    return [each["reason"] for each in happened(world, workflow, EventKind.WAITING)]


def explained(world: World, workflow):
    return new_explainer(world.site).explain(world.admin, workflow.workflow_id)


def many(count: int, gpus: int = 1) -> WorkflowSpec:
    return WorkflowSpec("many", tuple(one_group(gpus, name=f"t{n}") for n in range(count)))


def elastic(tasks: int, minimum: int) -> WorkflowSpec:
    return WorkflowSpec("elastic", (one_group(tasks, tasks, minimum=minimum),))


# Preemption


def test_what_was_preempted_says_for_which_group_at_which_level_and_by_which_rule(divided):
    ann = divided.user("ann", "osmo-team-user")
    low = divided.run(80, "team--a", LOW)
    high = divided.submit(40, "team--b", actor=ann)
    divided.settle()
    assert WorkflowStatus.RUNNING is divided.status(high)

    (event,) = happened(divided, low, EventKind.PREEMPTED)

    phrase = (
        f"reclaim at pool team, for {high.workflow_id}/group of ann (HIGH in pool team--b): "
        "pool team--a used 80 of its quota of 30 GPUs"
    )
    expected = {
        "rule": "reclaim",
        "preemptor": f"{high.workflow_id}/group",
        "preemptor_user": "ann",
        "preemptor_pool": "team--b",
        "preemptor_priority": "HIGH",
        "level": "pool team",
        "message": phrase,
        "given_back": False,
    }
    assert expected == {key: event[key] for key in expected}
    view = query.get_workflow(divided.site, divided.admin, low.uuid, every_attempt=True)
    (preemption,) = view.preemptions["group"]
    assert (phrase, ("group-task-0",)) == (preemption.message, preemption.tasks)
    assert f"UTC: {phrase}." in (view.tasks["group"][-1].failure_message or "")
    (group,) = explained(divided, low).groups
    assert (preemption,) == group.preemptions


def test_within_a_pool_the_rule_is_preempt_at_that_pool(team):
    low = team.run(100, priority=LOW)
    high = team.run(10)

    (event,) = happened(team, low, EventKind.PREEMPTED)

    phrase = f"preempt at pool team, for {high.workflow_id}/group of root (HIGH in pool team)"
    assert phrase == event["message"]


def test_what_an_elastic_group_gives_back_is_told_as_that(team):
    low = team.submit(0, priority=LOW, spec=elastic(100, 50))
    team.settle()
    team.run(10)

    (event,) = happened(team, low, EventKind.PREEMPTED)

    assert (True, 10) == (event["given_back"], len(event["tasks"]))
    (runs,) = explained(team, low).running
    assert (10, 1) == (runs.waiting_tasks, len(runs.preemptions))
    assert "90 GPUs that may be preempted; 10 tasks wait: " in runs.message
    assert "waits" == runs.certificate.verdict
    given_back = [
        task.failure_message for task in team.tasks(low, every=True) if task.failure_message
    ]
    assert 10 == len(given_back)
    assert given_back[0].startswith("Given back by an elastic group: preempt at pool team, for ")


def test_only_the_latest_preemptions_are_told(team):
    low = team.submit(100, priority=LOW)
    for _ in range(12):
        team.settle()
        team.finish(team.run(10))
        team.settle()

    view = query.get_workflow(team.site, team.admin, low.uuid)

    assert 12 == len(happened(team, low, EventKind.PREEMPTED))
    assert 10 == len(view.preemptions["group"])


# Waiting


def test_why_something_waits_is_an_event_for_each_change_of_its_kind(team):
    first = team.run(60)
    second = team.submit(50)
    third = team.submit(45)
    for _ in range(3):
        team.time.pass_minutes(1)
        team.settle()
    assert (["quota"], ["behind"]) == (reasons(team, second), reasons(team, third))
    (event,) = happened(team, second, EventKind.WAITING)
    assert event["message"].startswith("quota: pool team is short of 10 GPUs")

    team.finish(first)

    assert [WorkflowStatus.RUNNING] * 2 == [team.status(second), team.status(third)]
    assert (["quota"], ["behind"]) == (reasons(team, second), reasons(team, third))


def test_a_reason_of_the_same_kind_with_other_numbers_is_no_event(team):
    team.run(60)
    first = team.run(30)
    second = team.submit(50)
    team.settle()
    (before,) = query.why(team.site, team.admin, second.workflow_id)
    team.finish(first)

    (after,) = query.why(team.site, team.admin, second.workflow_id)

    assert (True, True) == ("short of 40" in before.message, "short of 10" in after.message)
    assert 1 == len(happened(team, second, EventKind.WAITING))


def test_another_server_does_not_tell_it_again(team):
    team.run(60)
    second = team.submit(50)
    team.settle()

    again = team.restarted()
    again.settle()

    assert ["quota"] == reasons(again, second)


def test_the_group_that_room_is_made_for_is_told(team):
    grudging(team)
    low = team.run(100, priority=LOW)
    high = team.submit(10)
    team.settle()

    (group,) = query.why(team.site, team.admin, high.workflow_id)

    assert ("nominated", f"it starts as soon as {low.workflow_id}/group made room for it") == (
        group.reason,
        group.message,
    )
    assert ["nominated"] == reasons(team, high)


def test_events_about_waiting_make_no_new_plan(team):
    team.run(60)
    team.submit(50)
    team.settle()

    assert not team.scheduler.live.builder.look()


# Alike


def test_what_waits_alike_is_told_once(team):
    policy.patch_policy(team.site, team.admin, Written(fields=written(strict_within_rank=False)))
    team.run(100)
    workflow = team.submit(0, spec=many(50))
    team.settle()

    (group,) = explained(team, workflow).groups

    assert ("t0", 50) == (group.group, group.tasks)
    assert tuple(f"t{n}" for n in range(1, 50)) == group.alike


def test_the_first_in_line_and_those_behind_it_are_told_apart(team):
    team.run(50)
    groups = (one_group(60, name="a"), *many(50).groups)
    workflow = team.submit(0, spec=WorkflowSpec("mixed", groups))
    team.settle()

    first, behind = explained(team, workflow).groups

    assert (("a", "quota", 0), ("t0", "behind", 49)) == tuple(
        (each.group, each.reason, len(each.alike)) for each in (first, behind)
    )


def test_groups_that_ask_for_something_else_are_not_alike(team):
    team.run(100)
    groups = (one_group(1, name="a"), one_group(1, name="b"), one_group(2, name="c"))
    workflow = team.submit(0, spec=WorkflowSpec("mixed", groups))
    team.settle()

    found = explained(team, workflow).groups

    assert {"a", "b", "c"} == {name for each in found for name in (each.group, *each.alike)}
    assert ["c"] == [each.group for each in found if each.group == "c" and not each.alike]


# Running


def test_what_runs_says_since_when_where_and_by_which_right(team):
    workflow = team.run(10)

    found = explained(team, workflow)

    (runs,) = found.running
    assert ((), {"node-0": 1}, 10, 0) == (
        found.groups,
        runs.nodes,
        runs.guaranteed,
        runs.preemptible,
    )
    assert "group runs since 2023-11-14 22:13:20 UTC on node-0 (1): 10 GPUs guaranteed" == (
        runs.message
    )


def test_many_groups_that_run_are_told_once(team):
    workflow = team.submit(0, priority=LOW, spec=many(50))
    team.settle()

    (runs,) = explained(team, workflow).running

    assert 50 == len(runs.groups)
    assert runs.message.startswith("t0, t1, t2 and 47 more groups run since ")
    assert runs.message.endswith(" on node-0 (50): 50 GPUs that may be preempted")
