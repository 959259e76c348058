"""Scenarios 79 to 98 and 176 to 180: deleting, draining, archiving, and whole lives."""

from __future__ import annotations

import threading
import time

import msgspec
import pytest
import sqlalchemy as sa

from bough.control.scheduling import timeouts
from bough.control.scheduling.loop_bell import Bell
from bough.control.site import Site
from bough.errors import Invalid, Unavailable
from bough.model.backend import Observation, Sight
from bough.model.change_record import ConfigType
from bough.model.subpool import SubpoolState
from bough.model.workflow import Priority, WorkflowSpec, WorkflowStatus
from bough.store.schema import OUTBOX
from tests.store.usecases import (
    Filter,
    change_history,
    observations,
    pool_store,
    pools,
    profiles,
    query,
    settings,
    start,
    submit,
    subpool_drain,
    subpools,
)
from tests.store.world import job, newest_revision, one_group, refusal


def monitors(world) -> dict[str, int]:
    with world.site.store.read() as connection:
        return pool_store.list_monitors(connection)


def end_unseen(world, workflow) -> None:
    """Let a workflow end, and the server with it before it could look at the subpool."""
    (task,) = world.tasks(workflow)
    ended = Observation(task.attempt, Sight.ENDED, world.time.ms, exit_code=0)
    observations._write(world.site, {workflow.uuid: [ended]})
    world.backend.forget((task.attempt,))


def test_scenario_079_an_empty_subpool_is_archived_without_a_monitor(divided):
    assert SubpoolState.ARCHIVED is divided.delete("a").state
    assert {} == monitors(divided)


def test_scenario_080_a_busy_subpool_is_deleting_and_gives_its_quota_back_at_once(divided):
    workflow = divided.run(5, "team--a")

    assert SubpoolState.DELETING is divided.delete("a").state
    divided.settle()

    assert WorkflowStatus.RUNNING is divided.status(workflow)
    assert {"team--a": divided.time.ms + 15 * 60_000} == monitors(divided)
    assert (0, 5, -5) == divided.numbers("team--a")
    row = divided.rows()["team"]
    assert (40, 100) == (row.usage.quota_limit, row.quota_total)
    assert divided.invariant_holds()


def test_scenario_081_a_deleting_subpool_can_only_be_looked_at(divided):
    divided.run(5, "team--a")
    divided.delete("a")

    refused = [
        refusal(divided.submit, 1, "team--a")[0],
        refusal(divided.update, "a", 1)[0],
        refusal(divided.delete, "a")[0],
        refusal(divided.create, "a", 1)[0],
    ]
    assert [409] * 4 == refused
    assert SubpoolState.DELETING is divided.state("a")


def test_scenario_082_a_drain_that_was_missed_is_seen_after_the_interval(divided):
    workflow = divided.run(5, "team--a")
    divided.delete("a")
    divided.time.pass_minutes(1)
    end_unseen(divided, workflow)

    divided.time.pass_minutes(13)
    divided.settle()
    assert SubpoolState.DELETING is divided.state("a")
    divided.time.pass_minutes(1)
    divided.settle()

    assert SubpoolState.ARCHIVED is divided.state("a")
    assert "team--a" not in divided.rows()
    assert "a" not in divided.leaf_quotas()


def test_scenario_083_the_interval_can_be_changed_also_for_what_is_waited_for(divided):
    workflow = divided.run(5, "team--a")
    divided.delete("a")
    changes = {"subpool_drain_check_interval": "1m"}
    settings.patch_workflow_settings(divided.site, divided.admin, changes)
    end_unseen(divided, workflow)

    divided.time.pass_minutes(0.9)
    divided.settle()
    assert SubpoolState.DELETING is divided.state("a")
    divided.time.pass_minutes(0.1)
    divided.settle()

    assert SubpoolState.ARCHIVED is divided.state("a")


