"""What a gang of pod sets gets: quota, room that is being freed, or a reason why it waits.

Gangs are decided one after the other, each on top of what those before it got.
"""

from __future__ import annotations

from collections.abc import Iterable

from bough.core.cycle.cycle import Cycle
from bough.core.cycle.flavors import FlavorAssignment
from bough.core.cycle.judge import Judgement, Outlook, judge, put_back, take
from bough.core.cycle.victim import Victim
from bough.core.quota.account import Charge, available
from bough.model.admission_rules import QueueingStrategy, ReclaimWithinCohort
from bough.model.plan import Wait
from bough.model.quota import FlavorResource
from bough.model.reason import WaitReason
from bough.model.workload import Admission, Assignment


def decide(cycle: Cycle, judgement: Judgement) -> bool:
    """Give a gang what it can get, or say why it gets nothing; return whether it got anything."""
    if cycle.copy.policy.recompute_overlap and _overlaps(cycle, judgement):
        _judge_again(cycle, judgement)
    if judgement.outlook is Outlook.NOTHING:
        _park(cycle, judgement, judgement.assignment.reason)
    elif judgement.outlook is Outlook.AFTER_OTHERS:
        _defer(cycle, judgement)
        return True
    elif judgement.outlook is Outlook.AFTER_VICTIMS and not judgement.victims:
        _keep_room(cycle, judgement)
        _park(cycle, judgement, WaitReason.LIMIT)
    elif _overlaps(cycle, judgement):
        _pass_over(cycle, judgement, "what would be evicted for it is evicted for another")
    elif not _fits(judgement):
        _pass_over(cycle, judgement, "what it needs went to another in this cycle")
    elif judgement.outlook is Outlook.AT_ONCE:
        return _start(cycle, judgement)
    else:
        _evict(cycle, judgement)
        return True
    return False


def admission_of(judgement: Judgement) -> Admission:
    """The quota that a gang gets, pod set by pod set."""
    if judgement.assignment.admission is None:
        judgement.assignment.admission = _admission_of(judgement)
    return judgement.assignment.admission


def _admission_of(judgement: Judgement) -> Admission:
    return Admission(
        judgement.leaf.queue.name,
        tuple(
            Assignment(
                each.ask.pod_set.name,
                {name: choice.flavor for name, choice in each.choices.items()},
                {name: each.ask.requests[name] for name in each.choices},
                each.ask.pods,
            )
            for each in judgement.assignment.pod_sets
        ),
    )


def room_to_keep(cycle: Cycle, judgement: Judgement) -> dict[FlavorResource, int]:
    """What is kept for a gang that has to wait, so that no other takes it: all that it asks for.

    If nothing can be evicted for it, only what is left of its queue's own quota; where it borrows,
    up to the borrowing limit.
    """
    assignment = judgement.assignment
    if judgement.outlook is not Outlook.AFTER_VICTIMS or judgement.victims:
        return assignment.usage
    kept: dict[FlavorResource, int] = {}
    for what, amount in assignment.usage.items():
        account = judgement.leaf.account(what)
        if assignment.height == 0:
            left = account.nominal - _usage_with_victims(cycle, judgement, what)
        elif account.borrowing_limit is None:
            left = amount
        else:
            most = account.nominal + account.borrowing_limit
            left = most - _usage_with_victims(cycle, judgement, what)
        kept[what] = max(0, min(amount, left))
    return kept


def describe(assignment: FlavorAssignment) -> str:
    """Why an assignment cannot be had at once, flavor by flavor."""
    if assignment.description is None:
        texts = dict.fromkeys(obstacle.sentence for obstacle in assignment.obstacles)
        assignment.description = "; ".join(texts) or "no flavor of its queue can be had"
    return assignment.description


def _start(cycle: Cycle, judgement: Judgement) -> bool:
    copy, claim = cycle.copy, judgement.claim
    usage = judgement.assignment.usage
    waits = copy.ledgers.must_wait(claim.queue, usage)
    charges = charges_of(judgement)
    copy.use(claim, usage, charges, guaranteed=not claim.preemptible, waits=waits)
    if waits:
        ends = copy.ends_before(claim, None, cycle.outcome.evicted)
        _nominate(cycle, judgement, ends, "fits as soon as those have ended that were told to")
    else:
        cycle.outcome.admit(claim, admission_of(judgement))
    return True


def _usage_with_victims(cycle: Cycle, judgement: Judgement, what: FlavorResource) -> int:
    """What a queue uses as long as the victims have not ended."""
    leaf = judgement.leaf
    ending = (each for each in cycle.outcome.taken.values() if each.leaf is leaf)
    return leaf.account(what).usage + sum(each.usage.get(what, 0) for each in ending)


