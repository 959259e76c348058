"""What holds for every cycle under Kueue's rules, over random trees, policies and histories."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from random import Random

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from bough.core.cycle.claim import Claim
from bough.core.cycle.flavors import FlavorAssignment, Mode
from bough.core.cycle.forest import Leaf
from bough.core.cycle.judge import Judgement, Search, judge
from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan
from bough.core.cycle.preemption import PreemptionSearch
from bough.core.cycle.queue_order import standing_of
from bough.core.cycle.reclaim_tiers import Preemptor
from bough.core.cycle.shape_needs import Needs, needs_in
from bough.core.cycle.victim import Victim
from bough.core.cycle.waits import is_waiting
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.gang.from_workload import gang_of_workload
from bough.core.quota.usage import usage_of
from bough.model.plan import EvictionRule, Plan
from bough.model.policy import KUEUE
from bough.model.quota import FlavorResource
from bough.model.snapshot import Snapshot
from tests.worlds_cycle import RESOURCES, History, debts, fill, policy, workload

#: A seed stands for a world: drawing every choice would take most of the time of these tests.
RANDOMS = st.integers(0, 2**32 - 1).map(Random)


@given(RANDOMS)
def test_a_memo_carried_through_a_history_never_changes_a_plan(random: Random) -> None:
    history = History(random, policy(random))
    memo = Memo()
    for _ in range(8):
        history.happen()
        remembered = history.plan(memo)
        assert history.plan().digest == remembered.digest
        assert history.plan(memo).digest == remembered.digest
        history.apply(remembered)


@given(RANDOMS)
def test_what_is_remembered_of_a_shape_is_what_a_search_would_find(random: Random) -> None:
    history = History(random, policy(random))
    memo = Memo()
    for _ in range(8):
        history.happen()
        decided = history.plan(memo)
        _compare_with_searches(memo.refresh(history.snapshot(), history.policy))
        history.apply(decided)


def test_judgements_are_really_remembered() -> None:
    recalled: list[Mode] = []
    for seed in range(40):
        history = History(Random(seed), KUEUE)
        fill(history, 12)
        memo = Memo()
        for _ in range(5):
            history.happen()
            decided = history.plan(memo)
            recalled += _compare_with_searches(memo.refresh(history.snapshot(), KUEUE))
            history.apply(decided)
    assert {Mode.FIT, Mode.NO_FIT, Mode.NO_CANDIDATES} == {*recalled}


@given(RANDOMS)
def test_a_memo_may_be_carried_from_one_world_to_another(random: Random) -> None:
    memo = Memo()
    for _ in range(3):
        history = History(random, policy(random))
        fill(history, 6)
        history.happen()
        assert history.plan().digest == history.plan(memo).digest


@given(RANDOMS)
def test_no_plan_brings_a_node_into_debt_or_deeper_into_it(random: Random) -> None:
    history = History(random, policy(random))
    fill(history, 12)
    for _ in range(4):
        history.happen()
        before = debts(history.tree())
        history.apply(history.plan())
        after = debts(history.tree())
        assert all(debt <= before.get(key, 0) for key, debt in after.items())


@given(RANDOMS)
def test_what_starts_has_room_before_any_victim_has_ended(random: Random) -> None:
    history = History(random, policy(random))
    fill(history, 12)
    for _ in range(4):
        history.happen()
        before = debts(history.tree())
        decided = history.plan()
        history.apply(msgspec.structs.replace(decided, evictions=()))
        after = debts(history.tree())
        assert all(debt <= before.get(key, 0) for key, debt in after.items())


@given(RANDOMS)
def test_no_victim_is_superfluous_and_the_victims_are_enough(random: Random) -> None:
    copy, preemptor = _search(random)
    usages = _usages(copy)
    victims = PreemptionSearch(copy, preemptor).victims()
    assert usages == _usages(copy)
    if victims:
        holders = [victim.claim for victim in victims]
        assert any(
            _fits(preemptor, holders, borrowing=borrowing)
            and not any(
                _fits(
                    preemptor, [each for each in holders if each is not spared], borrowing=borrowing
                )
                for spared in holders
            )
            for borrowing in (True, False)
        )


@given(RANDOMS)
def test_victims_elsewhere_are_in_queues_that_borrow_what_is_scarce(random: Random) -> None:
    copy, preemptor = _search(random)
    for victim in PreemptionSearch(copy, preemptor).victims():
        leaf = copy.forest.leaves[victim.claim.queue]
        if leaf is preemptor.leaf:
            assert EvictionRule.PREEMPT == victim.rule
        else:
            assert not leaf.is_within_nominal(preemptor.scarce)
            assert _is_above_both(victim, preemptor.leaf, leaf)


@given(RANDOMS)
def test_the_order_of_the_snapshot_does_not_matter(random: Random) -> None:
    history = History(random, policy(random))
    fill(history, 12)
    history.happen()
    history.happen()
    before = history.snapshot()
    assert (
        plan(before, history.policy).digest
        == plan(_shuffled(before, random), history.policy).digest
    )


@given(RANDOMS)
def test_everyone_who_is_looked_at_gets_an_admission_or_a_reason(random: Random) -> None:
    history = History(random, policy(random))
    fill(history, 12)
    for _ in range(3):
        history.happen()
        before = history.snapshot()
        decided = plan(before, history.policy)
        told = [each.workload for each in (*decided.admits, *decided.waits)]
        known = {each.name for line in before.gangs.values() for each in line if is_waiting(each)}
        assert len(told) == len(set(told))
        assert set(told) <= known
        promised = {each.workload for each in decided.nominations}
        assert promised <= {each.workload for each in decided.waits}
        assert all(each.message for each in decided.waits)
        history.apply(decided)


@given(RANDOMS)
def test_an_eviction_is_for_a_gang_that_waits_for_it(random: Random) -> None:
    history = History(random, policy(random))
    fill(history, 12)
    history.happen()
    decided = history.plan()
    waits_for = {each.workload: each.waits_for for each in decided.nominations}
    held = {key for each in history.running.values() for key in each}
    for eviction in decided.evictions:
        assert eviction.workload in held
        assert eviction.preemptor is not None
        assert eviction.workload in waits_for[eviction.preemptor]


def test_plans_are_the_same_bytes_under_any_seed_of_hashes() -> None:
    code = (
        "from random import Random\n"
        "from tests.property.test_cycle_kueue import digests\n"
        "print(*digests(Random(11)))\n"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert len(set(outputs[0].split())) > 10


def _compare_with_searches(copy: WorkingCopy) -> list[Mode]:
    """Judge all that waits with and without what is remembered; what could be recalled."""
    recalled: list[Mode] = []
    for claim in copy.claims.values():
        leaf = claim.leaf
        if not claim.waiting or leaf is None or leaf.cycle:
            continue
        needs = needs_in(leaf, claim)
        known = needs.at_once(copy.flavors)
        if known is None:
            found = Search(copy, Judgement(leaf, claim), needs, {}, None).recall()
            known = None if found is None else found[0]
        if known is not None:
            recalled.append(known.mode)
        first = Judgement(leaf, claim)
        judge(copy, first, tried={})
        anew = Search(copy, Judgement(leaf, claim), Needs(leaf, claim.gang), {}, None).run()
        assert _told(*anew) == _told(first.assignment, first.victims)
    return recalled


def _told(assignment: FlavorAssignment, victims: Sequence[Victim]) -> list[object]:
    return [
        assignment.mode,
        assignment.height,
        assignment.flavors,
        assignment.usage,
        assignment.tried,
        assignment.reason if assignment.mode is Mode.NO_FIT else None,
        [each.sentence for each in assignment.obstacles],
        [victim.claim.name for victim in victims],
    ]


def digests(random: Random) -> list[str]:
    """The digests of some histories' plans."""
    found: list[str] = []
    for _ in range(12):
        history = History(random, policy(random))
        fill(history, 12)
        memo = Memo()
        for _ in range(5):
            history.happen()
            decided: Plan = history.plan(memo)
            found.append(decided.digest)
            history.apply(decided)
    return found


