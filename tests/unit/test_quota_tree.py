"""The quota tree on worked examples."""

from __future__ import annotations

import pytest

from bough.core.quota.change_effects import Debt, effects
from bough.core.quota.tree import (
    DeleteCohort,
    DeleteQueue,
    PutCohort,
    PutQueue,
    QuotaTree,
)
from bough.errors import Broken
from bough.model.quota import (
    Cohort,
    FlavorQuotas,
    FlavorResource,
    NodeKind,
    Queue,
    Quota,
    ResourceGroup,
    TreeNode,
)
from bough.model.reason import RefusalKind

GPU = FlavorResource("h100", "gpu")


def group(
    nominal: int, *, borrow: int | None = None, lend: int | None = None
) -> tuple[ResourceGroup, ...]:
    quota = Quota(nominal, borrow, lend)
    return (ResourceGroup(("gpu",), (FlavorQuotas("h100", {"gpu": quota}),)),)


def cohort(name: str) -> TreeNode:
    return TreeNode(NodeKind.COHORT, name)


def queue(name: str) -> TreeNode:
    return TreeNode(NodeKind.QUEUE, name)


def available(tree: QuotaTree) -> dict[str, int]:
    return {node.name: tree.available(node, GPU) for node in tree}


@pytest.fixture
def organisation() -> QuotaTree:
    """Root without quota, an organisation with limits and two queues, and a queue beside it."""
    return QuotaTree.of(
        [Cohort("org", "root", group(2, lend=3, borrow=1))],
        [
            Queue("a", "org", group(5, lend=2)),
            Queue("b", "org", group(1)),
            Queue("c", "root", group(4)),
        ],
    )


def test_limits_at_several_levels_count_together(organisation: QuotaTree) -> None:
    organisation.add_usage("a", {GPU: 4})

    assert {"a": 1, "b": 1, "c": 4, "org": 4, "root": 7} == {
        node.name: organisation.balance(node, GPU) for node in organisation
    }
    assert {"a": 5, "b": 5, "c": 7, "org": 5, "root": 7} == available(organisation)


def test_an_organisation_that_may_not_borrow_still_lends() -> None:
    """Story 1, first form: research borrows nothing, production borrows from research."""
    tree = QuotaTree.of(
        [Cohort("research", "company", group(10, borrow=0)), Cohort("production", "company")],
        [Queue("lab", "research", group(0)), Queue("serving", "production", group(5))],
    )

    assert 10 == tree.available(queue("lab"), GPU)
    assert 15 == tree.available(queue("serving"), GPU)


def test_an_organisation_that_may_not_lend_still_borrows() -> None:
    """Story 1, second form: production lends nothing, and borrows from research."""
    tree = QuotaTree.of(
        [
            Cohort("research", "company", group(10)),
            Cohort("production", "company", group(5, lend=0)),
        ],
        [Queue("lab", "research", group(0)), Queue("serving", "production", group(0))],
    )

    assert 10 == tree.available(queue("lab"), GPU)
    assert 15 == tree.available(queue("serving"), GPU)


def test_the_debt_of_a_parent_eats_what_a_child_keeps_for_itself() -> None:
    tree = QuotaTree.of(
        [Cohort("root", None, group(3))],
        [Queue("a", "root", group(4, lend=0)), Queue("b", "root", group(0))],
    )
    tree.add_usage("b", {GPU: 3})
    tree.apply(PutCohort(Cohort("root")))

    assert 1 == tree.available(queue("a"), GPU)
    assert -3 == tree.available(cohort("root"), GPU)


def test_a_debt_that_is_not_visible_at_the_common_ancestor_does_not_matter() -> None:
    tree = QuotaTree.of(
        [Cohort("x", "root", group(0, borrow=0))],
        [Queue("q1", "x", group(5)), Queue("y", "root", group(6))],
    )
    tree.add_usage("q1", {GPU: 5})
    tree.apply(PutQueue(Queue("q1", "x", group(2))))

    assert 3 == tree.available(queue("y"), GPU)
    assert 3 == tree.debt(cohort("x"), GPU)
    assert tree.refusal("q1", {GPU: 1}) is not None


def test_a_borrowing_limit_counts_from_all_quota_not_from_what_is_lent() -> None:
    tree = QuotaTree.of(
        [], [Queue("q", "root", group(4, lend=1, borrow=2)), Queue("r", "root", group(10))]
    )

    assert 6 == tree.available(queue("q"), GPU)
    assert 6 == tree.potential(queue("q"), GPU)


def test_a_refusal_names_the_violated_inequality(organisation: QuotaTree) -> None:
    organisation.add_usage("a", {GPU: 4})

    refusal = organisation.refusal("a", {GPU: 6})

    assert refusal is not None
    assert (cohort("org"), 4, 6, 1) == (
        refusal.node,
        refusal.balance,
        refusal.passed,
        refusal.borrowing_limit,
    )
    assert (5, 9, 1, False) == (
        refusal.available,
        refusal.potential,
        refusal.deficit,
        refusal.never,
    )
    assert (
        "cohort org is short of 1 h100/gpu: 4 are left, 6 are asked for, and it may borrow 1"
        == refusal.sentence
    )


def test_a_request_beyond_all_quota_is_never_admitted(organisation: QuotaTree) -> None:
    refusal = organisation.refusal("a", {GPU: 10})

    assert refusal is not None
    assert refusal.never


