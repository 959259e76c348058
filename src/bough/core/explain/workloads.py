"""The certificate of a workload in the form of Kueue, as far as quota is concerned.

Follows the cycles until the workload has its turn and looks at the tree as it is then. Must not
know nodes, nor remedies.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import msgspec

from bough.core.cycle.applicant import Applicant, asks_of, counts_of
from bough.core.cycle.candidates import Candidates, Preemptor
from bough.core.cycle.eligibility import why_unsuitable
from bough.core.cycle.memo import Memo
from bough.core.explain.holders import borrowed_of, share_borrowed
from bough.core.explain.judge import Decision, Judge
from bough.core.explain.sentences import name_some, say_refusal
from bough.core.explain.turns import carried_out
from bough.core.quota.tree import QuotaTree
from bough.core.quota.usage import PODS, usage_of
from bough.model.admission import StopPolicy
from bough.model.certificate import Certificate, FlavorOption, Holder, Ledger, Missing, Verdict
from bough.model.plan import WaitReason
from bough.model.policy import Policy
from bough.model.quota import Amounts, FlavorResource, NodeKind, Queue, TreeNode
from bough.model.reason import GangWait, Refusal, RefusalKind
from bough.model.snapshot import Snapshot
from bough.model.workload import Workload

replace = msgspec.structs.replace


def explain_workload(snapshot: Snapshot, policy: Policy, key: str) -> Certificate | None:
    """Why a workload is where it is; `None` where there is no such workload."""
    for queue in sorted(snapshot.admitted):
        if any(each.key == key for each in snapshot.admitted[queue]):
            return Certificate(key, queue, Verdict.RUNS, f"it holds quota of queue {queue}")
    for queue in sorted(snapshot.waiting):
        for workload in snapshot.waiting[queue]:
            if workload.key == key:
                decision = Judge(snapshot, policy, key).decide(snapshot)
                return _Case(decision, policy, queue, workload).certificate()
    return None


def dominant_refusal(decision: Decision, policy: Policy, queue: str, key: str) -> Refusal | None:
    """The violated inequality that is closest to being satisfied, of all flavors that suit."""
    line = decision.snapshot.waiting.get(queue, ())
    workload = next((each for each in line if each.key == key), None)
    return None if workload is None else _Case(decision, policy, queue, workload).refusal


def tree_of(snapshot: Snapshot) -> QuotaTree:
    """The quota tree with what workloads that hold quota use."""
    tree = QuotaTree.of(snapshot.cohorts, snapshot.queues)
    for queue, held in snapshot.admitted.items():
        if TreeNode(NodeKind.QUEUE, queue) in tree:
            for workload in held:
                tree.add_usage(queue, usage_of(workload))
    return tree


class _Case:
    """A workload, and the cycle that decided about it."""

    def __init__(self, decision: Decision, policy: Policy, queue: str, workload: Workload) -> None:
        self._decision = decision
        self._snapshot = decision.snapshot
        self._policy = policy
        self._name = queue
        self._workload = workload
        self._queue = next((each for each in self._snapshot.queues if each.name == queue), None)
        self._look(tree_of(self._snapshot))
        if self.refusal is None:
            # Nothing stood against it when the cycle began: others of the same cycle were first.
            self._look(tree_of(carried_out(self._snapshot, decision.plan)))

    def _look(self, tree: QuotaTree) -> None:
        """Find out what stands against it in a tree."""
        self._tree = tree
        groups = list(self._groups())
        self.options = tuple(option for group in groups for option in group)
        self.refusal = _dominant(groups)

    def certificate(self) -> Certificate:
        """Why it is where it is."""
        decision, key = self._decision, self._workload.key
        begun = Certificate(key, self._name, decision.verdict, "")
        if decision.verdict is Verdict.STARTS:
            return replace(begun, sentence="it gets quota now")
        if decision.verdict is Verdict.NOMINATED:
            names = next(n.waits_for for n in decision.plan.nominations if n.workload == key)
            sentence = f"it gets quota as soon as {name_some(names)} gave theirs back"
            return replace(begun, sentence=sentence, waits_for=names)
        stopped = self._stopped()
        if stopped is not None:
            return replace(begun, sentence=stopped, reason=str(WaitReason.SUSPENDED))
        if decision.wait is None:
            return self._behind(begun)
        return self._refused(begun, str(decision.wait.reason), decision.wait.message)

    def _refused(self, begun: Certificate, reason: str, message: str) -> Certificate:
        cycle = (
            () if self._queue is None else self._tree.cycle(TreeNode(NodeKind.QUEUE, self._name))
        )
        begun = replace(begun, sentence=message, reason=reason, options=self.options, cycle=cycle)
        refusal = self.refusal
        quota = (WaitReason.WAITING_FOR_QUOTA, WaitReason.EXCEEDS_MAX_QUOTA)
        if cycle or reason not in quota or refusal is None or refusal.flavor_resource is None:
            return begun
        what = refusal.flavor_resource
        return replace(
            begun,
            sentence=say_refusal(refusal, Ledger.TOTAL),
            refusal=refusal,
            ledger=Ledger.TOTAL,
            missing=Missing(what.resource, refusal.deficit, what.flavor),
            holders=self._holders(refusal, what),
        )

    def _behind(self, begun: Certificate) -> Certificate:
        """No cycle has looked at it: somebody before it keeps its place."""
        own = {each.key for each in self._snapshot.waiting.get(self._name, ())}
        looked_at = (each.workload for each in self._decision.plan.waits)
        head = next((key for key in looked_at if key in own), None)
        sentence = (
            "it is not in line: it was evicted and may come back later, or has finished"
            if head is None
            else f"{head} is first in queue {self._name} and goes first"
        )
        return replace(begun, sentence=sentence, reason=str(GangWait.BEHIND), head=head)

    def _stopped(self) -> str | None:
        """What keeps a workload, or its whole queue, out of the line."""
        workload, queue = self._workload, self._queue
        if queue is not None and queue.rules.stop is not StopPolicy.NONE:
            return f"queue {queue.name} is stopped: its stopPolicy is {queue.rules.stop}"
        for door in self._snapshot.local_queues:
            is_own = (door.namespace, door.name) == (workload.namespace, workload.local_queue)
            if is_own and door.stop is not StopPolicy.NONE:
                return f"local queue {door.name} is stopped: its stopPolicy is {door.stop}"
        if not workload.active:
            return "it is not active"
        retry = workload.requeue_at_ms
        if retry is not None and retry > self._snapshot.now_ms:
            seconds = -(-(retry - self._snapshot.now_ms) // 1000)
            return f"it is held back after an eviction, for {seconds} s more"
        return None

    def _groups(self) -> Iterator[list[FlavorOption]]:
        """For every group of the queue that is asked for, its flavors."""
        queue = self._queue
        if queue is None:
            return
        amounts = self._amounts(queue)
        for group in queue.resource_groups:
            asked = {name: amounts[name] for name in group.covered_resources if name in amounts}
            if asked:
                yield [self._option(queue, each.name, asked) for each in group.flavors]

    def _option(self, queue: Queue, name: str, asked: dict[str, int]) -> FlavorOption:
        flavor = next((each for each in self._snapshot.flavors if each.name == name), None)
        if flavor is None:
            return FlavorOption(name, f"there is no flavor {name}")
        faults = (why_unsuitable(flavor, pod_set) for pod_set in self._workload.pod_sets)
        fault = next((fault for fault in faults if fault is not None), None)
        if fault is not None:
            return FlavorOption(name, fault)
        request = {FlavorResource(name, resource): amount for resource, amount in asked.items()}
        return FlavorOption(name, refusal=self._tree.refusal(queue.name, request))

    def _amounts(self, queue: Queue) -> dict[str, int]:
        """What all pods together ask for; as few of them as would do."""
        covered = {name for group in queue.resource_groups for name in group.covered_resources}
        counts = counts_of(self._workload)
        if self._policy.partial_admission:
            pod_sets = self._workload.pod_sets
            counts = tuple(
                count if each.min_count is None else min(count, each.min_count)
                for count, each in zip(counts, pod_sets, strict=True)
            )
        applicant = Applicant(self._workload, self._policy)
        total: dict[str, int] = {}
        for asks in asks_of(applicant, counts, with_pods=PODS in covered):
            for ask in asks:
                for name, amount in ask.requests.items():
                    total[name] = total.get(name, 0) + amount
        return total

    def _holders(self, refusal: Refusal, what: FlavorResource) -> tuple[Holder, ...]:
        tree = self._tree
        if refusal.node is None:
            return ()
        evictable = self._evictable({what: refusal.requested}, (what,))
        queues = [node for node in tree.subtree(refusal.node) if node.kind is NodeKind.QUEUE]
        found = [
            _holder(workload, queue.name, amount, evictable)
            for queue in queues
            for workload in self._snapshot.admitted.get(queue.name, ())
            if (amount := usage_of(workload).get(what, 0))
        ]
        return tuple(share_borrowed(found, lambda queue: borrowed_of(tree, queue, what)))

    def _evictable(self, amounts: Amounts, scarce: tuple[FlavorResource, ...]) -> set[str]:
        """Who may be evicted for it, whether or not that is enough."""
        memo = Memo()
        memo.refresh(self._snapshot, self._policy)
        leaf = memo.forest.leaves.get(self._name)
        if leaf is None or leaf.cycle:
            return set()
        standing = Applicant(self._workload, self._policy).standing
        candidates = Candidates(memo.forest, Preemptor(leaf, standing, amounts, scarce))
        return {each.holder.key for each in candidates.in_order(borrowing=False)}


def _dominant(groups: list[list[FlavorOption]]) -> Refusal | None:
    """Of each group the flavor that lacks least, as it would do; of those the one that lacks most.

    A group of which some flavor can be had is no reason.
    """
    worst: list[Refusal] = []
    for group in groups:
        refusals = [each.refusal for each in group if each.refusal is not None]
        over = [each for each in refusals if each.kind is RefusalKind.OVER_QUOTA]
        if over and all(each.unsuitable or each.refusal for each in group):
            worst.append(min(over, key=_part_lacking))
    return max(worst, key=_part_lacking, default=None)


def _part_lacking(refusal: Refusal) -> Fraction:
    """Comparable between resources, whose units are not."""
    return Fraction(refusal.deficit, refusal.requested)


def _holder(workload: Workload, queue: str, amount: int, evictable: set[str]) -> Holder:
    since = next(
        (each.since_ms for each in workload.conditions if each.type == "QuotaReserved"), None
    )
    return Holder(
        workload=workload.key,
        queue=queue,
        amount=amount,
        evictable=amount if workload.key in evictable else 0,
        owner=workload.namespace,
        priority=workload.priority or 0,
        since_ms=since,
    )
