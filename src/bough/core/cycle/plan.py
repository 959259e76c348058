"""`plan()`: one scheduling cycle, for every kind of gang and every policy.

Pure: same snapshot and policy, same plan, byte for byte. A memo makes it faster and never changes
the plan.
"""

from __future__ import annotations

from bough.core.cycle.claim import Claim
from bough.core.cycle.consolidation import keep_places
from bough.core.cycle.cycle import Cycle
from bough.core.cycle.decide_pod_gang import serve_pods
from bough.core.cycle.decide_pod_sets import decide
from bough.core.cycle.drained_and_stale import drain, end_stale
from bough.core.cycle.gates import (
    bar,
    bar_line,
    hold_back,
    hold_up,
    is_ready,
    is_strict,
    stand_first,
)
from bough.core.cycle.grow import Grower
from bough.core.cycle.judge import Judgement, Outlook, judge
from bough.core.cycle.memo import Memo
from bough.core.cycle.offers import wants_of
from bough.core.cycle.together import line_up, serve_judged
from bough.core.cycle.turns import serve_guaranteed, share_idle, share_rest
from bough.core.cycle.working_copy import WorkingCopy
from bough.model.gang_rules import LineOrder
from bough.model.plan import Plan
from bough.model.policy import Judging, Policy
from bough.model.snapshot import Snapshot


def plan(snapshot: Snapshot, policy: Policy, memo: Memo | None = None) -> Plan:
    """Decide what starts, what ends and what waits, and why."""
    if memo is None:
        # A copy that is thrown away need not be undone.
        return run(Memo().refresh(snapshot, policy)).outcome.plan(snapshot.version)
    known = memo.recall(snapshot, policy)
    if known is not None:
        return known
    copy = memo.refresh(snapshot, policy)
    mark = copy.mark()
    with memo.dropped_on_error():
        cycle = run(copy)
    copy.undo(mark)
    return memo.remember(cycle.outcome.plan(snapshot.version))


def run(copy: WorkingCopy) -> Cycle:
    """Decide about every gang. The working copy is left as the decisions make it."""
    cycle = Cycle(copy)
    grower = Grower(copy, cycle.outcome)
    drain(cycle)
    keep_places(cycle)
    if copy.policy.judging is Judging.TOGETHER:
        for judgement in line_up(cycle):
            serve_judged(cycle, judgement)
    elif copy.rules.line is LineOrder.GUARANTEED_FIRST:
        serve_guaranteed(cycle, serve)
        share_idle(cycle, serve, grower, preemptible_only=True)
    else:
        if copy.rules.free_first:
            share_idle(cycle, serve, grower, preemptible_only=False, takes=False)
        share_idle(cycle, serve, grower, preemptible_only=False)
    share_rest(cycle, grower)
    end_stale(cycle)
    return cycle


def serve(cycle: Cycle, claim: Claim, *, takes: bool = True) -> bool:
    """Serve one gang: its gates, its offers, room or victims, the decision.

    Returns whether it has got what it needs, now or once room is free; `takes`: whether others may
    end, or be moved, for it.
    """
    copy = cycle.copy
    if claim.name in cycle.outcome.evicted:
        return False
    if claim.counted and claim.name in cycle.outcome.served:
        # It was admitted to what was free, before others were asked to end for those behind it.
        return True
    if not claim.counted and claim.running and claim.leaf and wants_of(copy, claim).satisfied:
        return True
    if cycle.first_in_line.get(claim.queue) is claim:
        del cycle.first_in_line[claim.queue]
    absent = None if is_ready(copy, claim) else hold_back(copy, claim)
    barred = absent or bar(copy, claim) or bar_line(cycle, claim)
    if barred is not None:
        cycle.outcome.wait(barred)
    elif _give(cycle, claim, takes=takes):
        return True
    if absent is None:
        hold_up(cycle, claim)
    return False


def _give(cycle: Cycle, claim: Claim, *, takes: bool) -> bool:
    if not claim.counted or claim.leaf is None:
        return serve_pods(cycle, claim, takes=takes)
    judgement = Judgement(claim.leaf, claim)
    judgement.spared = cycle.copy.spared_by(claim.name)
    judgement.excluded = cycle.no_victims_of(claim.name)
    judge(cycle.copy, judgement, tried={}, promised=cycle.copy.progress(claim.name).promised)
    if not takes and judgement.outlook is not Outlook.AT_ONCE:
        # Its reason comes when others may end for it; until then, too, nothing passes it.
        if is_strict(claim.leaf):
            stand_first(cycle, claim)
        return False
    return decide(cycle, judgement)
