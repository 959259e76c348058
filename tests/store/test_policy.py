"""The policy as configuration: what is written counts from the next cycle on, on every server."""

from __future__ import annotations

import pytest

from bough.errors import Forbidden, Invalid, NotFound
from bough.formats.policy_file import policy_document
from bough.model.access import Actor
from bough.model.change_record import SYSTEM, ConfigType
from bough.model.policy import KUEUE, OSMO
from bough.model.workflow import Priority, WorkflowStatus
from tests.policies import dotted, said, written
from tests.store.backends import grudging
from tests.store.usecases import (
    Note,
    Scheduler,
    Written,
    change_history,
    new_explainer,
    policy,
    setting_store,
)
from tests.store.world import World

PENDING, RUNNING = WorkflowStatus.PENDING, WorkflowStatus.RUNNING


def change(world: World, **choices: object) -> dict[str, object]:
    return policy.patch_policy(world.site, world.admin, Written(fields=written(**choices)))


def revisions(world: World) -> list[tuple[int, str, str]]:
    found = change_history.list_revisions(world.site, world.admin, types=(ConfigType.POLICY,))
    return [(each.revision, each.username, each.description) for each in found]


def test_at_first_it_is_the_preset_of_the_product(world):
    assert policy_document(OSMO, "osmo") == policy.get_policy(world.site, world.admin)
    assert [] == revisions(world)


def test_a_change_counts_from_the_next_cycle_on(team):
    change(team, reclaim=False, preempt=False)
    low = team.run(100, priority=Priority.LOW)
    high = team.submit(10)
    team.settle()
    assert (RUNNING, PENDING) == (team.status(low), team.status(high))

    change(team, reclaim=True, preempt=True)
    team.settle()

    assert (PENDING, RUNNING) == (team.status(low), team.status(high))


def test_a_change_counts_on_the_other_server_of_the_database(team):
    low = team.run(100, priority=Priority.LOW)
    asked = new_explainer(team.site)
    other = team.restarted()
    other.settle()
    change(team, reclaim=False, preempt=False)

    high = other.submit(10)
    other.settle()
    assert (RUNNING, PENDING) == (other.status(low), other.status(high))
    # The certificate is made by the same policy: by the preset it would be nominated.
    (group,) = asked.explain(team.admin, high.workflow_id).groups
    assert "waits" == group.certificate.verdict

    change(team, preempt=True, reclaim=True)
    (group,) = asked.explain(team.admin, high.workflow_id).groups
    assert "nominated" == group.certificate.verdict


def test_remedies_are_tried_by_the_policy_that_counts(team):
    change(team, strict_within_rank=False)
    team.run(100)
    first = team.submit(60)
    second = team.submit(30)
    team.settle()
    explainer = new_explainer(team.site)

    (group,) = explainer.explain(team.admin, second.workflow_id, with_remedies=True).groups

    assert "quota" == group.reason, "with the preset it would wait behind the first"
    assert first.workflow_id not in str(group.remedies)


def test_a_plan_that_was_made_by_the_policy_before_is_discarded(team, monkeypatch):
    low = team.run(100, priority=Priority.LOW)
    team.submit(10)
    from bough.control.scheduling import live_plan

    planned = live_plan.plan

    def meanwhile(*arguments):
        monkeypatch.setattr(live_plan, "plan", planned)
        found = planned(*arguments)
        assert found.evictions
        change(team, reclaim=False, preempt=False)
        return found

    monkeypatch.setattr(live_plan, "plan", meanwhile)
    team.settle()

    assert RUNNING is team.status(low)
    assert [None] == [task.releasing for task in team.tasks(low)]


def test_each_change_is_a_revision_with_its_difference_and_an_audit(world):
    note = Note("calmer", ("night",))
    fields = Written(fields=written(minimum_runtime="15m"))
    policy.patch_policy(world.site, world.admin, fields, note)

    assert [(2, "root", "calmer"), (1, SYSTEM, "the policy at first")] == revisions(world)
    (difference,) = change_history.diff(world.site, world.admin, ConfigType.POLICY, 1, 2)
    expected = (f"policy.{dotted('minimum_runtime')}", "0s", "15m")
    assert expected == (difference.field, difference.before, difference.after)
    (entry,) = change_history.list_audit(world.site, world.admin, subject="config/policy")
    assert ("root", "config:Update") == (entry.actor, entry.action)
    assert ("0s", "15m") == tuple(
        said(each, "minimum_runtime") for each in (entry.before, entry.after)
    )


