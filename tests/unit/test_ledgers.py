"""The three ledgers on one quota tree."""

from __future__ import annotations

from bough.core.cycle.ledgers import Ledgers
from bough.model.quota import FlavorResource, NodeKind, TreeNode
from tests.cycle_gangs import cohort, queue

GPU = FlavorResource("any", "gpu")


def ledgers() -> Ledgers:
    """10 GPUs: a has 4, b has 3 and may borrow 1, the root has 3."""
    return Ledgers([cohort("root", None, 3)], [queue("a", 4), queue("b", 3, borrowing=1)])


def gpus(count: int) -> dict[FlavorResource, int]:
    return {GPU: count}


def test_what_is_guaranteed_stays_within_the_quota_of_its_queue() -> None:
    found = ledgers()

    assert found.admits("a", gpus(4), guaranteed=True)
    assert not found.admits("a", gpus(5), guaranteed=True)
    assert found.admits("a", gpus(10), guaranteed=False)


def test_what_is_guaranteed_stays_within_the_quota_of_every_node_above() -> None:
    oversold = Ledgers([cohort("root", None, -3)], [queue("a", 4), queue("b", 3)])
    oversold.add("a", gpus(4), guaranteed=True)

    refusal = oversold.refusal("b", gpus(1), guaranteed=True)

    assert refusal is not None
    assert TreeNode(NodeKind.COHORT, "root") == refusal.node


def test_what_is_borrowed_does_not_count_as_guaranteed() -> None:
    found = ledgers()
    found.add("a", gpus(4), guaranteed=False)

    assert found.admits("a", gpus(4), guaranteed=True)
    assert not found.admits("a", gpus(7), guaranteed=False)


def test_limits_hold_for_everything_together() -> None:
    found = ledgers()
    found.add("b", gpus(3), guaranteed=True)

    assert found.admits("b", gpus(1), guaranteed=False)
    assert not found.admits("b", gpus(2), guaranteed=False)


def test_lending_limits_do_not_bind_what_is_guaranteed() -> None:
    """The quota of a cohort is for its queues, however little it lends."""
    found = Ledgers([cohort("root", None), cohort("org", lending=0)], [queue("a", 4, "org")])

    assert found.admits("a", gpus(4), guaranteed=True)


def test_what_waits_counts_in_the_end_and_not_at_present() -> None:
    found = ledgers()
    found.add("a", gpus(10), guaranteed=False)
    found.end("a", gpus(10))
    assert found.admits("a", gpus(4), guaranteed=True)
    assert found.must_wait("a", gpus(4))

    found.add("a", gpus(4), guaranteed=True, waits=True)

    assert not found.admits("a", gpus(1), guaranteed=True)
    assert 0 == found.present.available(TreeNode(NodeKind.QUEUE, "a"), GPU)


def test_nothing_waits_once_what_was_told_to_end_has_ended() -> None:
    found = ledgers()
    found.hold_on("a", gpus(10), add=True)
    assert found.must_wait("a", gpus(4))

    found.hold_on("a", gpus(10), add=False)

    assert not found.must_wait("a", gpus(4))


def test_nothing_waits_once_an_end_is_undone() -> None:
    found = ledgers()
    found.add("a", gpus(8), guaranteed=False)
    mark = found.log.mark()
    found.end("a", gpus(8))
    assert found.must_wait("a", gpus(4))

    found.log.undo(mark)

    assert not found.must_wait("a", gpus(2))


def test_all_three_go_back_to_a_mark() -> None:
    found = ledgers()
    found.add("a", gpus(1), guaranteed=True)
    before = usages(found)
    outer = found.log.mark()
    found.add("a", gpus(2), guaranteed=True)
    inner = found.log.mark()
    found.remove("a", gpus(3), guaranteed=True)
    found.log.keep(inner)
    assert before != usages(found)

    found.log.undo(outer)

    assert before == usages(found)


def usages(found: Ledgers) -> list[int]:
    return [
        tree.usage(TreeNode(kind, name), GPU)
        for tree in (found.total, found.present, found.guaranteed)
        for kind, name in ((NodeKind.QUEUE, "a"), (NodeKind.COHORT, "root"))
    ]
