"""Finished workflows of a set age are archived: nothing lost, nothing twice, usage the same."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa

from bough.errors import Forbidden, Invalid, NotFound, Unavailable
from bough.model.cluster import Resources
from bough.model.past_workflow import HistoryPlace
from bough.model.task_template import InputSpec, TaskTemplate
from bough.model.workflow import GroupSpec, Priority, TaskSpec, Workflow, WorkflowSpec
from bough.store import archive as archive_store
from bough.store.database import Store
from bough.store.dump import DumpHead, load_dump, write_dump
from bough.store.schema import ARCHIVE, GROUPS, SPECS, TASKS, WORKFLOWS
from tests.store.backends import grudging
from tests.store.usecases import (
    By,
    Filter,
    archive,
    cancelling,
    event_order,
    get_usage,
    history_export,
    pools,
    query,
    record_store,
    restart,
    settings,
)
from tests.store.world import START_MS, World, job, refusal

DAY_MINUTES = 24 * 60


def archive_after(world: World, age: str | None) -> None:
    settings.patch_workflow_settings(world.site, world.admin, {"archive_after": age})


def pass_days(world: World, days: float) -> None:
    world.time.pass_minutes(days * DAY_MINUTES)


def done(world: World, gpus: int = 4, pool: str = "team", minutes: float = 60) -> Workflow:
    """A workflow that ran for a while and ended."""
    workflow = world.submit(gpus, pool, Priority.LOW, spec=job(gpus, tasks=2))
    world.settle()
    world.time.pass_minutes(minutes)
    world.finish(workflow)
    return workflow


def hours(world: World, by: By = By.POOL):
    report = get_usage(world.site, world.admin, START_MS, None, by)
    return {each.name: each.hours for each in (*report.rows, report.total)}


def rows(world: World) -> tuple[set[str], set[str]]:
    """Which workflows are among those that lists read, and which are archived."""
    with world.site.store.read() as connection:
        here = connection.execute(sa.select(WORKFLOWS.c.workflow_id)).scalars()
        there = connection.execute(sa.select(ARCHIVE.c.workflow_id)).scalars()
        return set(here), set(there)


def pages(world: World, until_ms: int, limit: int = 200) -> list[str]:
    """The identifiers of an export, page by page."""
    found: list[str] = []
    after: HistoryPlace | None = None
    while True:
        page = history_export.read_page(world.site, world.admin, until_ms, after, limit)
        found += [each["workflow"]["workflow_id"] for each in page.workflows]
        if page.after is None:
            return found
        after = page.after


def test_nothing_is_archived_unless_an_age_is_set(team):
    old = done(team)
    pass_days(team, 1_000)
    team.settle()
    assert ({old.workflow_id}, set()) == rows(team)


def test_the_loop_archives_what_is_old_enough_and_shows_it_as_before(team):
    old = done(team)
    before = query.get_workflow(team.site, team.admin, old.workflow_id, every_attempt=True)
    spec = query.get_spec(team.site, team.admin, old.workflow_id)
    events = query.get_events(team.site, team.admin, old.workflow_id)
    archive_after(team, "30d")
    pass_days(team, 29)
    young = done(team)
    runs = team.run(4)
    assert ({old.workflow_id, young.workflow_id, runs.workflow_id}, set()) == rows(team)

    pass_days(team, 1.5)
    team.settle()

    assert ({young.workflow_id, runs.workflow_id}, {old.workflow_id}) == rows(team)
    for name in (old.workflow_id, old.uuid):
        after = query.get_workflow(team.site, team.admin, name, every_attempt=True)
        assert team.time.ms == after.archived_ms
        assert before == msgspec.structs.replace(after, archived_ms=None)
    assert spec == query.get_spec(team.site, team.admin, old.workflow_id)
    assert events == query.get_events(team.site, team.admin, old.workflow_id)
    assert [] == query.why(team.site, team.admin, old.workflow_id)
    listed = query.list_workflows(team.site, team.admin, Filter()).workflows
    assert {young.workflow_id, runs.workflow_id} == {each.workflow_id for each in listed}
    with team.site.store.read() as connection:
        for table in (GROUPS, TASKS, SPECS):
            found = connection.execute(sa.select(table.c.workflow_uuid)).scalars()
            assert old.uuid not in set(found)


def test_gpu_hours_are_the_same_before_and_after(divided):
    for pool, minutes in (("team", 90), ("team--a", 60), ("team--a", 30)):
        done(divided, 50, pool, minutes)
    divided.run(10)
    before = [hours(divided, by) for by in By]
    assert before[0]["team--a"][3] > 0, "something was borrowed"
    until_ms = divided.time.ms
    archive_after(divided, "1d")
    pass_days(divided, 2)
    divided.settle()
    assert 3 == len(rows(divided)[1])

    report = [get_usage(divided.site, divided.admin, START_MS, until_ms, by) for by in By]

    after = [{each.name: each.hours for each in (*one.rows, one.total)} for one in report]
    assert before == after


def test_a_number_is_never_given_again(team):
    old = done(team)
    archive_after(team, "1d")
    pass_days(team, 2)
    team.settle()
    assert old.number + 1 == team.submit(1).number


def test_what_is_archived_cannot_be_changed_and_says_so(team):
    old = done(team)
    archive_after(team, "1d")
    pass_days(team, 2)
    team.settle()
    name, site, admin = old.workflow_id, team.site, team.admin
    for change in (
        lambda: cancelling.cancel(site, admin, name),
        lambda: cancelling.cancel(site, admin, name, force=True),
        lambda: query.tag(site, admin, name, add=("seen",)),
        lambda: restart(site, admin, name),
    ):
        with pytest.raises(Invalid, match=f"Workflow {name} is in the archive"):
            change()
    with pytest.raises(NotFound, match=r"Workflow job-77 not found\."):
        query.get_workflow(site, admin, "job-77")


def test_only_those_who_may_read_the_pool_see_its_archive_whatever_its_name(team):
    old = done(team)
    archive_after(team, "1d")
    pass_days(team, 2)
    team.settle()
    pools.rename_pool(team.site, team.admin, "team", "crew")
    ann, ben = team.user("ann", "osmo-crew-user"), team.user("ben")
    before = hours(team)

    assert "crew" == query.get_workflow(team.site, ann, old.workflow_id).workflow.pool
    assert {"crew", "total"} == set(before)
    with pytest.raises(Forbidden):
        query.get_workflow(team.site, ben, old.workflow_id)
    pools.delete_pool(team.site, team.admin, "crew")
    team.pool("crew", 10)
    with pytest.raises(Forbidden):
        query.get_workflow(team.site, ann, old.workflow_id)


def test_what_still_holds_gpus_or_has_to_be_told_stays(team):
    workflow = done(team)
    archive_after(team, "1d")
    pass_days(team, 2)
    outbox = {"kind": "stop", "backend": "gone", "subject": workflow.workflow_id}
    with team.site.store.write() as connection:
        task = TASKS.c.workflow_uuid == workflow.uuid
        connection.execute(sa.update(TASKS).where(task).values(status="RUNNING"))
    assert 0 == archive.archive_due(team.site)
    with team.site.store.write() as connection:
        connection.execute(sa.update(TASKS).where(task).values(status="COMPLETED"))
        connection.execute(
            sa.insert(record_store.OUTBOX).values(**outbox, created_ms=0, attempts=0)
        )
    assert 0 == archive.archive_due(team.site)
    with team.site.store.write() as connection:
        connection.execute(sa.delete(record_store.OUTBOX))
    assert 1 == archive.archive_due(team.site)


def test_a_part_has_so_many_workflows_and_so_many_attempts(team, monkeypatch):
    for _ in range(7):
        done(team)
    archive_after(team, "1d")
    monkeypatch.setattr(archive, "AT_ONCE", 3)
    pass_days(team, 2)
    archiver = archive.Archiver(team.site)
    assert 3 == archiver.work()
    assert 0 == archiver.work(), "others have their turn before the next part"
    team.time.ms += archive.PAUSE_MS
    # Each has two attempts, so a second one would be too many.
    monkeypatch.setattr(archive, "MOST_ATTEMPTS", 3)
    assert 1 == archiver.work()
    monkeypatch.setattr(archive, "MOST_ATTEMPTS", 1)
    team.time.ms += archive.PAUSE_MS
    assert 1 == archiver.work(), "one that has too many alone goes alone"


def test_what_goes_wrong_in_the_middle_undoes_all_of_it_and_stops_nothing_else(
    team, monkeypatch, caplog
):
    old = done(team)
    archive_after(team, "1d")
    pass_days(team, 2)
    real = archive_store.add

    def fail(connection, statement, values):
        real(connection, statement, values)
        if statement.table.name == "archived_stretches":
            raise Unavailable("The database does not answer: disk full")

    monkeypatch.setattr(archive_store, "add", fail)
    archiver = archive.Archiver(team.site)
    for _ in range(3):
        assert 0 == archiver.work()
        team.time.ms += archive.IDLE_MS
    assert ({old.workflow_id}, set()) == rows(team)
    assert 1 == caplog.text.count("finished workflows cannot be archived now")
    monkeypatch.undo()
    assert 1 == archiver.work()
    assert (set(), {old.workflow_id}) == rows(team)


def test_nothing_is_moved_while_the_disk_is_nearly_full(team):
    done(team)
    archive_after(team, "1d")
    pass_days(team, 2)
    full = ["the disk is nearly full"]
    site = replace(team.site, refusal=lambda: full[0])
    archiver = archive.Archiver(site)
    assert 0 == archiver.work()
    full[0] = ""
    team.time.ms += archive.IDLE_MS
    assert 1 == archiver.work()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("23h", "archive_after must be at least 1d, not 23h."),
        (5, "archive_after must be a duration like 90s, 15m, 8h or 60d, not 5."),
        ("soon", "archive_after"),
    ],
)
def test_an_age_that_cannot_be_is_refused(team, value, said):
    before = settings.get_workflow_settings(team.site, team.admin)
    status, message = refusal(lambda: archive_after(team, value))
    assert 400 == status
    assert said in message
    assert before == settings.get_workflow_settings(team.site, team.admin)


def test_an_export_has_each_once_while_the_loop_archives(team):
    names = [done(team, minutes=1).workflow_id for _ in range(9)]
    archive_after(team, "1d")
    pass_days(team, 2)
    until_ms = team.time.ms
    first = history_export.read_page(team.site, team.admin, until_ms, None, 4)
    team.settle()
    assert 9 == len(rows(team)[1])
    second = history_export.read_page(team.site, team.admin, until_ms, first.after, 4)
    third = history_export.read_page(team.site, team.admin, until_ms, second.after, 4)
    found = [each for page in (first, second, third) for each in page.workflows]
    assert names == [each["workflow"]["workflow_id"] for each in found]
    assert third.after is None
    assert names == pages(team, until_ms, 1)
    assert (
        first.workflows
        == history_export.read_page(team.site, team.admin, until_ms, None, 4).workflows
    ), "archived or not, it is the same"


def test_what_is_dropped_leaves_its_gpu_hours_events_and_name(team):
    archived, fresh = done(team), done(team)
    archive_after(team, "1d")
    pass_days(team, 2)
    assert 2 == archive.archive_due(team.site)
    fresh = done(team)
    until_ms = team.time.ms
    before = hours(team)
    uuids = [archived.uuid, fresh.uuid]

    assert 2 == history_export.drop(team.site, team.admin, uuids)
    assert 0 == history_export.drop(team.site, team.admin, uuids), "a second time is no other"

    assert before == hours(team)
    for each in (archived, fresh):
        with pytest.raises(NotFound, match=f"Workflow {each.workflow_id} was exported and dropped"):
            query.get_workflow(team.site, team.admin, each.workflow_id)
        assert {each.workflow_id} <= rows(team)[1]
        assert each.workflow_id not in pages(team, until_ms)
    with team.site.store.read() as connection:
        assert event_order.events_after(connection, 0, subject=fresh.workflow_id)
        (entry,) = record_store.list_audit(connection, subject="history")
    assert ("history:Drop", 2) == (entry.action, entry.after["dropped"])


def test_what_is_not_over_is_never_dropped_nor_anything_with_it(team):
    over, runs = done(team), team.run(4)
    for uuids, said in (
        ([over.uuid, runs.uuid], f"Workflow {runs.workflow_id} is RUNNING, not finished"),
        ([over.uuid, "0" * 32], "Workflow 00000000000000000000000000000000 not found"),
        ([f"{number:032x}" for number in range(201)], "at most 200 workflows"),
    ):
        _, message = refusal(partial(history_export.drop, team.site, team.admin, uuids))
        assert said in message
    assert ({over.workflow_id, runs.workflow_id}, set()) == rows(team)


def test_what_an_archived_workflow_left_is_still_an_input(team):
    backend = grudging(team)
    old, dropped = done(team), done(team)
    made = {each.name: each.attempt for each in team.tasks(old)}
    archive_after(team, "30d")
    pass_days(team, 31)
    team.settle()
    assert (set(), {old.workflow_id, dropped.workflow_id}) == rows(team)
    history_export.drop(team.site, team.admin, [dropped.uuid])

    names = sorted(made)
    inputs = tuple(
        InputSpec(task=name, workflow=each.workflow_id) for each in (old, dropped) for name in names
    )
    reader = TaskSpec("reader", Resources(gpus=1), lead=True, launch=TaskTemplate(inputs=inputs))
    spec = WorkflowSpec("later", (GroupSpec("group", (reader,)),))
    team.submit(0, "team", Priority.LOW, spec=spec)
    team.settle()

    (launch,) = backend.starts[-1].launches
    # Nothing is known any more of what was dropped.
    assert (*(made[name] for name in names), *[""] * len(names)) == launch.sources


def test_only_administrators_export_and_drop(team):
    ann = team.user("ann", "osmo-team-admin")
    with pytest.raises(Forbidden):
        history_export.read_page(team.site, ann, team.time.ms, None, 10)
    with pytest.raises(Forbidden):
        history_export.drop(team.site, ann, [])
    future = team.time.ms + 1
    with pytest.raises(Invalid, match="until must not be in the future"):
        history_export.read_page(team.site, team.admin, future, None, 10)


def test_a_backup_has_the_archive(team, tmp_path: Path):
    kept, dropped = done(team), done(team)
    archive_after(team, "1d")
    pass_days(team, 2)
    team.settle()
    history_export.drop(team.site, team.admin, [dropped.uuid])
    before = hours(team)
    view = query.get_workflow(team.site, team.admin, kept.workflow_id)

    def head(revision: str, numbers: dict[str, int]) -> DumpHead:
        return DumpHead("0.1.0", "2026-11-17T00:00:00+00:00", revision, numbers)

    path = tmp_path / "dump"
    with path.open("wb") as file:
        write_dump(team.site.store, file, head, lambda *_: None)
    store = Store.open(tmp_path / "restored.db")
    load_dump(store, path, "first", replace=False, tell=lambda *_: None)
    site = replace(team.site, store=store)

    assert view == query.get_workflow(site, team.admin, kept.workflow_id)
    report = get_usage(site, team.admin, START_MS)
    assert before == {each.name: each.hours for each in (*report.rows, report.total)}
    with pytest.raises(NotFound, match="exported and dropped"):
        query.get_workflow(site, team.admin, dropped.uuid)
    store.close()