def test_it_can_be_returned_to_what_it_was(world):
    change(world, minimum_runtime="15m")
    change(world, minimum_runtime="30m", reservations=2)

    change_history.rollback_policy(world.site, world.admin, 2)

    now = policy.get_policy(world.site, world.admin)
    assert ("15m", 4) == (said(now, "minimum_runtime"), said(now, "reservations"))
    assert 4 == len(revisions(world))
    with pytest.raises(NotFound):
        change_history.rollback_policy(world.site, world.admin, 9)


def test_a_preset_replaces_everything_and_fields_change_what_is(world):
    change(world, minimum_runtime="15m")

    changed = policy.patch_policy(world.site, world.admin, Written(fields={"preset": "kueue"}))
    assert policy_document(KUEUE, "kueue") == changed

    replaced = policy.put_policy(
        world.site, world.admin, Written(fields=written(minimum_runtime="1h"))
    )
    assert ("osmo", "1h") == (replaced["preset"], said(replaced, "minimum_runtime"))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("preset: osmo\nsort: true\n", "p.yaml:2: Policy: sort: unknown field"),
        ("preset: osmo\nheads: frist\n", "p.yaml:2: Policy: heads: expected one of first, all"),
        ("- 1\n", "p.yaml:1: Policy: expected a mapping"),
        ("a: [\n", "p.yaml:2:1"),
        ("", "p.yaml: is empty"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_line_and_changes_nothing(world, text, line):
    before = policy.get_policy(world.site, world.admin)
    with world.site.store.read() as connection:
        version = setting_store.counter(connection, setting_store.VERSION)

    with pytest.raises(Invalid) as refused:
        policy.patch_policy(world.site, world.admin, Written(text=text, source="p.yaml"))

    assert line in "\n".join((refused.value.message, *refused.value.details))
    assert before == policy.get_policy(world.site, world.admin)
    assert [] == revisions(world)
    with world.site.store.read() as connection:
        assert version == setting_store.counter(connection, setting_store.VERSION)


@pytest.mark.parametrize(("field", "value"), [("work", 0), ("eviction_limit", 0)])
def test_what_would_stop_the_scheduler_is_refused(world, field, value):
    with pytest.raises(Invalid) as refused:
        change(world, **{field: value})

    assert (f"Policy: {dotted(field)}: is 0, but must be at least 1",) == refused.value.details


@pytest.mark.parametrize(("field", "value"), [("reservations", 2**60), ("grace", "9999999999999h")])
def test_what_cannot_be_counted_is_refused(world, field, value):
    with pytest.raises(Invalid) as refused:
        change(world, **{field: value})

    assert dotted(field) in refused.value.details[0]


def test_only_who_may_change_configuration_changes_it(world):
    other = Actor("ann", ("osmo-team-user", "osmo-default"))

    for use in (policy.patch_policy, policy.put_policy):
        with pytest.raises(Forbidden):
            use(world.site, other, Written(fields={}))
    with pytest.raises(Forbidden):
        policy.get_policy(world.site, other)


def test_a_file_wins_at_the_start_and_is_a_revision_where_it_differs(world, tmp_path):
    path = tmp_path / "ours.yaml"
    path.write_text("preset: kueue\n")
    change(world, minimum_runtime="15m")

    policy.start_with(world.site, str(path))
    policy.start_with(world.site, str(path))

    assert policy_document(KUEUE, "kueue") == policy.get_policy(world.site, world.admin)
    assert (3, SYSTEM, f"serve --policy {path}") == revisions(world)[0]
    assert 3 == len(revisions(world))


def test_what_this_program_does_not_know_of_a_stored_policy_is_said_and_the_rest_counts(world):
    document = {**policy_document(KUEUE, "kueue"), "sort": True, "heads": "none at all"}
    with world.site.store.write() as connection:
        setting_store.put(connection, "policy", document)

    assert policy_document(KUEUE, "kueue") == policy.get_policy(world.site, world.admin)
    assert [True, True] == [
        each.startswith("The stored policy: ") for each in policy.stored_faults(world.site)
    ]


def test_a_victim_has_the_grace_of_the_policy(team):
    backend = grudging(team)
    change(team, grace="7s")
    low = team.run(100, priority=Priority.LOW)
    team.submit(10)
    team.settle()

    (stop,) = backend.stops
    assert (7, team.tasks(low)[0].attempt) == (stop.grace_s, stop.attempts[0])


def test_a_victim_has_what_is_left_of_its_grace_when_another_server_reminds_of_it(team):
    backend = grudging(team)
    change(team, grace="90s")
    team.run(100, priority=Priority.LOW)
    team.submit(10)
    team.settle()
    team.time.ms += 30_000
    backend.stops.clear()
    team.scheduler.release()

    team.scheduler = Scheduler(team.site, (backend,))
    team.scheduler.cycle()

    assert [60] == [stop.grace_s for stop in backend.stops]