def test_a_drain_that_was_missed_is_seen_once_the_database_answers_again(divided, monkeypatch):
    workflow = divided.run(5, "team--a")
    divided.delete("a")
    divided.settle()
    end_unseen(divided, workflow)
    faults = [Unavailable("The database does not answer.")]

    def fail_once(_: Site) -> None:
        if faults:
            raise faults.pop()

    monkeypatch.setattr(timeouts, "check_due", fail_once)
    bell, stop = Bell(), threading.Event()
    thread = threading.Thread(target=divided.scheduler.run, args=(bell, stop, 0.01))
    thread.start()
    deadline = time.monotonic() + 60
    while divided.state("a") is not SubpoolState.ARCHIVED and time.monotonic() < deadline:
        time.sleep(0.01)
    stop.set()
    bell()
    thread.join(30)

    assert ([], SubpoolState.ARCHIVED) == (faults, divided.state("a"))


def test_scenario_083_a_drain_is_seen_at_once_when_the_last_workflow_ends(divided):
    workflow = divided.run(5, "team--a")
    divided.delete("a")

    divided.finish(workflow)

    assert SubpoolState.ARCHIVED is divided.state("a")
    assert {} == monitors(divided)


def test_scenario_084_there_is_one_monitor_however_often_it_looks(divided):
    divided.run(5, "team--a")
    divided.delete("a")

    for _ in range(3):
        divided.time.pass_minutes(15)
        assert [] == divided.check_drains()
        assert {"team--a": divided.time.ms + 15 * 60_000} == monitors(divided)


def test_scenario_085_looking_at_what_is_not_deleting_has_no_effect(divided):
    divided.delete("a")
    assert not subpool_drain.check_drain(divided.site, "team--a")
    divided.create("a", 30)
    with divided.site.store.write() as connection:
        pool_store.arm_monitor(connection, "team--a", divided.time.ms)

    assert [] == divided.check_drains()
    assert not subpool_drain.check_drain(divided.site, "team--a")
    assert SubpoolState.ACTIVE is divided.state("a")
    assert {} == monitors(divided)


def test_scenario_086_a_workflow_that_only_waits_keeps_the_subpool_and_still_runs(team):
    before = team.run(100)
    team.create("a", 30)
    waiting = team.submit(30, "team--a")
    team.settle()
    assert WorkflowStatus.PENDING is team.status(waiting)

    assert SubpoolState.DELETING is team.delete("a").state
    team.settle()
    assert [SubpoolState.DELETING, WorkflowStatus.PENDING] == [
        team.state("a"),
        team.status(waiting),
    ]
    team.finish(before)
    assert [SubpoolState.DELETING, WorkflowStatus.RUNNING] == [
        team.state("a"),
        team.status(waiting),
    ]

    team.finish(waiting)
    assert [SubpoolState.ARCHIVED, WorkflowStatus.COMPLETED] == [
        team.state("a"),
        team.status(waiting),
    ]


def test_scenario_087_low_keeps_the_subpool_although_it_uses_no_quota(divided):
    divided.run(5, "team--a", Priority.LOW)

    assert SubpoolState.DELETING is divided.delete("a").state
    assert (0, 0, 0) == divided.numbers("team--a")


def test_scenario_088_a_preempted_workflow_keeps_the_drain_open(divided):
    low = divided.run(60, "team--a", Priority.LOW)
    divided.delete("a")
    high = divided.run(40, "team--b")
    other = divided.run(20, "team--c")
    assert WorkflowStatus.PENDING is divided.status(low)
    assert SubpoolState.DELETING is divided.state("a")

    divided.finish(high)
    divided.finish(other)
    assert WorkflowStatus.RUNNING is divided.status(low)
    divided.finish(low)
    assert SubpoolState.ARCHIVED is divided.state("a")


def test_scenario_088_later_groups_of_a_workflow_still_start(divided):
    first, second = one_group(5, name="first"), one_group(5, name="second", upstream=("first",))
    workflow = divided.submit(0, "team--a", spec=WorkflowSpec("serial", (first, second)))
    divided.settle()
    divided.delete("a")

    divided.finish(workflow)
    assert WorkflowStatus.RUNNING is divided.status(workflow)
    assert SubpoolState.DELETING is divided.state("a")
    divided.finish(workflow)

    assert WorkflowStatus.COMPLETED is divided.status(workflow)
    assert SubpoolState.ARCHIVED is divided.state("a")


def test_scenario_089_cancelling_the_last_workflow_completes_the_drain(divided):
    waiting, running = divided.submit(20, "team--a"), divided.submit(20, "team--a")
    divided.settle()
    divided.delete("a")

    divided.cancel(waiting)
    assert SubpoolState.DELETING is divided.state("a")
    divided.cancel(running)

    assert WorkflowStatus.FAILED_CANCELED is divided.status(running)
    assert SubpoolState.ARCHIVED is divided.state("a")


