"""`remedies()`: what would let a workload start, each found, and shown to work, by planning it.

Costs many plans, so it is asked for by itself; each kind has a bound, and says when it was hit.
Amounts are found by halving, on the understanding that more helps no less; what is returned was
planned in any case. Must not know why the workload waits, beyond what its refusal says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from bough.core.cycle.victims import search
from bough.core.cycle.waits import Waits
from bough.core.explain.change import apply_remedy
from bough.core.explain.flavor_options import refusal_of
from bough.core.explain.judge import Decision, Judge
from bough.core.gang.tree import GangTree
from bough.core.quota.tree import QuotaTree
from bough.model.admission import StopPolicy
from bough.model.certificate import Raise, Remedies, Remedy, RemedyKind, Verdict
from bough.model.gang import PodState
from bough.model.policy import Policy
from bough.model.quota import FlavorResource, NodeKind, TreeNode
from bough.model.reason import Refusal, RefusalKind, WaitReason
from bough.model.snapshot import Snapshot

replace = msgspec.structs.replace

#: Plans that the search for each kind may make.
MOST_PLANS = 100
#: So many workloads are tried one by one, before several of them are.
MOST_SINGLES = 20
#: How many different nodes and resources one remedy may raise.
MOST_RAISES = 8
#: How many ways to lower a minimum are tried, and how many are told.
MOST_MINIMUMS = 8
TOLD_MINIMUMS = 3


def remedies(
    snapshot: Snapshot, policy: Policy, workload: str, *, most_plans: int = MOST_PLANS
) -> Remedies:
    """What would help a workload that waits, the cheapest first; nothing for one that does not."""
    patient = _Patient(snapshot, policy, workload, most_plans)
    if patient.gang is None:
        return Remedies()
    decision = patient.judge.decide(snapshot)
    if decision.verdict is not Verdict.WAITS:
        return Remedies(plans=patient.judge.plans)
    found: list[Remedy] = []
    given_up: list[RemedyKind] = []
    for kind in RemedyKind:
        patient.begin()
        found += _SEARCHES[kind](patient)
        if patient.gave_up:
            given_up.append(kind)
    return Remedies(tuple(found), patient.judge.plans, tuple(given_up))


class _Patient:
    """A workload that waits, and how many more plans may be made for it."""

    def __init__(self, snapshot: Snapshot, policy: Policy, name: str, most_plans: int) -> None:
        self.snapshot = snapshot
        self.policy = policy
        self.name = name
        self.judge = Judge(snapshot, policy, name)
        self.gang = next(
            (g for row in snapshot.gangs.values() for g in row if g.name == name), None
        )
        self.queue = "" if self.gang is None else self.gang.queue
        #: Whether it is decided by quota alone.
        self.counted = self.gang is not None and bool(self.gang.pod_sets)
        self._most_plans = most_plans
        self._until = 0
        #: Whether the search for the present kind came to its bound.
        self.gave_up = False

    def begin(self) -> None:
        """Begin the search for another kind."""
        self._until = self.judge.plans + self._most_plans
        self.gave_up = False

    def starts(self, remedy: Remedy) -> bool:
        """Whether it starts with a remedy; once there were too many plans, nothing helps."""
        decision = self.decide(remedy)
        return decision is not None and decision.starts

    def decide(self, remedy: Remedy) -> Decision | None:
        """What becomes of it with a remedy; `None` once there were too many plans."""
        if self.judge.plans >= self._until:
            self.gave_up = True
            return None
        return self.judge.decide(apply_remedy(self.snapshot, self.name, remedy))

    def settled(self, remedy: Remedy) -> Remedy:
        """A remedy that works, marked if the search for it was cut short."""
        return replace(remedy, exact=not self.gave_up)

    def refusal(self, decision: Decision) -> Refusal | None:
        """The violated inequality that keeps it from starting."""
        if self.counted:
            found = refusal_of(decision.snapshot, self.policy, decision.plan, self.name)
        else:
            wait = decision.wait
            if wait is not None and wait.reason == WaitReason.BEHIND and self.gang is not None:
                # What is behind another waits for what the other waits for.
                waits = Waits(decision.snapshot, self.policy, decision.plan)
                head = waits.first_in_line(self.gang)
                wait = next((each for each in decision.plan.waits if each.workload == head), None)
            found = None if wait is None else wait.refusal
        over = found is not None and found.kind is RefusalKind.OVER_QUOTA
        return found if over else None


def _wait(patient: _Patient) -> Iterator[Remedy]:
    """Others end: one, where that is enough; else those that have run longest, none in vain."""
    order = [name for _, name in sorted(_running(patient))]

    def enough(ends: Sequence[str]) -> bool:
        return patient.starts(Remedy(RemedyKind.WAIT, tuple(ends)))

    if not order or not enough(order):
        return
    for name in order[:MOST_SINGLES] if len(order) > 1 else order:
        if len(order) == 1 or enough((name,)):
            yield Remedy(RemedyKind.WAIT, (name,))
            return
    needed = _irredundant(order[: _smallest(1, len(order), lambda n: enough(order[:n]))], enough)
    yield patient.settled(Remedy(RemedyKind.WAIT, tuple(needed)))


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


def _running(patient: _Patient) -> Iterator[tuple[tuple[int, int], str]]:
    """Everybody else that holds something, with since when it has run."""
    for gang in (gang for row in patient.snapshot.gangs.values() for gang in row):
        runs = gang.holds_quota or any(pod.state is PodState.RUNNING for pod in gang.pods)
        if not runs or gang.name == patient.name:
            continue
        since = gang.submitted_ms if gang.started_ms is None else gang.started_ms
        for condition in gang.conditions:
            if condition.type == "QuotaReserved":
                since = condition.since_ms or 0
        yield (since, -gang.priority), gang.name


def _run_as_low(patient: _Patient) -> Iterator[Remedy]:
    remedy = Remedy(RemedyKind.RUN_AS_LOW)
    if patient.gang is not None and not patient.gang.preemptible and patient.starts(remedy):
        yield remedy


def _smaller_minimum(patient: _Patient) -> Iterator[Remedy]:
    """The largest minimum that works, of the whole or of any one part."""
    works: list[Remedy] = []
    for subgroup, before in list(_minimums(patient))[:MOST_MINIMUMS]:
        remedy = Remedy(RemedyKind.SMALLER_MINIMUM, subgroup=subgroup, before=before, minimum=1)
        if not patient.starts(remedy):
            continue
        lowered = _smallest(
            1,
            before - 1,
            lambda by, remedy=remedy: patient.starts(replace(remedy, minimum=remedy.before - by)),
        )
        works.append(patient.settled(replace(remedy, minimum=before - lowered)))
    works.sort(key=lambda each: each.before - each.minimum)
    yield from works[:TOLD_MINIMUMS]


def _minimums(patient: _Patient) -> Iterator[tuple[str | None, int]]:
    """What could be lower: the part (`None`: the whole), and what it needs now."""
    if patient.gang is not None and not patient.counted:
        for node in GangTree.of(patient.gang).nodes:
            if node.minimum > 1:
                yield (node.name if node.position else None), node.minimum
    elif patient.gang is not None and patient.policy.partial_admission:
        for pod_set in patient.gang.pod_sets:
            least = pod_set.count if pod_set.min_count is None else pod_set.min_count
            if least > 1:
                yield pod_set.name, least


def _other_flavor(patient: _Patient) -> Iterator[Remedy]:
    remedy = Remedy(RemedyKind.OTHER_FLAVOR)
    if not _is_choosy(patient):
        return
    decision = patient.decide(remedy)
    if decision is not None and decision.starts:
        yield replace(remedy, flavors=tuple(sorted(_flavors(patient, decision))))


def _is_choosy(patient: _Patient) -> bool:
    """Whether its pods say something about their nodes."""
    gang = patient.gang
    if gang is None:
        return False
    templates = (*gang.pods, *(each.template for each in gang.pod_sets))
    return any(each.node_selector or each.affinity for each in templates)


def _flavors(patient: _Patient, decision: Decision) -> set[str]:
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


def _resume(patient: _Patient) -> Iterator[Remedy]:
    for queue in patient.snapshot.queues:
        if queue.name == patient.queue and queue.rules.stop is not StopPolicy.NONE:
            remedy = Remedy(RemedyKind.RESUME, node=TreeNode(NodeKind.QUEUE, queue.name))
            if patient.starts(remedy):
                yield remedy


def _untangle(patient: _Patient) -> Iterator[Remedy]:
    """The first cohort of the cycle, by name, whose parent can go."""
    tree = QuotaTree.of(patient.snapshot.cohorts, patient.snapshot.queues)
    queue = TreeNode(NodeKind.QUEUE, patient.queue)
    for name in sorted(tree.cycle(queue)) if queue in tree else ():
        remedy = Remedy(RemedyKind.UNTANGLE, node=TreeNode(NodeKind.COHORT, name))
        if patient.starts(remedy):
            yield remedy
            return


def _raise_quota(patient: _Patient) -> Iterator[Remedy]:
    """More quota at the nodes that refuse it; of Kueue's queues, at the queue itself."""

    def node_of(refusal: Refusal) -> TreeNode | None:
        if patient.counted:
            return TreeNode(NodeKind.QUEUE, patient.queue)
        # Above the topmost node there is nothing to take from: what it has is what there is.
        physical = patient.snapshot.nodes and refusal.node in roots
        return None if physical else refusal.node

    roots = QuotaTree.of(patient.snapshot.cohorts, patient.snapshot.queues).roots()
    yield from _raise(patient, RemedyKind.RAISE_QUOTA, node_of)


