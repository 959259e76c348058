"""More quota, more nodes, and several things together: raise what refuses until nothing does.

The first amounts come from what the refusals lack; then each is lowered as far as it still works.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import msgspec

from bough.core.explain.possible_steps import (
    cordoned,
    held_parts,
    is_choosy,
    minimums,
    node_models,
    taints,
    tangled_cohorts,
)
from bough.core.explain.remedy_trials import Patient, QuotaLack, smallest
from bough.core.quota.tree import QuotaTree
from bough.model.quota import FlavorResource, NodeKind, TreeNode
from bough.model.reason import WaitReason
from bough.model.remedy import (
    AddNodes,
    AnyNodes,
    BePreemptible,
    Knob,
    LowerMinimum,
    Move,
    Raise,
    Remedy,
    RemedyKind,
    Step,
)

replace = msgspec.structs.replace

#: How many different nodes and resources one remedy may raise.
MOST_RAISES = 8
#: How many kinds of nodes are tried.
MOST_MODELS = 8
#: How many other queues are tried, alone and together with something else.
MOST_QUEUES = 20
FEW = 4
#: How many remedies of several parts are told.
TOLD_TOGETHER = 2

#: What to raise after a refusal; `None`: nothing can be.
Aim = Callable[[QuotaLack], tuple[TreeNode, Knob] | None]


def raise_quota(patient: Patient) -> Iterator[Remedy]:
    """More quota at the nodes that refuse it, and higher limits where those are in the way."""
    remedy = _mend(patient, RemedyKind.RAISE_QUOTA, (), aim=_aim(patient))
    if remedy is not None and _raises_quota(remedy):
        yield remedy


def raise_limit(patient: Patient) -> Iterator[Remedy]:
    """Only higher limits."""
    remedy = _mend(patient, RemedyKind.RAISE_LIMIT, (), aim=_aim_at_limits(patient))
    if remedy is not None:
        yield remedy


def raise_lending(patient: Patient) -> Iterator[Remedy]:
    """Higher lending limits of others in the tree: of one, where that is enough."""
    decision = patient.decide(())
    if decision is None or patient.lack(decision) is None:
        return
    steps = tuple(_kept_back(patient))
    if not steps or not patient.starts(steps):
        return
    alone = (step for step in steps if len(steps) > 1 and patient.starts((step,)))
    first = next(alone, None)
    least = _least(patient, steps if first is None else (first,))
    yield patient.remedy(RemedyKind.RAISE_LENDING, least)


def add_nodes(patient: Patient) -> Iterator[Remedy]:
    """The fewest nodes of one kind; of several kinds the one of which fewest are needed."""
    best: AddNodes | None = None
    for model in node_models(patient)[:MOST_MODELS]:
        most = model.count if best is None else best.count - 1
        if most and patient.starts((replace(model, count=most),)):
            count = smallest(
                1,
                most,
                lambda count, model=model: patient.starts((replace(model, count=count),)),
            )
            best = replace(model, count=count)
    if best is not None:
        yield patient.remedy(RemedyKind.ADD_NODES, (best,))


def several_together(patient: Patient) -> Iterator[Remedy]:
    """Small things of which none is enough by itself: the remedies with the fewest steps."""
    found: list[Remedy] = []
    for model, first in _beginnings(patient):
        remedy = _mend(patient, RemedyKind.TOGETHER, first, aim=_aim(patient), model=model)
        if remedy is not None and remedy.steps not in [each.steps for each in found]:
            found = sorted([*found, remedy], key=_cost)[:TOLD_TOGETHER]
        shortest = len(found) == TOLD_TOGETHER and len(found[-1].steps) <= 2
        if shortest or patient.gave_up:
            break
    yield from found


def _cost(remedy: Remedy) -> tuple[bool, int]:
    return (not remedy.exact, len(remedy.steps))


# What is raised


def _aim(patient: Patient) -> Aim:
    """What to raise: quota where that refuses it, limits where they do; for Kueue, the queue's own.

    The queue's quota also where the node that refuses it has only what the queues below it have.
    """

    def aim(lack: QuotaLack) -> tuple[TreeNode, Knob] | None:
        node, what = lack.refusal.node, lack.refusal.flavor_resource
        own = TreeNode(NodeKind.QUEUE, lack.refusal.queue)
        if patient.counted:
            return own, Knob.QUOTA
        if node is None or what is None:
            return None
        if not lack.guaranteed and node not in roots:
            return node, Knob.LIMIT
        derived = not patient.source.can_raise(node, what, Knob.QUOTA)
        return own if derived and _adds_up(patient, own, node, what) else node, Knob.QUOTA

    roots = QuotaTree.of(patient.snapshot.cohorts, patient.snapshot.queues).roots()
    return aim


def _adds_up(patient: Patient, queue: TreeNode, above: TreeNode, what: FlavorResource) -> bool:
    """Whether there is more for all below a node where one of its queues has more quota."""
    if not patient.source.can_raise(queue, what, Knob.QUOTA):
        return False
    more = patient.source.apply(patient.name, (Raise(queue, what, 1, Knob.QUOTA),))
    before, after = (
        QuotaTree.of(each.cohorts, each.queues).subtree_quota(above, what)
        for each in (patient.snapshot, more)
    )
    return after > before


def _aim_at_limits(patient: Patient) -> Aim:
    tree = QuotaTree.of(patient.snapshot.cohorts, patient.snapshot.queues)

    def aim(lack: QuotaLack) -> tuple[TreeNode, Knob] | None:
        node = lack.refusal.node
        if node is None or lack.guaranteed or tree.parent(node) is None:
            return None
        return node, Knob.LIMIT

    return aim


def _kept_back(patient: Patient) -> list[Raise]:
    """What other nodes of the tree do not lend, the most first: as much as each could lend."""
    tree = QuotaTree.of(patient.snapshot.cohorts, patient.snapshot.queues)
    queue = TreeNode(NodeKind.QUEUE, patient.queue)
    if queue not in tree or tree.cycle(queue):
        return []
    path, wanted = tree.path(queue), tree.flavor_resources(queue)
    found: list[Raise] = []
    for node in tree.subtree(path[-1]):
        for what in wanted if node not in path else ():
            quota = tree.quota(node, what)
            if quota is None or quota.lending_limit is None:
                continue
            below = (tree.quota(each, what) for each in tree.subtree(node))
            most = sum(each.nominal for each in below if each is not None)
            if most > quota.lending_limit and patient.source.can_raise(node, what, Knob.LENDING):
                found.append(Raise(node, what, most - quota.lending_limit, Knob.LENDING))
    return sorted(found, key=lambda step: -step.by)[:MOST_RAISES]


def _raises_quota(remedy: Remedy) -> bool:
    return any(isinstance(step, Raise) and step.knob is Knob.QUOTA for step in remedy.steps)


# The search


def _mend(
    patient: Patient,
    kind: RemedyKind,
    first: tuple[Step, ...],
    *,
    aim: Aim,
    model: AddNodes | None = None,
) -> Remedy | None:
    """Raise what refuses by what it lacks, and add nodes where there are none, until it starts."""
    raised: dict[tuple[TreeNode, FlavorResource, Knob], Raise] = {}
    nodes: tuple[Step, ...] = ()
    while True:
        steps = (*first, *raised.values(), *nodes)
        decision = patient.decide(steps)
        if decision is None:
            return None
        if decision.starts:
            break
        lack = patient.lack(decision)
        more = None if lack is None else _raise_more(patient, raised, lack, aim)
        if more is not None:
            raised[more.node, more.flavor_resource, more.knob] = more
        elif model is not None and not nodes:
            nodes = (model,)
        else:
            return None
    steps = _least(patient, steps)
    return patient.remedy(kind, steps) if steps else None


def _raise_more(
    patient: Patient,
    raised: dict[tuple[TreeNode, FlavorResource, Knob], Raise],
    lack: QuotaLack,
    aim: Aim,
) -> Raise | None:
    """The next raise; `None` where there is nothing that could be raised."""
    aimed, what = aim(lack), lack.refusal.flavor_resource
    if aimed is None or what is None or not patient.source.can_raise(aimed[0], what, aimed[1]):
        return None
    node, knob = aimed
    before = raised.get((node, what, knob))
    by = lack.refusal.deficit
    if before is not None:
        by = before.by + max(by, before.by)
    if by <= 0 or (before is None and len(raised) >= MOST_RAISES):
        return None
    return Raise(node, what, by, knob)


def _least(patient: Patient, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """As little of every step as works, the others being what they are.

    Less of one may be enough once there is less of another, which lets fewer others go first: so
    all are looked at until none can be less.
    """
    before: tuple[Step, ...] = ()
    while steps != before:
        before = steps
        for at in range(len(steps) - 1, -1, -1):
            without = (*steps[:at], *steps[at + 1 :])
            enough = bool(without) and patient.starts(without)
            steps = without if enough else _fewer(patient, steps, at)
    return steps


def _fewer(patient: Patient, steps: tuple[Step, ...], at: int) -> tuple[Step, ...]:
    """The steps with the least amount of one of them that works."""

    def with_step(step: Step) -> tuple[Step, ...]:
        return (*steps[:at], step, *steps[at + 1 :])

    def least(most: int, make: Callable[[int], Step]) -> tuple[Step, ...]:
        # What the refusal said is lacking is nearly always the least.
        if most <= 1 or not patient.starts(with_step(make(most - 1))):
            return steps
        return with_step(
            make(smallest(1, most - 1, lambda amount: patient.starts(with_step(make(amount)))))
        )

    step = steps[at]
    match step:
        case Raise(by=by):
            return least(by, lambda amount: replace(step, by=amount))
        case AddNodes(count=count):
            return least(count, lambda amount: replace(step, count=amount))
        case LowerMinimum(subgroup, before, after):
            return least(
                before - after, lambda lower: LowerMinimum(subgroup, before, before - lower)
            )
        case _:
            return steps


# Where several things together begin


def _beginnings(patient: Patient) -> Iterator[tuple[AddNodes | None, tuple[Step, ...]]]:
    """Nodes that may be added, and what is done before anything is raised."""
    models: list[AddNodes | None] = [None, *node_models(patient)[:FEW]]
    extras = list(_extras(patient))
    needed = list(product(*_unavoidable(patient)))
    order = [
        *((model, ()) for model in models),
        *((None, extra) for extra in extras),
        *((model, extra) for extra in extras for model in models[1:]),
    ]
    for model, extra in order:
        for steps in needed:
            first = (*steps, *(step for step in extra if _differs(step, steps)))
            if first or model is not None:
                yield model, first


def _differs(step: Step, others: tuple[Step, ...]) -> bool:
    """Whether a step does something that others do not do already."""
    return step not in others and not (
        isinstance(step, Move) and any(isinstance(each, Move) for each in others)
    )


def _unavoidable(patient: Patient) -> Iterator[list[Step]]:
    """Steps that are needed in any case: one of each list."""
    for held in held_parts(patient):
        yield [held]
    tangled = tangled_cohorts(patient)
    if tangled:
        yield list(tangled)
    decision = patient.decide(())
    wait = None if decision is None else patient.leading_wait(decision)
    exists = any(queue.name == patient.queue for queue in patient.snapshot.queues)
    if not exists:
        moves = [Move(name) for name in patient.source.queues_for(patient.name)[:FEW]]
        if moves:
            yield list(moves)
    if wait is not None and wait.reason == WaitReason.PODS and patient.gang is not None:
        lower = [
            LowerMinimum(
                None if each.subgroup == patient.name else each.subgroup,
                each.needed,
                each.available,
            )
            for each in wait.shortages
            if each.available
        ]
        if lower:
            yield list(lower)


def _extras(patient: Patient) -> Iterator[tuple[Step, ...]]:
    """Small things that may help together with something else."""
    if patient.gang is not None and not patient.gang.preemptible:
        yield (BePreemptible(),)
    for subgroup, before in list(minimums(patient))[:FEW]:
        yield (LowerMinimum(subgroup, before, 1),)
    away = taints(patient)[:FEW]
    if is_choosy(patient):
        yield (AnyNodes(),)
        if away:
            yield (AnyNodes(), *away)
    for taint in away:
        yield (taint,)
    nodes = cordoned(patient)
    if nodes:
        yield tuple(nodes)
    for name in patient.source.queues_for(patient.name)[:FEW]:
        yield (Move(name),)