def test_scenario_090_archived_subpools_are_kept_with_all_that_was_in_them(divided):
    workflow = divided.run(5, "team--a")
    divided.delete("a")
    divided.finish(workflow)

    site, admin = divided.site, divided.admin
    page = query.list_workflows(site, admin, Filter(pools=("team--a",)))
    assert [workflow.workflow_id] == [each.workflow_id for each in page.workflows]

    def kept():
        view = query.get_workflow(site, admin, workflow.workflow_id)
        life = subpools.subpool_history(site, admin, "team", "a")
        return divided.state("a"), msgspec.structs.replace(view, archived_ms=None), life

    before = kept()
    assert SubpoolState.ARCHIVED is before[0]
    assert ["ACTIVE", "DELETING", "ARCHIVED"] == [each.data["state"] for each in before[2]]
    # All that cleans up: old workflows are archived, and revisions removed from the history.
    settings.patch_workflow_settings(site, admin, {"archive_after": "1d"})
    divided.time.pass_minutes(1_000 * 24 * 60)
    divided.settle()
    assert query.get_workflow(site, admin, workflow.workflow_id).archived_ms is not None
    for each in before[2]:
        status, message = refusal(
            change_history.remove_revision, site, admin, ConfigType.SUBPOOL, each.revision
        )
        assert (409, True) == (status, message.endswith("history of subpools is kept for good."))

    assert before == kept()


def test_scenarios_091_to_093_only_an_active_subpool_is_deleted(divided):
    last = divided.run(5, "team--a")
    divided.delete("a")
    expected = "Subpool team--a is DELETING and cannot be deleted."
    assert (409, expected) == refusal(divided.delete, "a")
    divided.finish(last)
    expected = "Subpool team--a is ARCHIVED and cannot be deleted."
    assert (409, expected) == refusal(divided.delete, "a")
    assert (404, "Subpool team--z not found.") == refusal(divided.delete, "z")


def test_scenario_094_a_divided_pool_is_not_deleted(divided):
    divided.run(5, "team--a")
    divided.delete("a")
    divided.delete("c")
    delete = (pools.delete_pool, divided.site, divided.admin, "team")

    expected = (
        "Pool team cannot be deleted: it has the subpools team--a (DELETING), team--b (ACTIVE)."
    )
    assert (409, expected) == refusal(*delete)


def test_scenario_094_nor_is_one_whose_subpools_are_archived(team):
    team.create("a", 30)
    team.delete("a")

    status, message = refusal(pools.delete_pool, team.site, team.admin, "team")

    assert (409, True) == (status, "the history of its archived subpools team--a" in message)


def test_scenario_094_a_pool_with_work_is_not_deleted_and_one_without_is(team):
    workflow = team.run(5)
    assert 409 == refusal(pools.delete_pool, team.site, team.admin, "team")[0]

    team.finish(workflow)

    assert pools.delete_pool(team.site, team.admin, "team")
    assert not pools.delete_pool(team.site, team.admin, "team")


def test_scenario_095_a_divided_pool_is_not_renamed(divided):
    status, _ = refusal(pools.rename_pool, divided.site, divided.admin, "team", "crew")

    assert 409 == status


def test_scenario_095_another_pool_is_renamed_with_its_work(team):
    workflow = team.run(5)

    pools.rename_pool(team.site, team.admin, "team", "crew")
    cycle = team.scheduler.cycle()

    assert ("crew", "osmo-pool-ns-crew--_shared") == (
        team.get(workflow).pool,
        team.queue_of(workflow),
    )
    assert not cycle.applied.changed
    assert (100, 5, 95) == team.numbers("crew")


def test_scenario_096_a_restart_looks_at_every_drain_again(divided):
    workflow = divided.run(5, "team--a")
    divided.delete("a")
    end_unseen(divided, workflow)
    with divided.site.store.write() as connection:
        pool_store.disarm_monitor(connection, "team--a")

    again = divided.restarted()
    again.settle()

    assert SubpoolState.ARCHIVED is again.state("a")