def _raise_limit(patient: _Patient) -> Iterator[Remedy]:
    """Higher limits at the nodes that refuse it; a root has none."""
    tree = QuotaTree.of(patient.snapshot.cohorts, patient.snapshot.queues)

    def node_of(refusal: Refusal) -> TreeNode | None:
        node, what = refusal.node, refusal.flavor_resource
        if node is None or what is None or tree.parent(node) is None:
            return None
        quota = tree.quota(node, what)
        return node if quota is not None and quota.borrowing_limit is not None else None

    yield from _raise(patient, RemedyKind.RAISE_LIMIT, node_of)


def _raise(
    patient: _Patient, kind: RemedyKind, node_of: Callable[[Refusal], TreeNode | None]
) -> Iterator[Remedy]:
    """Raise what refuses by what it lacks, until nothing does; then try less of each."""
    raised: dict[tuple[TreeNode, FlavorResource], Raise] = {}
    while True:
        remedy = Remedy(kind, raises=tuple(raised.values()))
        decision = patient.decide(remedy)
        if decision is None:
            return
        if decision.starts:
            break
        refusal = patient.refusal(decision)
        node = None if refusal is None else node_of(refusal)
        if refusal is None or refusal.flavor_resource is None or node is None:
            return
        what = refusal.flavor_resource
        before = raised.get((node, what))
        by = refusal.deficit if before is None else before.by + max(refusal.deficit, before.by)
        if by <= 0 or (before is None and len(raised) >= MOST_RAISES):
            return
        raised[node, what] = Raise(node, what, by)
    for key in list(raised):
        raised[key] = _least_raise(patient, remedy, raised[key])
        remedy = replace(remedy, raises=tuple(each for each in raised.values() if each.by))
    yield patient.settled(remedy)