def test_a_queue_takes_nothing_that_it_does_not_list(organisation: QuotaTree) -> None:
    refusal = organisation.refusal("a", {FlavorResource("h100", "cpu"): 1})

    assert refusal is not None
    assert RefusalKind.NOT_LISTED is refusal.kind
    assert "queue a does not list h100/cpu" == refusal.sentence


def test_a_cohort_that_is_only_named_exists_without_quota_or_parent(
    organisation: QuotaTree,
) -> None:
    assert organisation.is_implicit(cohort("root"))
    assert organisation.parent(cohort("root")) is None

    organisation.apply(DeleteQueue("c"))
    organisation.apply(PutCohort(Cohort("org")))

    assert cohort("root") not in organisation


def test_a_deleted_cohort_that_is_still_named_stays_without_quota_and_parent(
    organisation: QuotaTree,
) -> None:
    organisation.add_usage("a", {GPU: 8})

    organisation.apply(DeleteCohort("org"))

    assert organisation.is_implicit(cohort("org"))
    assert organisation.parent(cohort("org")) is None
    assert 3 == organisation.subtree_quota(cohort("org"), GPU)
    assert 2 == organisation.debt(cohort("org"), GPU)
    assert 4 == organisation.available(queue("c"), GPU)


def test_deleting_what_does_not_exist_changes_nothing(organisation: QuotaTree) -> None:
    assert () == organisation.apply(DeleteCohort("root"))
    assert () == organisation.apply(DeleteQueue("nobody"))
    assert cohort("root") in organisation


def test_a_cycle_stops_admissions_in_the_whole_tree_and_tells_every_node(
    organisation: QuotaTree,
) -> None:
    organisation.add_usage("c", {GPU: 2})

    events = organisation.apply(PutCohort(Cohort("root", "org")))

    assert ["org", "root", "a", "b", "c"] == [event.node.name for event in events]
    assert {"CohortCycle"} == {event.reason for event in events}
    assert all("org → root → org" in event.message for event in events)
    (condition,) = organisation.conditions(queue("b"))
    assert not condition.status
    assert "org → root → org" in condition.message
    refusal = organisation.refusal("c", {GPU: 1})
    assert refusal is not None
    assert "queue c is stopped: its cohorts form a cycle: org → root → org" == refusal.sentence
    assert 2 == organisation.usage(queue("c"), GPU)


def test_work_may_end_and_be_counted_while_a_tree_is_tangled(organisation: QuotaTree) -> None:
    organisation.add_usage("a", {GPU: 4})
    organisation.apply(PutCohort(Cohort("root", "org")))
    organisation.remove_usage("a", {GPU: 3})
    organisation.add_usage("c", {GPU: 4})

    events = organisation.apply(DeleteCohort("root"))

    assert {"CohortCycleBroken"} == {event.reason for event in events}
    assert {"a": 4, "b": 1, "c": 0, "org": 5, "root": 3} == {
        node.name: organisation.balance(node, GPU) for node in organisation
    }
    assert organisation.refusal("b", {GPU: 2}) is None


def test_another_tree_is_not_touched_by_a_cycle(organisation: QuotaTree) -> None:
    organisation.apply(PutQueue(Queue("elsewhere", None, group(3))))

    organisation.apply(PutCohort(Cohort("root", "org")))

    assert organisation.refusal("elsewhere", {GPU: 3}) is None


def test_effects_name_who_comes_into_debt_and_by_how_much(organisation: QuotaTree) -> None:
    organisation.add_usage("a", {GPU: 8})

    found = effects(organisation, PutQueue(Queue("a", "org", group(1, lend=0))))

    assert (Debt(cohort("org"), GPU, 0, 3),) == found.debts
    assert 5 == organisation.subtree_quota(queue("a"), GPU)


def test_effects_of_taking_a_flavor_from_a_queue_that_uses_it(organisation: QuotaTree) -> None:
    """Else what runs would be counted against no list, and be borrowed without limit."""
    organisation.add_usage("b", {GPU: 1})

    found = effects(organisation, PutQueue(Queue("b", "org")))

    assert (Debt(queue("b"), GPU, 0, 1),) == found.debts


def test_effects_of_a_cycle_name_all_that_would_stop(organisation: QuotaTree) -> None:
    found = effects(organisation, PutCohort(Cohort("root", "org")))

    assert ["org", "root", "a", "b", "c"] == [node.name for node in found.tangled]
    assert () == organisation.cycle(cohort("org"))


def test_a_cohort_of_our_own_making_may_have_negative_quota() -> None:
    """Children that are oversold on purpose: 6 promised twice, 8 there."""
    tree = QuotaTree.of(
        [Cohort("root", None, group(-4))],
        [Queue("a", "root", group(6)), Queue("b", "root", group(6))],
    )
    tree.add_usage("a", {GPU: 6})

    assert 2 == tree.available(queue("b"), GPU)


def test_giving_back_more_than_was_taken_is_a_bug_that_shows(organisation: QuotaTree) -> None:
    organisation.add_usage("a", {GPU: 1})

    with pytest.raises(Broken, match="queue a gives back more h100/gpu than it uses"):
        organisation.remove_usage("a", {GPU: 2})


def test_the_tree_keeps_its_shape_while_something_could_be_undone(
    organisation: QuotaTree,
) -> None:
    mark = organisation.log.mark()
    organisation.add_usage("a", {GPU: 3})
    with pytest.raises(Broken, match="within a what-if"):
        organisation.apply(DeleteQueue("a"))
    organisation.log.undo(mark)

    assert 0 == organisation.usage(queue("a"), GPU)
    organisation.apply(DeleteQueue("a"))
    assert queue("a") not in organisation