def test_scenario_096_a_restart_arms_what_is_not_drained_yet(divided):
    workflow = divided.run(5, "team--a")
    divided.delete("a")
    with divided.site.store.write() as connection:
        pool_store.disarm_monitor(connection, "team--a")

    again = divided.restarted()
    assert newest_revision() == start(again.site).revision
    assert ["team--a"] == list(monitors(again))
    again.settle()
    assert WorkflowStatus.RUNNING is again.status(workflow)
    again.finish(workflow)

    assert SubpoolState.ARCHIVED is again.state("a")


def test_scenario_098_transitions_are_events_and_send_nothing(divided):
    user = divided.user("ann", "osmo-team-user")
    with pytest.raises(Invalid, match="this server sends no e-mail"):
        profiles.set_profile(divided.site, user, {"email_notification": True})
    workflow = divided.run(5, "team--a")

    divided.delete("a")
    divided.create("d", 1)
    divided.update("d", 2)
    divided.delete("d")

    with divided.site.store.read() as connection:
        assert [] == connection.execute(sa.select(OUTBOX)).all()
    divided.finish(workflow)
    events = change_history.events_after(divided.site, divided.admin, 0)
    states = [each.message for each in events if each.subject == "team--a"]
    assert ["ACTIVE", "DELETING", "ARCHIVED"] == states


def test_scenario_176_the_problem_that_subpools_solve(team):
    ann, ben = team.user("ann", "osmo-team-user"), team.user("ben", "osmo-team-user")
    first = team.submit(80, actor=ann)
    team.submit(20, actor=ben)
    team.settle()
    team.split(a=30, b=40, c=20)
    team.finish(first)

    assert 400 == refusal(team.submit, 80, actor=ann)[0]
    inside = team.submit(40, "team--b", actor=ben)
    team.settle()
    assert WorkflowStatus.RUNNING is team.status(inside)


def test_scenario_177_users_of_no_group_share_what_is_left(divided):
    divided.run(10)
    divided.run(15, priority=Priority.LOW)

    assert (10, 10, 0) == divided.numbers()


def test_scenario_178_available_comes_back_as_workflows_end(divided):
    first, second = divided.run(20, "team--b"), divided.run(15, "team--b")
    divided.update("b", 20)
    seen = [divided.numbers("team--b")[2]]
    divided.finish(second)
    seen.append(divided.numbers("team--b")[2])
    divided.finish(first)
    seen.append(divided.numbers("team--b")[2])

    assert [-15, 0, 20] == seen
    last = divided.run(5, "team--a")
    divided.delete("a")
    assert (0, 5, -5) == divided.numbers("team--a")
    divided.finish(last)
    assert "team--a" not in divided.rows()


def test_scenario_179_a_pause(divided):
    divided.delete("a")
    assert 409 == refusal(divided.submit, 1, "team--a")[0]
    assert 2 == len(subpools.subpool_history(divided.site, divided.admin, "team", "a"))

    divided.create("a", 5)

    divided.run(5, "team--a")


def test_scenario_180_a_full_life(team):
    team.create("a", 30)
    workflow = team.run(20, "team--a")
    team.update("a", 10)
    assert (10, 20, -10) == team.numbers("team--a")
    team.delete("a")
    assert (0, 20, -20) == team.numbers("team--a")
    team.finish(workflow)
    assert SubpoolState.ARCHIVED is team.state("a")
    team.create("a", 25)
    team.run(25, "team--a")
    assert 400 == refusal(team.submit, 26, "team--a")[0]

    entries = subpools.subpool_history(team.site, team.admin, "team", "a")
    assert [("ACTIVE", 30), ("ACTIVE", 10), ("DELETING", 10), ("ARCHIVED", 10), ("ACTIVE", 25)] == [
        (each.data["state"], each.data["quota"]) for each in entries
    ]
    assert ["root", "root", "root", "system", "root"] == [each.username for each in entries]
    assert [1, 2, 3, 4, 5] == [each.revision for each in entries]
    assert {ConfigType.SUBPOOL} == {each.config_type for each in entries}


def test_scenario_105_an_accepted_workflow_is_counted_before_the_answer(divided):
    submit(divided.site, divided.admin, "team--a", job(5))

    assert SubpoolState.DELETING is divided.delete("a").state
