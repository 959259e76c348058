"""`remedies()`: what would let a workload start, each found, and shown to work, by planning it.

Costs many plans, so it is asked for by itself; each kind has a bound, and says when it was hit.
Amounts are found by halving, which assumes that more never helps less; whatever is returned was
planned, on a snapshot made anew from what is declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

import msgspec

from bough.core.cycle.victims import search
from bough.core.explain.capacity_remedies import (
    MOST_QUEUES,
    add_nodes,
    raise_lending,
    raise_limit,
    raise_quota,
    several_together,
)
from bough.core.explain.declared_snapshot import Source
from bough.core.explain.judge import Decision
from bough.core.explain.possible_steps import (
    cordoned,
    held_parts,
    is_choosy,
    minimums,
    taints,
    tangled_cohorts,
    weights,
)
from bough.core.explain.remedy_trials import Patient, smallest
from bough.model.certificate import Verdict
from bough.model.gang import PodState
from bough.model.policy import Policy
from bough.model.remedy import (
    AnyNodes,
    BePreemptible,
    End,
    LowerMinimum,
    Move,
    Remedies,
    Remedy,
    RemedyKind,
    Step,
    Weigh,
)
from bough.model.snapshot import Snapshot

replace = msgspec.structs.replace

#: Plans that the search for each kind may make.
MOST_PLANS = 100
#: How many workloads are tried one by one, before several together are.
MOST_SINGLES = 20
#: How many ways to lower a minimum are tried, and how many ways of one kind are told.
MOST_MINIMUMS = 8
TOLD = 3
#: How many times the present weight is tried at most.
MOST_WEIGHT = 1_000


def remedies(
    snapshot: Snapshot,
    policy: Policy,
    workload: str,
    *,
    most_plans: int = MOST_PLANS,
    source: Source | None = None,
    go_on: Callable[[], bool] = lambda: True,
) -> Remedies:
    """What would help a workload that waits, the cheapest first; nothing for one that does not.

    source:  what the snapshot was made of; without it, its own cohorts and queues.
    go_on:  asked before each plan; once it says no, what was found so far is all.
    """
    patient = Patient(source or Source(snapshot), policy, workload, most_plans, go_on)
    if patient.gang is None:
        return Remedies()
    decision = patient.judge.decide(snapshot)
    if decision.verdict is not Verdict.WAITS:
        return Remedies(plans=patient.judge.plans)
    found: list[Remedy] = []
    given_up: list[RemedyKind] = []
    for kind in RemedyKind:
        # What has several parts is of interest only where nothing simpler can be done.
        if kind is RemedyKind.TOGETHER and any(each.kind is not RemedyKind.WAIT for each in found):
            continue
        patient.begin()
        found += _SEARCHES[kind](patient)
        if patient.gave_up:
            given_up.append(kind)
    return Remedies(tuple(found), patient.judge.plans, tuple(given_up))


def _wait(patient: Patient) -> Iterator[Remedy]:
    """Others end: one, where that is enough; else those that have run longest, none in vain."""
    order = [name for _, name in sorted(_running(patient))]

    def enough(ends: Sequence[str]) -> bool:
        return patient.starts([End(name) for name in ends])

    def remedy(ends: Sequence[str]) -> Remedy:
        return patient.remedy(RemedyKind.WAIT, [End(name) for name in ends])

    if not order or not enough(order):
        return
    for name in order[:MOST_SINGLES] if len(order) > 1 else order:
        if len(order) == 1 or enough((name,)):
            yield remedy((name,))
            return
    needed = _irredundant(order[: smallest(1, len(order), lambda n: enough(order[:n]))], enough)
    yield remedy(needed)


def _irredundant(prefix: list[str], enough: Callable[[Sequence[str]], bool]) -> list[str]:
    """Those of some names, which are enough, that are needed."""
    ended = dict[str, None]()

    def fits() -> bool:
        # Without the last of them it does not start, as the halving has shown.
        if prefix[-1] not in ended:
            return False
        return len(ended) == len(prefix) or enough([name for name in prefix if name in ended])

    needed = search(
        prefix,
        allowed=lambda _: True,
        take=lambda name: ended.update({name: None}),
        put_back=ended.__delitem__,
        fits=fits,
    )
    return prefix if needed is None else needed


def _running(patient: Patient) -> Iterator[tuple[tuple[int, int], str]]:
    """Everything else that holds something, with since when it has run."""
    for gang in (gang for row in patient.snapshot.gangs.values() for gang in row):
        runs = gang.holds_quota or any(pod.state is PodState.RUNNING for pod in gang.pods)
        if not runs or gang.name == patient.name:
            continue
        since = gang.submitted_ms if gang.started_ms is None else gang.started_ms
        for condition in gang.conditions:
            if condition.type == "QuotaReserved":
                since = condition.since_ms or 0
        yield (since, -gang.priority), gang.name


def _run_as_low(patient: Patient) -> Iterator[Remedy]:
    steps = (BePreemptible(),)
    if patient.gang is None or patient.gang.preemptible:
        return
    if patient.source.can_be_preemptible(patient.name) and patient.starts(steps):
        yield patient.remedy(RemedyKind.RUN_AS_LOW, steps)


def _smaller_minimum(patient: Patient) -> Iterator[Remedy]:
    """The largest minimum that works, of the whole or of any one part."""
    works: list[LowerMinimum] = []
    for subgroup, before in list(minimums(patient))[:MOST_MINIMUMS]:
        lowest = LowerMinimum(subgroup, before, 1)
        if patient.starts((lowest,)):
            by = smallest(
                1,
                before - 1,
                lambda by, low=lowest: patient.starts((replace(low, after=low.before - by),)),
            )
            works.append(replace(lowest, after=before - by))
    works.sort(key=lambda each: each.before - each.after)
    for each in works[:TOLD]:
        yield patient.remedy(RemedyKind.SMALLER_MINIMUM, (each,))


def _other_flavor(patient: Patient) -> Iterator[Remedy]:
    if not is_choosy(patient):
        return
    steps = (AnyNodes(),)
    decision = patient.decide(steps)
    if decision is not None and decision.starts:
        flavors = sorted(_flavors(patient, decision))
        yield patient.remedy(RemedyKind.OTHER_FLAVOR, steps, flavors)


def _flavors(patient: Patient, decision: Decision) -> set[str]:
    """The flavors that it would get; nothing where it waits for others to end."""
    plan, name = decision.plan, patient.name
    nodes = {bind.node for bind in plan.binds if bind.workload == name}
    for nomination in plan.nominations:
        if nomination.workload == name:
            nodes.update(nomination.pods.values())
    found = {node.flavor or "" for node in patient.snapshot.nodes if node.name in nodes}
    for admit in plan.admits:
        if admit.workload == name:
            for each in admit.admission.assignments:
                found.update(each.flavors.values())
    return found - {""}


def _each_alone(
    kind: RemedyKind, find: Callable[[Patient], Sequence[Step]], told: int = TOLD
) -> Callable[[Patient], Iterator[Remedy]]:
    """Steps that are tried one by one."""

    def alone(patient: Patient) -> Iterator[Remedy]:
        number = 0
        for step in find(patient):
            if number < told and patient.starts((step,)):
                number += 1
                yield patient.remedy(kind, (step,))

    return alone


def _moves(patient: Patient) -> list[Move]:
    return [Move(name) for name in patient.source.queues_for(patient.name)[:MOST_QUEUES]]


def _resume(patient: Patient) -> Iterator[Remedy]:
    """All that is held, where that is enough."""
    held = tuple(held_parts(patient))
    if held and patient.starts(held):
        yield patient.remedy(RemedyKind.RESUME, held)


def _uncordon(patient: Patient) -> Iterator[Remedy]:
    """One node, where that is enough; else as few as do it."""
    nodes = cordoned(patient)
    if not nodes or not patient.starts(nodes):
        return
    one = next((node for node in nodes[:MOST_SINGLES] if patient.starts((node,))), None)
    if one is not None:
        yield patient.remedy(RemedyKind.UNCORDON, (one,))
        return
    for node in list(nodes):
        fewer = [each for each in nodes if each != node]
        if patient.starts(fewer):
            nodes = fewer
    yield patient.remedy(RemedyKind.UNCORDON, nodes)


def _raise_priority(patient: Patient) -> Iterator[Remedy]:
    """The lowest priority that works; those by which it is no longer preemptible come last."""
    steps = patient.source.priorities_for(patient.name)
    steps.sort(key=lambda step: (step.preemptible is False, step.priority))
    for _, several in groupby(steps, key=lambda step: step.preemptible):
        alike = list(several)
        if patient.starts((alike[-1],)):
            at = smallest(0, len(alike) - 1, lambda at, of=alike: patient.starts((of[at],)))
            yield patient.remedy(RemedyKind.RAISE_PRIORITY, (alike[at],))
            return


def _raise_weight(patient: Patient) -> Iterator[Remedy]:
    """The least weight that works: of the queue, else of the nearest node above it."""
    for node, before in weights(patient):
        first = int(before) + 1
        if patient.starts((Weigh(node, MOST_WEIGHT * first),)):
            least = smallest(
                first,
                MOST_WEIGHT * first,
                lambda weight, node=node: patient.starts((Weigh(node, weight),)),
            )
            yield patient.remedy(RemedyKind.RAISE_WEIGHT, (Weigh(node, least),))
            return


#: How each kind is searched for, in the order in which they are ranked.
_SEARCHES: dict[RemedyKind, Callable[[Patient], Iterator[Remedy]]] = {
    RemedyKind.WAIT: _wait,
    RemedyKind.RUN_AS_LOW: _run_as_low,
    RemedyKind.SMALLER_MINIMUM: _smaller_minimum,
    RemedyKind.OTHER_FLAVOR: _other_flavor,
    RemedyKind.TOLERATE: _each_alone(RemedyKind.TOLERATE, taints),
    RemedyKind.MOVE: _each_alone(RemedyKind.MOVE, _moves),
    RemedyKind.RESUME: _resume,
    RemedyKind.UNTANGLE: _each_alone(RemedyKind.UNTANGLE, tangled_cohorts, told=1),
    RemedyKind.UNCORDON: _uncordon,
    RemedyKind.RAISE_PRIORITY: _raise_priority,
    RemedyKind.RAISE_WEIGHT: _raise_weight,
    RemedyKind.RAISE_QUOTA: raise_quota,
    RemedyKind.RAISE_LIMIT: raise_limit,
    RemedyKind.RAISE_LENDING: raise_lending,
    RemedyKind.ADD_NODES: add_nodes,
    RemedyKind.TOGETHER: several_together,
}
