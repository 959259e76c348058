"""Gangs of pods and gangs of pod sets in one world: the laws hold, in every preset."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from hypothesis import given, settings

from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan, run
from bough.core.cycle.queue_order import standing_of
from bough.core.cycle.waits import Waits, is_waiting
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.quota.usage import usage_of
from bough.model.admission_rules import QueueingStrategy, StopPolicy
from bough.model.gang import Gang, PodState
from bough.model.gang_rules import LineOrder
from bough.model.plan import EvictionRule, Plan
from bough.model.policy import KAI, KAI_FAIR, KUEUE, OSMO, Heads, Judging, Policy
from bough.model.reason import WaitReason
from bough.model.snapshot import Snapshot
from tests.oracles.cycle import (
    Placed,
    all_gangs,
    check_gangs,
    check_nodes,
    compare,
    declarations,
    guaranteed,
    nominated_pods,
    resources_of,
    sharing,
    sufficient,
    total,
)
from tests.simulation import changes, pods_in, replace
from tests.strategies_cycle import randoms
from tests.worlds_mixed import MixedHistory, is_told

CYCLES = 6
MOST_CYCLES = 60
ALL_HEADS = replace(KUEUE, name="kueue, all heads", heads=Heads.ALL)
PRESETS = (OSMO, KUEUE, ALL_HEADS, KAI)
#: What waits for one of these is not in line yet.
NOT_IN_LINE = {WaitReason.PODS, WaitReason.INACTIVE}
PRESENT = {PodState.RUNNING, PodState.RELEASING}
every_preset = pytest.mark.parametrize("policy", PRESETS, ids=lambda each: each.name)
few = settings(max_examples=settings().max_examples // 2)


@every_preset
@few
@given(random=randoms())
def test_no_plan_breaks_a_law_and_a_memo_changes_none(policy: Policy, random: Random) -> None:
    history = MixedHistory(random, policy, Memo())
    for _ in range(CYCLES):
        for _ in range(random.randint(0, 5)):
            history.happen()
            assert history.cold().digest == history.plan().digest
        check_step(history)


@few
@given(random=randoms())
def test_a_memo_of_another_world_or_another_policy_changes_no_plan(random: Random) -> None:
    memo = Memo()
    worlds = [MixedHistory(random, policy, Memo()) for policy in PRESETS]
    for _ in range(2 * CYCLES):
        history, policy = random.choice(worlds), random.choice(PRESETS)
        history.happen()
        cold = plan(history.snapshot, policy)
        assert cold.digest == plan(history.snapshot, policy, memo).digest


@pytest.mark.parametrize("policy", [OSMO, KAI], ids=lambda each: each.name)
@few
@given(random=randoms())
def test_once_nothing_else_happens_all_comes_to_rest(policy: Policy, random: Random) -> None:
    history = MixedHistory(random, policy, Memo())
    for _ in range(CYCLES):
        for _ in range(random.randint(0, 5)):
            history.happen()
        check_step(history)
    for _ in range(MOST_CYCLES):
        if not changes(check_step(history)) and not history.ending:
            return
        if history.ending:
            history.end_evicted(history.ending[: random.randint(1, len(history.ending))])
        history.tick()
    raise AssertionError("there is no end of it")


#: In the last two, gangs evicted each other in circles.
@pytest.mark.parametrize("seed", [*range(30), 1002, 1569])
def test_with_fair_shares_too_all_comes_to_rest(seed: int) -> None:
    random = Random(seed)
    history = MixedHistory(random, KAI_FAIR, Memo())
    for _ in range(CYCLES):
        for _ in range(random.randint(0, 5)):
            history.happen()
        history.step()
    for _ in range(MOST_CYCLES):
        if not changes(history.step()) and not history.ending:
            return
        if history.ending:
            history.end_evicted(history.ending[: random.randint(1, len(history.ending))])
        history.tick()
    raise AssertionError("there is no end of it")


#: In the last three, something for which others had ended passed the first of a strict queue.
@pytest.mark.parametrize("seed", [*range(5), 101, 190, 208])
def test_with_fair_shares_too_nothing_passes_the_first_of_a_strict_queue(seed: int) -> None:
    random = Random(seed)
    history = MixedHistory(random, KAI_FAIR, Memo())
    for _ in range(2 * CYCLES):
        for _ in range(random.randint(0, 5)):
            history.happen()
        before = history.snapshot
        check_rules(before, KAI_FAIR, history.step())
        if history.ending and random.random() < 0.5:
            history.end_evicted(history.ending[: random.randint(1, len(history.ending))])


@every_preset
@few
@given(random=randoms())
def test_undoing_a_cycle_restores_quota_places_and_what_is_held(
    policy: Policy, random: Random
) -> None:
    history = MixedHistory(random, policy, Memo())
    for _ in range(CYCLES):
        for _ in range(random.randint(0, 5)):
            history.happen()
        copy = Memo().refresh(history.snapshot, policy)
        before = state_of(copy)
        mark = copy.mark()
        run(copy)
        copy.undo(mark)
        assert before == state_of(copy)
        history.step()


def test_both_forms_are_really_decided_about() -> None:
    """Both start, and each ends for the other."""
    missing = {("starts", form, None) for form in (True, False)}
    missing |= {("ends", one, other) for one in (True, False) for other in (True, False)}
    for policy, seed in product(PRESETS, range(60)):
        history = MixedHistory(Random(seed), policy)
        for _ in range(CYCLES):
            for _ in range(3):
                history.happen()
            gangs = history.gangs
            decided = history.step()
            missing -= {("starts", True, None) for _ in decided.admits}
            missing -= {("starts", False, None) for _ in decided.binds}
            for each in decided.evictions:
                ends = bool(gangs[each.workload].pod_sets)
                preemptor = each.preemptor
                for_sets = None if preemptor is None else bool(gangs[preemptor].pod_sets)
                missing.discard(("ends", ends, for_sets))
        if not missing:
            return
    assert set() == missing


def state_of(copy: WorkingCopy) -> list[object]:
    """All that a cycle changes: usage in every ledger, what is where, what gangs hold."""
    ledgers, index = copy.ledgers, copy.placer.index
    trees = (ledgers.total, ledgers.present, ledgers.guaranteed)
    return [
        {
            (number, node, what): tree.usage(node, what)
            for number, tree in enumerate(trees)
            for node in tree
            for what in tree.flavor_resources(node)
            if tree.usage(node, what)
        },
        {
            (node, what): ledgers.guaranteed.available(node, what)
            for node in ledgers.guaranteed
            for what in ledgers.guaranteed.flavor_resources(node)
            if ledgers.guaranteed.usage(node, what)
        },
        {
            (name, pod.name): copy.placer.holding(name, pod.name)
            for name, claim in copy.claims.items()
            for pod in claim.gang.pods
        },
        (list(index.idle), list(index.later), list(index.by_gpus)),
        [name for name, claim in copy.claims.items() if copy.has_changed(claim)],
    ]


def check_step(history: MixedHistory) -> Plan:
    """Carry out one plan and ask it all laws; the plan is the same without a memo."""
    before = history.snapshot
    cold = history.cold()
    decided = history.step()
    assert cold.digest == decided.digest, "a memo changed the plan"
    after = history.snapshot
    check_told(before, history.policy, decided)
    check_rules(before, history.policy, decided)
    check_gangs(before, pods_alone(before, decided), after)
    check_nodes(before, decided, after)
    check_quota(before, decided, after)
    return decided


def pods_alone(before: Snapshot, decided: Plan) -> Plan:
    """What a plan says of gangs of pods."""
    gangs = all_gangs(before)
    kept = tuple(each for each in decided.nominations if gangs[each.workload].pods)
    return replace(decided, nominations=kept)


def check_told(before: Snapshot, policy: Policy, decided: Plan) -> None:
    """Everything that waits starts, is nominated, or has a reason; nothing is told two things."""
    waits = Waits(before, policy, decided)
    admitted = [each.workload for each in decided.admits]
    cores = {bind.workload for bind in decided.binds if not bind.growth}
    nominated = [each.workload for each in decided.nominations]
    evicted = {each.workload for each in decided.evictions}
    moved = {each.workload for each in decided.evictions if each.rule is EvictionRule.MOVE}
    starts = {*admitted, *(bind.workload for bind in decided.binds)}
    assert len(admitted) == len({*admitted}), "admitted twice"
    assert len(nominated) == len({*nominated}), "nominated twice"
    assert moved <= {*nominated}, "moved, and nowhere to go"
    assert not (evicted - moved) & (starts | {*nominated}), "told to end and to start"
    assert not {*admitted} & {*nominated}, "admitted and nominated"
    for name, gang in all_gangs(before).items():
        lacks = is_waiting(gang) and not (gang.pods and sufficient(gang, PodState.RUNNING))
        if lacks and not pods_in(gang, PodState.RELEASING):
            told = name in {*admitted, *cores, *nominated, *evicted}
            assert told or waits.of(gang) is not None, f"{name} is told nothing"
    wholes = [each.workload for each in decided.evictions if not each.pods]
    assert len(wholes) == len({*wholes}), "evicted twice"
    pods = [(each.workload, pod) for each in decided.evictions for pod in each.pods]
    assert len(pods) == len({*pods}), "a pod is evicted twice"


def check_rules(before: Snapshot, policy: Policy, decided: Plan) -> None:
    """Nothing starts or grows in a stopped queue; in a strict one nothing passes another."""
    gangs, waits = all_gangs(before), Waits(before, policy, decided)
    starts = {each.workload for each in (*decided.admits, *decided.binds, *decided.nominations)}
    for queue in before.queues:
        started = [gangs[name] for name in sorted(starts) if gangs[name].queue == queue.name]
        assert queue.rules.stop is StopPolicy.NONE or not started, f"{queue.name} is stopped"
        if queue.rules.queueing is not QueueingStrategy.STRICT_FIFO:
            continue
        fresh = [gang for gang in started if not pods_in(gang, PodState.RUNNING)]
        for gang in before.gangs[queue.name]:
            wait = None if gang.name in starts else waits.of(gang)
            if wait is not None and wait.reason not in NOT_IN_LINE:
                passed = [each.name for each in fresh if turn(each, policy) > turn(gang, policy)]
                assert not passed, f"{passed} passed {gang.name}, which waits: {wait.reason}"


def turn(gang: Gang, policy: Policy) -> tuple[object, ...]:
    """Where a gang stands in the line of its queue: what has a guarantee may have its own."""
    in_turn = policy.judging is Judging.IN_TURN
    second = in_turn and policy.gangs.line is LineOrder.GUARANTEED_FIRST and gang.preemptible
    return second, standing_of(gang, policy)


def check_quota(before: Snapshot, decided: Plan, after: Snapshot) -> None:
    """Nothing gets worse: a quota that was cut may leave debts, a plan makes none."""
    promised = list(nominated_pods(before, decided))
    running = {PodState.RUNNING}
    compare_all(before, after, total(before, PRESENT), total(after, PRESENT), told=True)
    compare_all(
        before, after, total(before, running), [*total(after, running), *promised], told=False
    )
    held = guaranteed(before), guaranteed(after, promised)
    compare(sharing(before), *held, "of what is guaranteed")


def compare_all(
    before: Snapshot, after: Snapshot, was: list[Placed], now: list[Placed], *, told: bool
) -> None:
    """`told`: what was told to end still counts."""
    one, other = declarations(before, was), declarations(before, now)
    for snapshot, counted in ((before, one), (after, other)):
        for gang in all_gangs(snapshot).values():
            if told or not is_told(gang):
                counted.add_usage(gang.queue, usage_of(gang))
    when = "at present" if told else "in the end"
    for node in one.nodes():
        for what in resources_of(before):
            owed, owes = one.debt(node, what), other.debt(node, what)
            assert owes <= max(0, owed), f"{node} owes {owes} {what} {when}, was {owed}"