def _least_raise(patient: _Patient, remedy: Remedy, most: Raise) -> Raise:
    """The least of one raise that works, the others being what they are."""

    def works(by: int) -> bool:
        changed = tuple(replace(each, by=by) if each == most else each for each in remedy.raises)
        return patient.starts(replace(remedy, raises=tuple(each for each in changed if each.by)))

    # What the refusal said is lacking is nearly always the least.
    if not works(most.by - 1):
        return most
    return replace(most, by=_smallest(0, most.by - 1, works))


def _smallest(lowest: int, highest: int, works: Callable[[int], bool]) -> int:
    """The smallest number that works, found by halving; the highest is known to."""
    while lowest < highest:
        middle = (lowest + highest) // 2
        if works(middle):
            highest = middle
        else:
            lowest = middle + 1
    return highest


#: How each kind is searched for, in the order in which they are ranked.
_SEARCHES: dict[RemedyKind, Callable[[_Patient], Iterator[Remedy]]] = {
    RemedyKind.WAIT: _wait,
    RemedyKind.RUN_AS_LOW: _run_as_low,
    RemedyKind.SMALLER_MINIMUM: _smaller_minimum,
    RemedyKind.OTHER_FLAVOR: _other_flavor,
    RemedyKind.RESUME: _resume,
    RemedyKind.UNTANGLE: _untangle,
    RemedyKind.RAISE_QUOTA: _raise_quota,
    RemedyKind.RAISE_LIMIT: _raise_limit,
}
