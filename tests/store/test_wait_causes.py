"""Why groups wait is stored once for each cause, and only what a plan changes is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from bough.model.reason import WaitReason
from bough.model.workflow import Priority, Workflow
from bough.store.schema import WAIT_CAUSES
from tests.store.usecases import query
from tests.store.world import World

LOW, NORMAL = Priority.LOW, Priority.NORMAL


@contextmanager
def counting(engine: sa.Engine) -> Iterator[Counter[str]]:
    """How many rows are written meanwhile, by table."""
    rows: Counter[str] = Counter()

    def count(_c: Any, cursor: Any, text: str, values: Any, _x: Any, many: bool) -> None:
        words = text.replace("INTO ", "").replace("FROM ", "").split()
        # Who leads, and which backends were heard of, is written as time goes by.
        timed = words[1:2] in (["leadership"], ["backends"])
        if words[0] in ("INSERT", "UPDATE", "DELETE") and not timed:
            rows[words[1]] += len(values) if many else max(cursor.rowcount, 1)

    event.listen(engine, "after_cursor_execute", count)
    try:
        yield rows
    finally:
        event.remove(engine, "after_cursor_execute", count)


def told(world: World, workflow: Workflow) -> tuple[str | None, str | None]:
    (group,) = query.get_workflow(world.site, world.admin, workflow.uuid).groups
    return group.wait_reason, group.wait_message


def causes(world: World) -> int:
    with world.site.store.read() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(WAIT_CAUSES)).scalar_one()


def rows_of_one_end(world: World, waiting: int, priority: Priority) -> Counter[str]:
    """What is written when one of two that run ends, and another starts."""
    running = [world.submit(50, "team", priority) for _ in range(2)]
    world.settle()
    for _ in range(waiting):
        world.time.ms += 1
        world.submit(50, "team", priority)
    world.settle()
    with counting(world.site.store.engine) as rows:
        world.finish(running[0])
    return rows


@pytest.mark.parametrize("priority", [LOW, NORMAL])
def test_one_end_writes_as_much_with_many_in_line_as_with_few(databases, priority):
    found = []
    for waiting in (5, 60):
        world = World(databases.open(databases.make()))
        world.pool("team", 100)
        world.settle()
        found.append(rows_of_one_end(world, waiting, priority))
        world.close()

    assert found[0] == found[1]
    assert found[0]["task_groups"] <= 6


def test_another_sentence_for_many_that_are_alike_is_one_row(team):
    team.pool("other", 100)
    other = team.submit(60, "other", NORMAL)
    waiting = [team.submit(50, "team", LOW) for _ in range(20)]
    team.settle()
    before = {told(team, each) for each in waiting}

    with counting(team.site.store.engine) as rows:
        team.submit(10, "other", NORMAL)
        team.settle()

    after = {told(team, each) for each in waiting}
    assert 1 == len(before) == len(after)
    assert before != after
    assert 1 == rows["wait_causes"]
    assert rows["task_groups"] < 5
    assert team.get(other).started_ms is not None


def test_those_that_wait_for_the_same_have_one_cause(team):
    team.submit(100, "team", LOW)
    waiting = [team.submit(50, "team", LOW) for _ in range(10)]
    team.settle()

    assert 1 == causes(team) == len({told(team, each) for each in waiting})


def test_what_has_started_or_ended_leaves_no_cause_behind(team):
    work = [team.submit(gpus, "team", NORMAL) for gpus in (80, 60, 60, 30, 100)]
    team.settle()
    assert causes(team) > 1

    for each in work:
        team.cancel(each)
    team.submit(100, "team", NORMAL)
    team.submit(100, "team", NORMAL)
    team.settle()

    assert 1 == causes(team)


def test_a_server_that_starts_again_finds_what_is_stored_and_writes_nothing_of_it(team):
    for gpus in (80, 60, 60, 30, 100):
        team.submit(gpus, "team", NORMAL)
    team.settle()
    before = causes(team)
    team.scheduler.release()
    again = World(team.site.store)
    again.site, again.time = team.site, team.time

    with counting(team.site.store.engine) as rows:
        again.settle()
    again.close()

    assert (0, 0) == (rows["task_groups"], rows["wait_causes"])
    assert before == causes(team)


def test_where_nothing_can_start_all_say_so_and_afterwards_what_they_said_before(team, monkeypatch):
    team.submit(100, "team", NORMAL)
    waiting = [team.submit(gpus, "team", NORMAL) for gpus in (60, 60, 30)]
    team.settle()
    before = [told(team, each) for each in waiting]

    with monkeypatch.context() as patched:
        patched.setattr(team.backend, "nodes", _fail)
        team.settle()
        during = {told(team, each)[0] for each in waiting}
    team.settle()

    assert {WaitReason.BACKEND.value} == during
    assert before == [told(team, each) for each in waiting]


def _fail() -> None:
    raise OSError("the disk is full")
