"""Workflows that start after the end of others, and what becomes of them."""

from __future__ import annotations

import msgspec
import pytest
import sqlalchemy as sa

from bough.control.workflows import predecessors
from bough.errors import Forbidden, Invalid
from bough.model.access import Actor
from bough.model.workflow import Predecessor, TaskStatus, WorkflowSpec
from bough.model.workflow import WorkflowStatus as Status
from bough.store.schema import ARCHIVE
from tests.store.scheduling import cluster
from tests.store.usecases import archive, query, settings
from tests.store.world import one_group


def follow_up(world, *after: str, ok: bool = False, spec: WorkflowSpec | None = None, **options):
    waits = tuple(Predecessor(each, completed=ok) for each in after)
    wanted = spec or WorkflowSpec("next", (one_group(1),))
    return world.submit(0, "p", spec=msgspec.structs.replace(wanted, after=waits), **options)


def reasons(world, workflow) -> list[tuple[str | None, str | None]]:
    found = query.why(world.site, world.admin, workflow.workflow_id)
    return [(each.reason, each.message) for each in found]


@pytest.mark.parametrize("ok", [False, True])
def test_it_waits_for_the_end_and_then_starts(world, ok):
    cluster(world, 2, p=2)
    first = world.submit(1, "p")
    second = follow_up(world, first.workflow_id, ok=ok)
    world.settle()
    assert (Status.PENDING, TaskStatus.WAITING) == (
        world.status(second),
        world.tasks(second)[0].status,
    )
    how = "until job-1 has completed" if ok else "for the end of job-1"
    assert [("Predecessor", f"it waits {how}, which is RUNNING")] == reasons(world, second)
    world.finish(first)
    assert Status.RUNNING is world.status(second)
    assert [] == reasons(world, second)


def test_all_of_them_are_waited_for_and_groups_in_their_own_order(world):
    cluster(world, 4, p=4)
    first, other = world.submit(1, "p"), world.submit(1, "p")
    groups = (one_group(1, name="a"), one_group(1, name="b", upstream=("a",)))
    second = follow_up(
        world, first.workflow_id, other.workflow_id, spec=WorkflowSpec("next", groups)
    )
    world.settle()
    world.finish(first)
    assert Status.PENDING is world.status(second)
    world.finish(other)
    assert [TaskStatus.RUNNING, TaskStatus.WAITING] == [each.status for each in world.tasks(second)]
    assert [("Upstream", "it waits for a")] == reasons(world, second)
    world.finish(second)
    world.finish(second)
    assert Status.COMPLETED is world.status(second)


@pytest.mark.parametrize(("ok", "expected"), [(False, Status.RUNNING), (True, Status.FAILED)])
def test_what_failed_or_was_cancelled_is_an_end_and_no_success(world, ok, expected):
    cluster(world, 4, p=4)
    failed, cancelled = world.submit(1, "p"), world.submit(1, "p")
    world.settle()
    groups = (one_group(1, name="a"), one_group(1, name="b", upstream=("a",)))
    after_failed = follow_up(world, failed.workflow_id, ok=ok, spec=WorkflowSpec("next", groups))
    after_cancelled = follow_up(world, cancelled.workflow_id, ok=ok)
    world.finish(failed, exit_code=3)
    world.cancel(cancelled)
    assert [expected, expected] == [world.status(after_failed), world.status(after_cancelled)]
    if ok:
        assert [
            "It starts only after job-1 has completed, which is FAILED.",
            "It starts only after job-2 has completed, which is FAILED_CANCELED.",
        ] == [world.get(each).failure_message for each in (after_failed, after_cancelled)]
        assert {TaskStatus.FAILED_UPSTREAM} == {each.status for each in world.tasks(after_failed)}


def test_what_ended_before_the_submission_counts_in_the_same_way(world):
    cluster(world, 1, p=1)
    good, bad = world.submit(1, "p"), world.submit(1, "p")
    world.settle()
    world.finish(good)
    world.finish(bad, exit_code=1)
    after_good = follow_up(world, good.workflow_id, ok=True)
    after_bad = follow_up(world, bad.workflow_id, ok=True)
    world.settle()
    assert [Status.RUNNING, Status.FAILED] == [world.status(after_good), world.status(after_bad)]


def test_a_chain_fails_from_its_first_failure_on(world):
    cluster(world, 1, p=1)
    first = world.submit(1, "p")
    second = follow_up(world, first.workflow_id, ok=True)
    third = follow_up(world, second.workflow_id, ok=True)
    last = follow_up(world, third.workflow_id)
    world.settle()
    world.finish(first, exit_code=1)
    assert [Status.FAILED, Status.FAILED, Status.RUNNING] == [
        world.status(each) for each in (second, third, last)
    ]


def test_what_waits_can_be_cancelled_and_then_holds_nothing_back(world):
    cluster(world, 1, p=1)
    first = world.submit(1, "p")
    second = follow_up(world, first.workflow_id)
    third = follow_up(world, second.workflow_id)
    world.settle()
    world.cancel(second)
    assert [Status.FAILED_CANCELED, Status.PENDING] == [world.status(second), world.status(third)]
    world.finish(first)
    assert [Status.FAILED_CANCELED, Status.RUNNING] == [world.status(second), world.status(third)]
    with world.site.store.read() as connection:
        assert [] == predecessors.predecessor_store.over(connection, 10)


def test_nothing_waits_for_what_never_was_or_may_not_be_read(world):
    cluster(world, 1, p=1, secret=1)
    hidden = world.submit(1, "secret")
    with pytest.raises(Invalid, match="There is no workflow never-1 to wait for"):
        follow_up(world, "never-1")
    stranger = Actor("ann", ("osmo-p-user", "osmo-default"))
    with pytest.raises(Forbidden, match="which ann may not read"):
        follow_up(world, hidden.workflow_id, actor=stranger)


@pytest.mark.parametrize(("ok", "dropped"), [(True, False), (False, True), (True, True)])
def test_what_is_in_the_archive_counts_as_it_ended(world, ok, dropped):
    cluster(world, 1, p=1)
    first = world.submit(1, "p")
    world.settle()
    world.finish(first)
    settings.patch_workflow_settings(world.site, world.admin, {"archive_after": "1d"})
    world.time.ms += 2 * 86_400_000
    assert 1 == archive.archive_due(world.site)
    if dropped:
        with world.site.store.write() as connection:
            connection.execute(sa.update(ARCHIVE).values(document=None))
    second = follow_up(world, first.workflow_id, ok=ok)
    world.settle()
    if ok and dropped:
        assert (
            "It starts only after job-1 has completed, which is dropped from the archive, so that "
            "nothing tells how it ended." == world.get(second).failure_message
        )
    else:
        assert Status.RUNNING is world.status(second)


def test_many_that_wait_for_one_are_released_in_parts(world, monkeypatch):
    monkeypatch.setattr(predecessors, "AT_ONCE", 2)
    cluster(world, 1, p=1)
    first = world.submit(1, "p")
    waiting = [follow_up(world, first.workflow_id) for _ in range(5)]
    world.settle()
    world.finish(first)
    statuses = [world.tasks(each)[0].status for each in waiting]
    assert TaskStatus.WAITING not in statuses
    assert 1 == statuses.count(TaskStatus.RUNNING)
