"""What callers see of a site: tags, and which workflows changed lately."""

from __future__ import annotations

import pytest

from bough.model.change_record import ConfigType
from tests.store.usecases import Recent, change_history, query

pytestmark = pytest.mark.postgresql


def test_tags_are_told_once_each_by_name(team):
    site, admin = team.site, team.admin
    for names in (("x", "ü"), ("x", "a b"), ()):
        workflow = team.submit(1)
        query.tag(site, admin, workflow.workflow_id, add=names)

    assert ["a b", "x", "ü"] == query.list_tags(site, admin)


def test_something_that_happens_to_one_is_not_told_to_another(team):
    recent = Recent(team.site, look_s=0)
    one, other = team.submit(1), team.submit(1)
    team.settle()
    before = [recent.latest(each.workflow_id) for each in (one, other)]

    team.finish(one)

    after = [recent.latest(each.workflow_id) for each in (one, other)]
    assert after[0] > before[0]
    assert after[1] == before[1]


def test_when_too_much_happens_everybody_looks_again(team, monkeypatch):
    monkeypatch.setattr("bough.control.records.event_stream.MOST_SUBJECTS", 3)
    recent = Recent(team.site, look_s=0)
    one = team.submit(1)
    before = recent.latest(one.workflow_id)
    for _ in range(5):
        team.submit(1)

    seen = {recent.latest(one.workflow_id) for _ in range(5)}

    assert all(number > before for number in seen)
    assert recent.latest(one.workflow_id) == recent.latest("nobody")


def test_who_looks_seldom_is_told_what_was_known_then(team):
    recent = Recent(team.site, look_s=3_600)
    one = team.submit(1)
    before = recent.latest(one.workflow_id)

    team.settle()

    assert before == recent.latest(one.workflow_id)


def test_the_last_change_of_each_kind_up_to_a_time(team, monkeypatch):
    monkeypatch.setattr(change_history, "AT_ONCE", 2)
    site, admin = team.site, team.admin
    moments = [team.time.ms]
    for number in range(5):
        team.time.ms += 1_000
        team.pool("team", 90 + number)
        moments.append(team.time.ms)

    found = [change_history.revisions_at(site, admin, at_ms) for at_ms in moments]

    assert [[1], [2], [3], [4], [5], [6]] == [[each.revision for each in row] for row in found]
    assert [] == change_history.revisions_at(site, admin, moments[0] - 1)
    assert [] == change_history.revisions_at(site, admin, moments[-1], (ConfigType.ROLE,))
