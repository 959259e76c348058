"""What must be true of every plan over gangs, recomputed from snapshot and plan by plain counting.

Nothing here shares a working copy, a ledger or a search with the cycle: the quota tree is the
design taken literally (`oracles.quota`), nodes are added up pod by pod. Every function asserts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bough.core.cycle.waits import Waits
from bough.core.gang.release import core_pods, surplus_pods
from bough.core.gang.sufficiency import is_sufficient
from bough.core.gang.tree import GangTree, Held, counts_of, pods_of
from bough.model.gang import Gang, Pod, PodState
from bough.model.plan import Eviction, EvictionRule, Plan
from bough.model.policy import OSMO
from bough.model.quota import Cohort, FlavorResource, NodeKind, Queue, TreeNode, quotas_of
from bough.model.reason import WaitReason
from bough.model.snapshot import Snapshot
from tests.oracles.place import can_start
from tests.oracles.quota import Declarations
from tests.simulation import Simulation, pods_in, replace

Placed = tuple[Gang, Pod, str]


def check_plan(before: Snapshot, decided: Plan) -> None:
    """All laws that one plan can be asked about."""
    after = applied(before, decided)
    check_complete(before, decided)
    check_gangs(before, decided, after)
    check_nodes(before, decided, after)
    check_quota(before, decided, after)
    check_victims(before, decided)
    check_order(before, decided)


def applied(before: Snapshot, decided: Plan) -> Snapshot:
    simulation = Simulation(before)
    simulation.apply(decided)
    return simulation.snapshot


def all_gangs(snapshot: Snapshot) -> dict[str, Gang]:
    return {gang.name: gang for gangs in snapshot.gangs.values() for gang in gangs}


# Each gang is told something, and one thing only


def check_complete(before: Snapshot, decided: Plan) -> None:
    starts = {bind.workload for bind in decided.binds}
    cores = {bind.workload for bind in decided.binds if not bind.growth}
    nominated = [each.workload for each in decided.nominations]
    waits = [each.workload for each in Waits(before, OSMO, decided).every()]
    evicted = {each.workload for each in decided.evictions}
    assert len(nominated) == len({*nominated})
    assert all(each.waits_for for each in decided.nominations), "nominated, and waits for nothing"
    assert len(waits) == len({*waits})
    assert not cores & {*waits}
    assert not {*nominated} & {*waits}
    moved = {each.workload for each in decided.evictions if each.rule is EvictionRule.MOVE}
    assert moved <= {*nominated}, "moved, and has no place"
    assert not (evicted - moved) & (starts | {*nominated}), "told to end and to start"
    for gang in all_gangs(before).values():
        if pods_in(gang, PodState.PENDING) and not sufficient(gang, PodState.RUNNING):
            told = {*cores, *nominated, *waits, *evicted}
            assert gang.name in told, f"{gang.name} is told nothing"
    wholes = [each.workload for each in decided.evictions if not each.pods]
    assert len(wholes) == len({*wholes}), "evicted twice"
    pods = [(each.workload, pod) for each in decided.evictions for pod in each.pods]
    assert len(pods) == len({*pods}), "a pod is evicted twice"


# Gangs are whole or absent


def check_gangs(before: Snapshot, decided: Plan, after: Snapshot) -> None:
    nominated = {each.workload: each.pods for each in decided.nominations}
    bound = {bind.workload for bind in decided.binds}
    ended = {each.workload for each in decided.evictions if not each.pods}
    moved = {each.workload for each in decided.evictions if each.rule is EvictionRule.MOVE}
    was = all_gangs(before)
    for name, gang in all_gangs(after).items():
        if name in ended:
            assert not pods_in(gang, PodState.RUNNING), f"{name} is not gone whole"
            continue
        if name in bound:
            assert sufficient(gang, PodState.RUNNING), f"{name} started in part"
        if name in nominated:
            places = nominated[name]
            assert places
            # What moves ends where it is.
            waits = (PodState.PENDING, PodState.RELEASING)
            assert all(pod.state in waits for pod in gang.pods if pod.name in places)
            held = holds(gang, lambda pod, places=places: pod.name in places or runs(pod))
            assert is_sufficient(tree_of(gang), counts_of(held)), f"{name} nominated in part"
        # What moves in part is whole again when it has moved: that was asked above.
        if name not in moved and sufficient(was[name], PodState.RUNNING):
            assert sufficient(gang, PodState.RUNNING), f"{name} is broken"


# No GPU is bound twice


def check_nodes(before: Snapshot, decided: Plan, after: Snapshot) -> None:
    for name, capacity in ((node.name, node.capacity.gpus) for node in before.nodes):
        was = gpus_on(before, name, {PodState.RUNNING, PodState.RELEASING})
        now = gpus_on(after, name, {PodState.RUNNING, PodState.RELEASING})
        assert now <= max(was, capacity), f"{name} has {now} of {capacity} GPUs in use"
        kept = gpus_on(after, name, {PodState.RUNNING})
        later = kept + sum(
            pod.requests.gpus for _, pod, node in nominated_pods(before, decided) if node == name
        )
        assert later <= max(kept, capacity), f"{name} promised {later} of {capacity} GPUs"


def gpus_on(snapshot: Snapshot, node: str, states: set[PodState]) -> int:
    return sum(
        pod.requests.gpus
        for gang in all_gangs(snapshot).values()
        for pod in gang.pods
        if pod.node == node and pod.state in states
    )


def nominated_pods(snapshot: Snapshot, decided: Plan) -> Iterator[Placed]:
    gangs = all_gangs(snapshot)
    for each in decided.nominations:
        gang = gangs[each.workload]
        for pod in gang.pods:
            if pod.name in each.pods:
                yield gang, pod, each.pods[pod.name]


# No over-admission, in any ledger, at any node


def check_quota(before: Snapshot, decided: Plan, after: Snapshot) -> None:
    """Nothing gets worse: a quota that was cut may leave debts, a plan makes none."""
    present = {PodState.RUNNING, PodState.RELEASING}
    compare(before, total(before, present), total(after, present), "at present")
    promised = list(nominated_pods(before, decided))
    kept = total(after, {PodState.RUNNING})
    compare(before, total(before, {PodState.RUNNING}), [*kept, *promised], "in the end")
    compare(
        sharing(before), guaranteed(before), guaranteed(after, promised), "of what is guaranteed"
    )


def compare(declared: Snapshot, was: list[Placed], now: list[Placed], what: str) -> None:
    one, other = declarations(declared, was), declarations(declared, now)
    for node in one.nodes():
        for resource in resources_of(declared):
            before, after = one.debt(node, resource), other.debt(node, resource)
            assert after <= max(0, before), f"{node} owes {after} {resource} {what}, was {before}"


def declarations(snapshot: Snapshot, placed: Iterable[Placed]) -> Declarations:
    found = Declarations()
    found.cohorts = {cohort.name: cohort for cohort in snapshot.cohorts}
    found.queues = {queue.name: queue for queue in snapshot.queues}
    flavors = {node.name: node.flavor for node in snapshot.nodes}
    for gang, pod, node in placed:
        what = FlavorResource(flavors.get(node) or first_flavor(found, gang.queue), "gpu")
        found.add_usage(gang.queue, {what: pod.requests.gpus})
    return found


def first_flavor(declared: Declarations, queue: str) -> str:
    groups = declared.queues[queue].resource_groups
    return groups[0].flavors[0].name if groups else "any"


def resources_of(snapshot: Snapshot) -> list[FlavorResource]:
    return sorted({what for queue in snapshot.queues for what in quotas_of(queue.resource_groups)})


def total(snapshot: Snapshot, states: set[PodState]) -> list[Placed]:
    return [
        (gang, pod, pod.node)
        for gang in all_gangs(snapshot).values()
        for pod in gang.pods
        if pod.node is not None and pod.state in states
    ]


def guaranteed(snapshot: Snapshot, promised: Iterable[Placed] = ()) -> list[Placed]:
    """The cores of what is not preemptible, with what was promised."""
    places = {(gang.name, pod.name): node for gang, pod, node in promised}
    found: list[Placed] = []
    for gang in all_gangs(snapshot).values():
        if not gang.preemptible:
            held = holds(gang, lambda pod, gang=gang: runs(pod) or (gang.name, pod.name) in places)
            for pod in core_pods(tree_of(gang), held):
                node = pod.node or places.get((gang.name, pod.name))
                assert node is not None
                found.append((gang, pod, node))
    return found


def sharing(snapshot: Snapshot) -> Snapshot:
    """The same tree with nothing borrowed and everything shared."""
    return replace(
        snapshot,
        cohorts=tuple(map(_sharing_cohort, snapshot.cohorts)),
        queues=tuple(map(_sharing_queue, snapshot.queues)),
    )


def _sharing_cohort(cohort: Cohort) -> Cohort:
    return replace(cohort, resource_groups=_sharing_groups(cohort))


def _sharing_queue(queue: Queue) -> Queue:
    return replace(queue, resource_groups=_sharing_groups(queue))


def _sharing_groups(declared: Cohort | Queue):
    return tuple(
        replace(
            group,
            flavors=tuple(
                replace(
                    flavor,
                    resources={
                        name: replace(quota, borrowing_limit=0, lending_limit=None)
                        for name, quota in flavor.resources.items()
                    },
                )
                for flavor in group.flavors
            ),
        )
        for group in declared.resource_groups
    )


# What is evicted, and for what


def check_victims(before: Snapshot, decided: Plan) -> None:
    gangs = all_gangs(before)
    nominated = {each.workload: each for each in decided.nominations}
    for eviction in decided.evictions:
        victim = gangs[eviction.workload]
        if eviction.rule is EvictionRule.STALE:
            assert not sufficient(victim, PodState.RUNNING)
            continue
        assert eviction.preemptor in nominated, "evicted for nothing"
        assert eviction.workload in nominated[eviction.preemptor].waits_for
        preemptor = gangs[eviction.preemptor]
        assert not preemptor.preemptible
        if not eviction.pods:
            assert victim.preemptible, f"{victim.name} has a guarantee"
        else:
            check_surplus(victim, {*eviction.pods})
        check_right(before, decided, eviction, victim, preemptor)


def check_surplus(victim: Gang, given: set[str]) -> None:
    """No more is given back than there is surplus, and no subgroup is left in pieces.

    That the gang keeps what it needs is asked of all gangs.
    """
    tree = tree_of(victim)
    surplus = {pod.name for pod in surplus_pods(tree, tree.held)}
    for leaf, bits in zip(tree.leaves, tree.held, strict=True):
        names = {pod.name for pod in pods_of(leaf, bits)}
        left = len(names - given)
        whole = len(names) >= leaf.minimum
        assert not names & given or not whole or left in {0, *range(leaf.minimum, len(names))}
        if len(tree.leaves) == 1:
            assert len(given) <= len(surplus), f"{victim.name} gives more than its surplus"


def check_right(
    before: Snapshot, decided: Plan, eviction: Eviction, victim: Gang, preemptor: Gang
) -> None:
    """Reclaim crosses queues, and never reaches below a node that is within its quota."""
    if victim.queue == preemptor.queue:
        assert eviction.rule is EvictionRule.PREEMPT
        assert eviction.pods or victim.priority < preemptor.priority
        assert eviction.level == TreeNode(NodeKind.QUEUE, victim.queue)
        return
    assert eviction.rule is EvictionRule.RECLAIM
    tree = declarations(
        before,
        [
            *total(before, {PodState.RUNNING}),
            *nominated_pods(before, decided),
            *(
                (gang, pod, node)
                for gang, pod, node in total(applied(before, decided), {PodState.RUNNING})
                if not gang.preemptible and not runs(all_pods(before)[gang.name, pod.name])
            ),
        ],
    )
    above = set(path(tree, TreeNode(NodeKind.QUEUE, preemptor.queue)))
    for node in path(tree, TreeNode(NodeKind.QUEUE, victim.queue)):
        if node in above:
            assert eviction.level == node
            return
        assert any(tree.balance(node, what) < 0 for what in resources_of(before)), (
            f"{node} is within its quota and loses {victim.name}"
        )
    raise AssertionError("nothing in common")


def all_pods(snapshot: Snapshot) -> dict[tuple[str, str], Pod]:
    return {
        (gang.name, pod.name): pod for gang in all_gangs(snapshot).values() for pod in gang.pods
    }


def path(declared: Declarations, node: TreeNode | None) -> Iterator[TreeNode]:
    while node is not None:
        yield node
        node = declared.parent(node)


# Which goes first


def check_order(before: Snapshot, decided: Plan) -> None:
    """No gang passes one before it in its line that waits for quota, or is just like it."""
    gangs = all_gangs(before)
    served = {bind.workload for bind in decided.binds if not bind.growth}
    served |= {each.workload for each in decided.nominations}
    served = {name for name in served if not pods_in(gangs[name], PodState.RUNNING)}
    served -= {name for name, each in before.progress.items() if each.nominated}
    for wait in Waits(before, OSMO, decided).every():
        first = gangs[wait.workload]
        never = wait.refusal is not None and wait.refusal.never
        for other in (gangs[name] for name in served):
            if other.queue != first.queue or other.preemptible != first.preemptible:
                continue
            if (wait.reason == WaitReason.QUOTA and not never) or alike(first, other):
                assert line(other) < line(first), f"{other.name} passes {first.name}"


def alike(one: Gang, other: Gang) -> bool:
    """Whether two gangs differ in nothing but name, priority and age."""
    fields = ("pods", "subgroups", "minimum", "constraint", "sets")
    return all(getattr(one, field) == getattr(other, field) for field in fields)


def line(gang: Gang) -> tuple[int, int, str]:
    return (-gang.priority, gang.submitted_ms, gang.name)


# Small things


def tree_of(gang: Gang) -> GangTree:
    return GangTree.of(gang)


def runs(pod: Pod) -> bool:
    return pod.state is PodState.RUNNING


def holds(gang: Gang, keeps) -> Held:
    tree = tree_of(gang)
    nothing = tuple(0 for _ in tree.leaves)
    return tree.with_pods(nothing, (pod.name for pod in gang.pods if keeps(pod)))


def fits(before: Snapshot, gang: Gang, ended: set[tuple[str, str]]) -> bool:
    """Whether a gang without subgroups would have quota and a place once some pods have ended.

    What is ending already has ended, too.
    """
    others = [
        replace(
            other,
            pods=tuple(p for p in other.pods if runs(p) and (other.name, p.name) not in ended),
        )
        for other in all_gangs(before).values()
        if other.name != gang.name
    ]
    placed = [(other, pod, pod.node or "") for other in others for pod in other.pods]
    (what,) = resources_of(before)
    pods = gang.pods[: gang.minimum]
    amount = sum(pod.requests.gpus for pod in pods)
    # The literal rule asks for a tree without debts; one with debts is answered by the tree's own.
    admitted = declarations(before, placed).tree().admits(gang.queue, {what: amount})
    return admitted and can_start(gang, others, list(before.nodes), before.topologies[0])


def legal_victims(
    before: Snapshot, preemptor: Gang, ended: frozenset[str] = frozenset()
) -> Iterator[frozenset[str]]:
    """Every set of whole LOW gangs that may be taken for a gang, one after the other."""
    yield ended
    gangs = all_gangs(before).values()
    tree = declarations(
        before, [each for each in total(before, {PodState.RUNNING}) if each[0].name not in ended]
    )
    above = set(path(tree, TreeNode(NodeKind.QUEUE, preemptor.queue)))
    (what,) = resources_of(before)
    for victim in gangs:
        if victim.preemptible and victim.name not in ended and any(map(runs, victim.pods)):
            between = list(path(tree, TreeNode(NodeKind.QUEUE, victim.queue)))
            shared = next((at for at, node in enumerate(between) if node in above), None)
            if shared is not None and all(tree.balance(n, what) < 0 for n in between[:shared]):
                yield from legal_victims(before, preemptor, ended | {victim.name})


def sufficient(gang: Gang, state: PodState) -> bool:
    return is_sufficient(tree_of(gang), counts_of(holds(gang, lambda pod: pod.state is state)))
