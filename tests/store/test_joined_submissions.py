"""Submissions at the same time share a commit, and each stands for itself alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from tests.store.racers import at_once
from tests.store.usecases import (
    Filter,
    Site,
    get_workflow,
    query,
    record_store,
    settings,
    submit,
)
from tests.store.world import World, job

pytestmark = pytest.mark.postgresql

MANY = 12


class Disk:
    """Counts commits, and makes each take some time, so that others come meanwhile."""

    def __init__(self, site: Site) -> None:
        self.commits = 0
        #: How often numbers were drawn.
        self.draws = 0
        #: How many of the next commits fail.
        self.faults = 0
        engine = site.store.engine
        self._heard = (
            (engine, "commit", self._commit),
            (engine, "before_cursor_execute", self._execute),
        )
        for each in self._heard:
            event.listen(*each)

    def leave(self) -> None:
        """Let commits be as they were: other tests use the same engine."""
        for each in self._heard:
            event.remove(*each)

    def _commit(self, _connection: sa.Connection) -> None:
        self.commits += 1
        time.sleep(0.1)
        if self.faults:
            self.faults -= 1
            raise OperationalError("COMMIT", {}, OSError("the disk is full"))

    def _execute(self, _c: Any, _cursor: Any, text: str, *_more: Any) -> None:
        self.draws += text.startswith("INSERT INTO counters")


class SameIds:
    """Gives the same identity again and again, which no database takes twice."""

    def __init__(self, uuid: str) -> None:
        self._uuid = uuid

    def uuid(self) -> str:
        return self._uuid

    def secret(self) -> str:
        return self._uuid


@pytest.fixture
def disk(divided: World) -> Iterator[Disk]:
    # What submissions are checked against is read once, before anything is counted.
    divided.submit(1, "team--a")
    disk = Disk(divided.site)
    yield disk
    # The lease is renewed by a thread, which must not commit while nothing may hear of it.
    divided.scheduler.release()
    disk.leave()


def send(world: World, pool: str = "team--a", name: str = "job", site: Site | None = None) -> str:
    accepted = submit(site or world.site, world.admin, pool, job(1, name))
    assert accepted.workflow is not None
    return accepted.workflow.workflow_id


def kept(world: World) -> list[str]:
    found = query.list_workflows(world.site, world.admin, Filter(limit=100))
    return sorted(each.workflow_id for each in found.workflows)


def test_many_at_once_share_commits_and_are_complete(divided, disk):
    pools = ("team--a", "team--b", "team")
    names = ("job", "other")
    asked = [(pools[number % 3], names[number % 2]) for number in range(MANY)]
    found = at_once(*(lambda each=each: send(divided, *each) for each in asked))

    numbers = {name: [f"{name}-{n}" for n in range(1, 7)] for name in names}
    expected = sorted(["job-7", *numbers["job"], *numbers["other"]])
    assert expected == kept(divided) == sorted({*map(str, found), "job-1"})
    assert disk.commits < MANY
    assert disk.draws < MANY
    for identifier, (pool, _) in zip(map(str, found), asked, strict=True):
        shown = get_workflow(divided.site, divided.admin, identifier)
        assert (pool, 1, 1) == (shown.workflow.pool, len(shown.groups), len(shown.tasks))
        with divided.site.store.read() as connection:
            audited = record_store.list_audit(connection, subject=f"workflow/{identifier}")
        happened = query.get_events(divided.site, divided.admin, identifier)
        assert ["workflow:Create"] == [each.action for each in audited]
        assert ["WORKFLOW_SUBMITTED"] == [each.kind.name for each in happened]


def test_they_still_do_when_heartbeats_are_later_than_what_is_kept(divided, disk):
    divided.time.pass_minutes(10)
    divided.settle()
    disk.draws = 0
    at_once(*[lambda: send(divided)] * MANY)

    assert (MANY + 1, True) == (len(kept(divided)), disk.draws < MANY)


@pytest.mark.usefixtures("disk")
def test_one_that_the_database_refuses_harms_no_other(divided):
    first = get_workflow(divided.site, divided.admin, "job-1").workflow
    same = replace(divided.site, ids=SameIds(first.uuid))
    sites = [same if number % 4 == 1 else divided.site for number in range(MANY)]
    found = at_once(*(lambda site=site: send(divided, site=site) for site in sites))

    accepted = [str(each) for each in found if each != 409]
    assert [409] * 3 == [each for each, site in zip(found, sites, strict=True) if site is same]
    assert sorted([*accepted, "job-1"]) == kept(divided)
    assert [f"job-{number}" for number in range(2, 11)] == sorted(accepted, key=_number)


def test_what_could_not_be_committed_is_answered_so_and_not_done_again(divided, disk):
    disk.faults = 1
    found = at_once(*[lambda: send(divided)] * MANY)

    accepted = [str(each) for each in found if each != 503]
    assert len(accepted) < MANY
    assert sorted([*accepted, "job-1"]) == kept(divided)
    assert [f"job-{number + 2}" for number in range(len(accepted))] == sorted(accepted, key=_number)


@pytest.mark.usefixtures("disk")
def test_a_limit_of_each_user_holds_for_many_at_once(divided):
    settings.patch_workflow_settings(divided.site, divided.admin, {"max_num_workflows_per_user": 4})
    found = at_once(*[lambda: send(divided)] * MANY)

    assert 3 == sum(isinstance(each, str) for each in found)
    assert 4 == len(kept(divided))


def _number(identifier: str) -> int:
    return int(identifier.rpartition("-")[2])
