"""What an elastic gang that runs still wants, and why it cannot have it.

Growth is never refused as such: it gets what is left over. So the next unit is treated as needed,
in the world that a plan leaves, and the certificate for that is the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from bough.core.cycle.plan import plan
from bough.core.explain.certificate import certificate
from bough.core.explain.changed_snapshot import change_gang
from bough.core.explain.judge import find_gang
from bough.core.gang.demand import Growth, growth
from bough.core.gang.sufficiency import is_complete, stand
from bough.core.gang.tree import GangNode, GangTree, counts_of
from bough.model.certificate import Certificate, Verdict
from bough.model.gang import Gang, Pod, PodState
from bough.model.plan import Plan
from bough.model.policy import Policy
from bough.model.reason import WaitReason
from bough.model.snapshot import Snapshot
from bough.model.words import OBJECT_WORDS, Words

replace = msgspec.structs.replace


class WantedGrowth(msgspec.Struct, frozen=True):
    """What a gang that runs still wants."""

    workload: str
    #: Pods that it has after the plan, and pods that it could use.
    has: int
    wants: int
    #: Why it cannot have the next of them, in one word and in one sentence.
    reason: str
    sentence: str
    #: The certificate of that; `None` where nothing is in the way.
    certificate: Certificate | None = None


def explain_growth(
    snapshot: Snapshot,
    policy: Policy,
    name: str,
    decided: Plan | None = None,
    words: Words = OBJECT_WORDS,
) -> WantedGrowth | None:
    """Why a gang does not grow; `None` where it wants nothing more, or lacks what it needs.

    decided:  the plan of this snapshot, where there is one already.
    """
    if find_gang(snapshot, name) is None:
        return None
    decided = plan(snapshot, policy) if decided is None else decided
    after = _carried_out(snapshot, decided, name)
    gang = find_gang(after, name)
    if gang is None:
        return None
    tree = GangTree.of(gang)
    unit = next(growth(tree, tree.held), None)
    if unit is None or not is_complete(tree):
        return None
    borrows = gang.preemptible or policy.gangs.growth_borrows
    needy = replace(_needing(gang, tree, unit), preemptible=borrows)
    changed = change_gang(after, name, lambda _: needy)
    found = certificate(changed, policy, name, words=words)
    return _wanted(gang, found, is_evicted=_is_evicted(decided, name))


def _wanted(gang: Gang, found: Certificate | None, *, is_evicted: bool) -> WantedGrowth:
    has = sum(pod.state is PodState.RUNNING for pod in gang.pods)
    wants = sum(pod.state is PodState.PENDING for pod in gang.pods)
    begun = f"it has {has} of {has + wants} pods and wants {wants} more"
    if found is not None and found.verdict is Verdict.WAITS:
        sentence = f"{begun}: {found.sentence.replace('it needs', 'the next needs', 1)}"
        return WantedGrowth(gang.name, has, wants, found.reason, sentence, found)
    if is_evicted:
        note = "others get what it must give back now"
        return WantedGrowth(gang.name, has, wants, str(WaitReason.NOMINATED), f"{begun}: {note}")
    return WantedGrowth(gang.name, has, wants, "", f"{begun}: there is room for the next of them")


def _is_evicted(decided: Plan, name: str) -> bool:
    return any(each.workload == name for each in decided.evictions)


def _carried_out(snapshot: Snapshot, decided: Plan, name: str) -> Snapshot:
    """The world once all that was decided has happened; what waits then is not in the way."""
    nodes: dict[str, dict[str, str]] = {}
    for bind in decided.binds:
        nodes.setdefault(bind.workload, {})[bind.pod] = bind.node
    for nomination in decided.nominations:
        nodes.setdefault(nomination.workload, {}).update(nomination.pods)
    ends = {each.workload: frozenset(each.pods) for each in decided.evictions}
    gangs: dict[str, tuple[Gang, ...]] = {}
    for queue, row in snapshot.gangs.items():
        changed = (
            _after(gang, nodes.get(gang.name, {}), ends.get(gang.name), waits=gang.name == name)
            for gang in row
        )
        gangs[queue] = tuple(gang for gang in changed if gang.pods)
    return replace(snapshot, gangs=gangs, progress={})


def _after(
    gang: Gang, nodes: Mapping[str, str], ends: frozenset[str] | None, *, waits: bool
) -> Gang:
    """A gang with the pods that run then and, if it is asked about, those that still wait."""
    return replace(gang, pods=tuple(_pods_after(gang.pods, nodes, ends, waits=waits)))


def _pods_after(
    pods: Iterable[Pod], nodes: Mapping[str, str], ends: frozenset[str] | None, *, waits: bool
) -> Iterator[Pod]:
    for pod in pods:
        told = ends is not None and (not ends or pod.name in ends)
        if pod.name in nodes:
            yield replace(pod, state=PodState.RUNNING, node=nodes[pod.name])
        elif pod.state is PodState.RUNNING and not told:
            yield pod
        elif waits and pod.state is not PodState.RELEASING:
            # What is told to end now waits again then.
            yield replace(pod, state=PodState.PENDING, node=None) if told else pod


def _needing(gang: Gang, tree: GangTree, unit: Growth) -> Gang:
    """The gang as if it needed all that it has and the next unit."""
    now = stand(tree, counts_of(tree.held))
    minimums: dict[int, int] = {}
    for node in _path(unit):
        reached = now.reached[node.position]
        below = next((child for child in node.children if child.position in minimums), None)
        more = node.is_leaf and now.satisfied(node)
        if below is not None:
            more = not now.satisfied(below)
        if now.satisfied(node):
            minimums[node.position] = reached + more
        else:
            minimums[node.position] = node.minimum
    names = {tree.nodes[at].name: minimum for at, minimum in minimums.items() if at}
    return replace(
        gang,
        minimum=minimums[0],
        subgroups=tuple(
            replace(each, minimum=names.get(each.name, each.minimum)) for each in gang.subgroups
        ),
    )


def _path(unit: Growth) -> list[GangNode]:
    """From what grows up to the gang itself."""
    path, demand = [unit.demand.node], unit.demand
    while path[-1].position != unit.node.position:
        demand = demand.children[0]
        path.append(demand.node)
    return path[::-1]