def _search(random: Random) -> tuple[WorkingCopy, Preemptor]:
    """A full tree and a gang that asks for room in it."""
    history = History(random)
    fill(history, 14)
    copy = Memo().refresh(history.snapshot(), KUEUE)
    leaf = copy.forest.leaves[random.choice(history.queues).name]
    flavor = random.choice(leaf.queue.resource_groups[0].flavors).name
    amounts = {FlavorResource(flavor, name): random.randint(0, 5) for name in RESOURCES}
    scarce = tuple(
        what
        for what, amount in sorted(amounts.items())
        if amount > leaf.tree.available(leaf.node, what)
    )
    assume(scarce)
    asks = workload(random, 9999, random.randint(0, 9))
    standing = standing_of(gang_of_workload(asks, leaf.queue.name), KUEUE)
    return copy, Preemptor(leaf, standing, amounts, scarce)


def _fits(preemptor: Preemptor, victims: list[Claim], *, borrowing: bool) -> bool:
    """By the tree's own answer to the whole question, not by the search's."""
    leaf = preemptor.leaf
    mark = leaf.tree.log.mark()
    for victim in victims:
        leaf.tree.remove_usage(victim.queue, usage_of(victim.gang))
    fits = leaf.tree.refusal(leaf.queue.name, preemptor.amounts) is None and (
        borrowing
        or all(
            leaf.tree.balance(leaf.node, what) >= amount
            for what, amount in preemptor.amounts.items()
        )
    )
    leaf.tree.log.undo(mark)
    return fits


def _usages(copy: WorkingCopy) -> list[int]:
    tree = copy.ledgers.total
    return [tree.usage(node, what) for node in tree for what in tree.flavor_resources(node)]


def _is_above_both(victim: Victim, first: Leaf, second: Leaf) -> bool:
    tree = first.tree
    common = [each for each in tree.path(first.node) if each in tree.path(second.node)]
    return victim.level == common[0]


def _shuffled(before: Snapshot, random: Random) -> Snapshot:
    """The same with everything in another order whose order says nothing."""

    def mixed(table):
        keys = list(table)
        random.shuffle(keys)
        return {key: tuple(random.sample(table[key], len(table[key]))) for key in keys}

    return Snapshot(
        now_ms=before.now_ms,
        version=before.version,
        cohorts=tuple(random.sample(before.cohorts, len(before.cohorts))),
        queues=tuple(random.sample(before.queues, len(before.queues))),
        flavors=before.flavors[::-1],
        gangs=mixed(before.gangs),
        parked=before.parked,
        progress=dict(reversed(before.progress.items())),
    )