def _overlaps(cycle: Cycle, judgement: Judgement) -> bool:
    """Whether any of its victims was taken for another, or is started by this cycle itself."""
    if not judgement.victims:
        return False
    taken, served = cycle.outcome.taken, cycle.outcome.served
    return any(each.claim.name in taken or each.claim.name in served for each in judgement.victims)


def _judge_again(cycle: Cycle, judgement: Judgement) -> None:
    """Judge it again on the same flavors, without the victims of others, which are gone by then."""
    judgement.excluded = cycle.no_victims_of(judgement.claim.name)
    judge(cycle.copy, judgement, tried={}, pinned=judgement.assignment.flavors)
    if judgement.outlook is Outlook.AT_ONCE:
        judgement.outlook = Outlook.AFTER_OTHERS


def _fits(judgement: Judgement) -> bool:
    """Whether the request fits once all victims, its own among them, have ended."""
    if not judgement.victims:
        return _have_room(charges_of(judgement))
    for victim in judgement.victims:
        take(victim)
    fits = _have_room(charges_of(judgement))
    for victim in judgement.victims:
        put_back(victim)
    return fits


def _have_room(charges: Iterable[Charge]) -> bool:
    for account, amount in charges:
        room, _, _ = available(account)
        if amount > max(0, room):
            return False
    return True


def charges_of(judgement: Judgement) -> tuple[Charge, ...]:
    """Where what a gang would get is counted; looked up once for all that share it."""
    assignment, leaf = judgement.assignment, judgement.leaf
    if assignment.charges is None:
        usage = assignment.usage.items()
        assignment.charges = tuple([(leaf.account(what), amount) for what, amount in usage])
    return assignment.charges


def _evict(cycle: Cycle, judgement: Judgement) -> None:
    """Free room for the gang; it waits for that room, which no other may take."""
    end_victims(cycle, judgement.victims)
    cycle.outcome.evict(judgement.claim, judgement.victims)
    cycle.copy.use(judgement.claim, room_to_keep(cycle, judgement), waits=True)
    names = tuple(dict.fromkeys(victim.claim.name for victim in judgement.victims))
    count = "1 workload" if len(names) == 1 else f"{len(names)} workloads"
    _nominate(cycle, judgement, names, f"waits for the end of {count} evicted for it")


def end_victims(cycle: Cycle, victims: Iterable[Victim]) -> None:
    """Stop counting what is evicted; its room on nodes is free once it has ended."""
    copy = cycle.copy
    for victim in victims:
        claim = victim.claim
        if claim.counted:
            copy.evict_counted(claim)
        else:
            copy.end(claim, victim.pods)
    copy.forest.changed()


def _defer(cycle: Cycle, judgement: Judgement) -> None:
    """Let the gang wait for the room that the victims of others leave over."""
    cycle.copy.use(judgement.claim, room_to_keep(cycle, judgement), waits=True)
    names = tuple(sorted(cycle.outcome.taken))
    _nominate(
        cycle, judgement, names, "fits as soon as those have ended that are evicted for others"
    )


def _nominate(cycle: Cycle, judgement: Judgement, names: tuple[str, ...], text: str) -> None:
    claim = judgement.claim
    cycle.outcome.nominate(claim, {}, names, admission_of(judgement).assignments)
    cycle.outcome.wait(Wait(claim.name, WaitReason.NOMINATED, text))


def _keep_room(cycle: Cycle, judgement: Judgement) -> None:
    """Keep what there is for a gang whose queue could not get it back from others later."""
    rule = judgement.leaf.preemption.reclaim_within_cohort
    favored = cycle.copy.policy.nominated_first and judgement.nominated
    if rule is not ReclaimWithinCohort.ANY or favored:
        cycle.copy.use(judgement.claim, room_to_keep(cycle, judgement), waits=True)


def _park(cycle: Cycle, judgement: Judgement, reason: WaitReason) -> None:
    """Set a gang aside until its tree changes, unless it blocks its queue or has flavors left."""
    tried = judgement.assignment.tried
    strict = judgement.leaf.queue.rules.queueing is QueueingStrategy.STRICT_FIFO
    parked = not strict and not tried
    wait = Wait(
        judgement.claim.name,
        reason,
        describe(judgement.assignment),
        parked=parked,
        # Others of its shape may take from those that it gave way to.
        alike=parked and cycle.copy.policy.park_alike and not judgement.spared,
        tried=tried,
        blocks=strict,
    )
    cycle.outcome.wait(wait)


def _pass_over(cycle: Cycle, judgement: Judgement, text: str) -> None:
    tried = judgement.assignment.tried if cycle.copy.policy.keep_scan_progress else {}
    cycle.outcome.wait(Wait(judgement.claim.name, WaitReason.LIMIT, text, tried=tried))
