"""What an entry gets: quota, room that is being freed, or a reason why it waits.

Entries are decided one after the other, each on top of what those before it got. Must not know how
the entries were found.
"""

from __future__ import annotations

from bough.core.cycle.entries import Entry, Outcome, evaluate
from bough.core.cycle.flavors import FlavorAssignment
from bough.core.cycle.work import Work
from bough.core.quota.account import available
from bough.model.admission import QueueingStrategy, ReclaimWithinCohort
from bough.model.plan import Admit, Eviction, Nomination, Wait, WaitReason
from bough.model.quota import FlavorResource
from bough.model.workload import Admission, Assignment


def decide(work: Work, entry: Entry) -> None:
    """Give an entry what it can have, and say why if that is nothing."""
    if work.policy.recompute_overlap and work.overlaps(entry.victims):
        _evaluate_again(work, entry)
    if entry.outcome is Outcome.NOTHING:
        _park(work, entry, entry.assignment.reason)
    elif entry.outcome is Outcome.AFTER_OTHERS:
        _defer(work, entry)
    elif entry.outcome is Outcome.AFTER_VICTIMS and not entry.victims:
        _keep_room(work, entry)
        _park(work, entry, WaitReason.WAITING_FOR_QUOTA)
    elif work.overlaps(entry.victims):
        _pass_over(work, entry, "those who would be evicted for it are evicted for another")
    elif not _fits(entry):
        _pass_over(work, entry, "what it needs went to another in this cycle")
    elif entry.outcome is Outcome.AT_ONCE:
        work.add_usage(entry.leaf, entry.assignment.usage)
        work.admits.append(Admit(entry.applicant.key, admission_of(entry)))
    else:
        _evict(work, entry)


def admission_of(entry: Entry) -> Admission:
    """The quota that an entry gets, pod set by pod set."""
    return Admission(
        entry.leaf.queue.name,
        tuple(
            Assignment(
                each.ask.pod_set.name,
                {name: choice.flavor for name, choice in each.choices.items()},
                {name: each.ask.requests[name] for name in each.choices},
                each.ask.pods,
            )
            for each in entry.assignment.pod_sets
        ),
    )


def room_to_keep(work: Work, entry: Entry) -> dict[FlavorResource, int]:
    """What is kept for a workload that has to wait, so that nobody takes it: all that it asks for.

    If nobody can be evicted for it, only what is left of its queue's own quota; where it borrows,
    up to the borrowing limit.
    """
    if entry.outcome is not Outcome.AFTER_VICTIMS or entry.victims:
        return entry.assignment.usage
    kept: dict[FlavorResource, int] = {}
    for what, amount in entry.assignment.usage.items():
        account = entry.leaf.account(what)
        if entry.assignment.height == 0:
            left = account.nominal - work.usage_with_victims(entry.leaf, what)
        elif account.borrowing_limit is None:
            left = amount
        else:
            most = account.nominal + account.borrowing_limit
            left = most - work.usage_with_victims(entry.leaf, what)
        kept[what] = max(0, min(amount, left))
    return kept


def describe(assignment: FlavorAssignment) -> str:
    """What stands against an assignment, flavor by flavor."""
    texts = dict.fromkeys(obstacle.text for obstacle in assignment.obstacles)
    return "; ".join(texts) or "no flavor of its queue can be had"


def _evaluate_again(work: Work, entry: Entry) -> None:
    """Look again without the victims of others, who are gone by then, at the same flavors."""
    evaluate(work, entry, tried={}, pinned=entry.assignment.flavors)
    if entry.outcome is Outcome.AT_ONCE:
        entry.outcome = Outcome.AFTER_OTHERS


def _fits(entry: Entry) -> bool:
    """Whether the request fits once all victims, the entry's own among them, have ended."""
    for victim in entry.victims:
        victim.holder.take()
    fits = all(
        amount <= max(0, available(entry.leaf.account(what))[0])
        for what, amount in entry.assignment.usage.items()
    )
    for victim in entry.victims:
        victim.holder.put_back()
    return fits


def _evict(work: Work, entry: Entry) -> None:
    """Free room for the entry; it waits for that room, which nobody else may take."""
    key = entry.applicant.key
    for victim in entry.victims:
        work.take(victim.holder)
        if not victim.holder.evicted:
            work.evict(Eviction(victim.holder.key, victim.rule, preemptor=key, level=victim.level))
    work.add_usage(entry.leaf, room_to_keep(work, entry))
    names = tuple(victim.holder.key for victim in entry.victims)
    _nominate(work, entry, names, f"waits for the end of {_count(len(names))} evicted for it")


def _defer(work: Work, entry: Entry) -> None:
    """Let the entry wait for the room that the victims of others leave over."""
    work.add_usage(entry.leaf, room_to_keep(work, entry))
    names = tuple(sorted(work.taken))
    _nominate(work, entry, names, "fits as soon as those have ended who are evicted for others")


def _nominate(work: Work, entry: Entry, names: tuple[str, ...], text: str) -> None:
    key = entry.applicant.key
    work.nominations.append(Nomination(key, waits_for=names))
    work.waits.append(Wait(key, WaitReason.WAITING_FOR_PREEMPTED_WORKLOADS, text))


def _keep_room(work: Work, entry: Entry) -> None:
    """Keep what there is for an entry whose queue could not get it back from others later."""
    rule = entry.leaf.queue.rules.preemption.reclaim_within_cohort
    favored = work.policy.nominated_first and entry.nominated
    if rule is not ReclaimWithinCohort.ANY or favored:
        work.add_usage(entry.leaf, room_to_keep(work, entry))


def _park(work: Work, entry: Entry, reason: WaitReason) -> None:
    """Set an entry aside until its tree changes, unless it blocks its queue or has flavors left."""
    tried = entry.assignment.tried
    strict = entry.leaf.queue.rules.queueing is QueueingStrategy.STRICT_FIFO
    parked = not strict and not tried
    wait = Wait(
        entry.applicant.key,
        reason,
        describe(entry.assignment),
        parked=parked,
        alike=parked and work.policy.park_alike,
        tried=tried,
    )
    work.waits.append(wait)


def _pass_over(work: Work, entry: Entry, text: str) -> None:
    tried = entry.assignment.tried if work.policy.keep_scan_progress else {}
    key = entry.applicant.key
    work.waits.append(Wait(key, WaitReason.WAITING_FOR_QUOTA, text, tried=tried))


def _count(number: int) -> str:
    return "1 workload" if number == 1 else f"{number} workloads"
