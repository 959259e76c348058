"""The working copy of a cycle: ledgers, lines, places, and what every gang holds.

Made once from a snapshot and kept in step with the next ones. Everything that a cycle does to it
goes through marks, so that a what-if, and the whole cycle, can be undone exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from bough.core.cycle.claim import Claim
from bough.core.cycle.dominant_shares import DominantShares
from bough.core.cycle.forest import Forest
from bough.core.cycle.ledgers import Ledgers
from bough.core.cycle.queue_line import Line
from bough.core.cycle.quota_cost import QuotaCost, first_gpus
from bough.core.gang.demand import Demand, choice_among
from bough.core.gang.order import NAME_ORDER, SPEC_ORDER
from bough.core.gang.release import core_pods
from bough.core.gang.tree import Held
from bough.core.place.cluster import Hold
from bough.core.place.node_bits import mask_of
from bough.core.place.placer import Placer
from bough.core.place.result import Placement
from bough.core.quota.account import Charge
from bough.core.quota.fair_share import FairShares
from bough.core.quota.fair_tree import ANY_FLAVOR
from bough.core.quota.taken_share import Shares
from bough.core.undo import UndoLog
from bough.model.cluster import Node
from bough.model.gang import Gang, Pod, PodState
from bough.model.policy import Policy
from bough.model.quota import Amounts, FlavorResource, NodeKind, TreeNode
from bough.model.snapshot import Progress, Snapshot
from bough.model.workload import Flavor, LocalQueue

_NO_PROGRESS = Progress()
_NONE: frozenset[str] = frozenset()
replace = msgspec.structs.replace


class WorkingCopy:
    """What is declared, counted, placed and held."""

    def __init__(self, snapshot: Snapshot, policy: Policy) -> None:
        self.snapshot = snapshot
        self.policy = policy
        self.rules = policy.gangs
        #: Whether what all ask for decides what is fair.
        self.divides = policy.divides
        #: Whether any decision has looked at the clock.
        self.time_matters = False
        self.log = UndoLog()
        self.ledgers = Ledgers(
            snapshot.cohorts,
            snapshot.queues,
            self.log,
            # Pods take time to end: where there may be any, what they still hold is counted apart.
            apart=bool(snapshot.nodes) or not policy.ending_counts,
        )
        #: The shares by total use, without what was told to end.
        self.shares = Shares(self.ledgers.total)
        #: What is fair of what all ask for, as it was when the cycle began.
        self.fair = FairShares(self.ledgers.total)
        #: The shares of everything that gangs use, where they decide which queue gets idle
        #: capacity.
        self.dominant = DominantShares(snapshot, self.log) if policy.compares_dominant else None
        self.forest = Forest(self.ledgers, snapshot.queues, policy)
        self.placer = Placer(snapshot.nodes, snapshot.topologies, self.rules.placement, self.log)
        declared = (*snapshot.cohorts, *snapshot.queues)
        gpus = first_gpus(declared)
        self.costs = {queue.name: QuotaCost(queue, gpus) for queue in snapshot.queues}
        #: Whether some queues give back before others, whatever is newer.
        self.queues_differ = len({each.priority for each in declared}) > 1
        #: Whether some gangs are safe until they have run for some time.
        self.runtimes_matter = bool(self.rules.minimum_runtime_ms) or any(
            each.preempt_min_runtime_ms or each.reclaim_min_runtime_ms for each in declared
        )
        self._flavor_of = {node.name: node.flavor for node in snapshot.nodes}
        self._masks: dict[tuple[str | None, ...], int] = {}
        self._paths: dict[str, list[TreeNode]] = {}
        self._tree_order = NAME_ORDER if self.rules.subgroups_by_name else SPEC_ORDER
        self.flavors: dict[str, Flavor] = {}
        #: By namespace and name.
        self.local_queues: dict[tuple[str, str], LocalQueue] = {}
        self.claims: dict[str, Claim] = {}
        #: The gangs that want something, by queue.
        self.lines: dict[str, Line] = {}
        #: The gangs of each queue that held something when the cycle began.
        self.running: dict[str, dict[str, Claim]] = {}
        #: Those of them that want more.
        self.growing: dict[str, Claim] = {}
        #: How many of them may hold more than they need.
        self.elastic = 0
        #: Gangs that run with less than they need.
        self.stale: dict[str, Claim] = {}
        #: Gangs that were told to end, in part or whole, before the cycle began.
        self.ending: dict[str, Claim] = {}
        #: How often nodes were cordoned, or opened again: what claims know of nodes ages with it.
        self.nodes_seen = 0
        #: What gangs hold now, where that is not what they held when the cycle began.
        self._held: dict[str, Held] = {}

    @property
    def now_ms(self) -> int:
        """The time of the snapshot."""
        self.time_matters = True
        return self.snapshot.now_ms

    def progress(self, name: str) -> Progress:
        """What an earlier cycle found out about a gang."""
        return self.snapshot.progress.get(name, _NO_PROGRESS)

    def spared_by(self, name: str) -> frozenset[str]:
        """The gangs from which one takes nothing, as it gave way to them before."""
        return frozenset(self.progress(name).gave_way_to) if self.policy.gives_way_once else _NONE

    # Gangs come and go between cycles

    def begin(self, snapshot: Snapshot) -> None:
        """Begin a cycle with the small things that decisions look at."""
        before = self.snapshot
        if not self.flavors or before.flavors is not snapshot.flavors:
            self.flavors = {flavor.name: flavor for flavor in snapshot.flavors}
        if not self.local_queues or before.local_queues is not snapshot.local_queues:
            self.local_queues = {
                (each.namespace, each.name): each for each in snapshot.local_queues
            }
        self.snapshot = snapshot
        self.time_matters = False
        self.forest.changed()
        if self.divides:
            self.fair.begin()

    def take_nodes(self, before: tuple[Node, ...], after: tuple[Node, ...]) -> bool:
        """Take in nodes of which some were cordoned or opened again; return whether that is all."""
        if len(before) != len(after):
            return False
        for old, new in zip(before, after, strict=True):
            if old is not new and replace(old, cordoned=new.cordoned) != new:
                return False
        self.placer.cordon(after)
        self.nodes_seen += 1
        return True

    def enter(self, gang: Gang) -> None:
        """Count and place what a gang holds."""
        claim = self.claims[gang.name] = Claim(gang, self.policy, self._tree_order)
        claim.leaf = self.forest.leaves.get(claim.queue)
        if gang.pods:
            self.placer.add((gang,))
        if claim.waiting:
            line = self.lines.get(claim.queue)
            if line is None:
                line = self.lines[claim.queue] = Line()
            line.add(claim)
            if self.divides:
                self._ask(claim, 1)
        if claim.holds or claim.ending:
            self._enter_holder(claim)

    def _ask(self, claim: Claim, sign: int) -> None:
        """Count what a gang waits for."""
        if claim.leaf is None:
            return
        if claim.counted:
            wanted = claim.leaf.first_choice(claim.gang)
        else:
            pending = (pod for pod in claim.gang.pods if pod.state is PodState.PENDING)
            wanted = self.costs[claim.queue].total(pending, 0)
        self.fair.wait(claim.queue, wanted, sign)

    def _enter_holder(self, claim: Claim) -> None:
        name = claim.name
        if claim.ending or claim.evicted:
            self.ending[name] = claim
        if claim.holds:
            self.running.setdefault(claim.queue, {})[name] = claim
            self.elastic += claim.elastic
            if claim.waiting:
                self.growing[name] = claim
            if claim.running and claim.is_stale:
                self.stale[name] = claim
        self._count(claim, add=True)

    def leave(self, name: str) -> None:
        """Forget a gang and all that it holds."""
        claim = self.claims.pop(name)
        if claim.holds or claim.ending:
            self._leave_holder(claim)
        for pod in claim.gang.pods:
            self.placer.release(name, pod.name, gone=True)
        if claim.waiting:
            if not self.lines[claim.queue].remove(claim):
                del self.lines[claim.queue]
            if self.divides:
                self._ask(claim, -1)

    def _leave_holder(self, claim: Claim) -> None:
        name = claim.name
        self._count(claim, add=False)
        if claim.ending or claim.evicted:
            del self.ending[name]
        if claim.holds:
            del self.running[claim.queue][name]
            self.elastic -= claim.elastic
            self.growing.pop(name, None)
            self.stale.pop(name, None)

    def _count(self, claim: Claim, *, add: bool) -> None:
        """Count what a gang holds against its queue, or stop counting it."""
        leaf = claim.leaf
        if leaf is None:
            return
        admission = claim.gang.admission
        if claim.counted and admission is not None:
            if add:
                counted = leaf.counted(claim.gang, admission)
                claim.usage, claim.charges = counted.usage, counted.charges
            self._count_sets(claim, add=add)
        else:
            self._count_pods(claim, add=add)
            if add:
                claim.charges = [(leaf.account(what), n) for what, n in claim.usage.items()]
        # A gang that was told to end, and no longer counts, has nothing left that could be taken.
        counts = not claim.evicted or self.policy.ending_counts
        if counts and claim.holds and (claim.preemptible or claim.elastic):
            if add:
                leaf.add(claim)
            else:
                leaf.drop(claim)

    def _count_sets(self, claim: Claim, *, add: bool) -> None:
        ledgers = self.ledgers
        if claim.evicted and not self.policy.ending_counts:
            ledgers.hold_on(claim.queue, claim.usage, add=add)
        else:
            count = ledgers.add if add else ledgers.remove
            count(claim.queue, claim.usage, claim.charges, guaranteed=not claim.preemptible)
            if self.dominant is not None:
                self.dominant.count(claim.queue, claim.usage, add=add)

    def _count_pods(self, claim: Claim, *, add: bool) -> None:
        core = set[str]()
        if not claim.preemptible:
            borrows = self.rules.growth_borrows
            pods = core_pods(claim.tree, claim.tree.held) if borrows else claim.running
            core = {pod.name for pod in pods}
        ledgers = self.ledgers
        count = ledgers.add if add else ledgers.remove
        usage: dict[FlavorResource, int] = {}
        for pod in claim.running:
            cost = self.cost(claim, pod)
            count(claim.queue, cost, guaranteed=pod.name in core)
            for what, amount in cost.items():
                usage[what] = usage.get(what, 0) + amount
        claim.usage = usage
        self._weigh(claim, claim.running, add=add)
        if not ledgers.apart:
            return
        for pod in claim.ending:
            ledgers.hold_on(claim.queue, self.cost(claim, pod), add=add)

    def _weigh(self, claim: Claim, pods: Iterable[Pod], *, add: bool) -> None:
        """Count pods that have a place where the largest of all shares decides."""
        if self.dominant is None:
            return
        for pod in pods:
            amounts = self.dominant.amounts(claim.queue, (pod,), self.choice_of(claim, pod))
            self.dominant.count(claim.queue, amounts, add=add)

    # What things count and where they may be

    def cost(self, claim: Claim, pod: Pod) -> Mapping[FlavorResource, int]:
        """How much a pod that has a place counts against its queue."""
        costs = self.costs[claim.queue]
        if not costs.choices:
            return {}
        return costs.price(pod.requests, self.choice_of(claim, pod))

    def costs_of(self, claim: Claim, pods: Iterable[Pod]) -> dict[FlavorResource, int]:
        """How much pods that have a place count together against their queue."""
        total: dict[FlavorResource, int] = {}
        for pod in pods:
            for what, amount in self.cost(claim, pod).items():
                total[what] = total.get(what, 0) + amount
        return total

    def choice_of(self, claim: Claim, pod: Pod) -> int:
        """As which choice of flavors of its queue a pod counts where it is."""
        node = self.placer.node_of(claim.name, pod.name) or pod.node or ""
        return self.costs[claim.queue].choice_of(self._flavor_of.get(node))

    def nodes_for(self, queue: str, choice: int) -> int:
        """The nodes that may be used for a choice of flavors: those of another flavor may not."""
        costs = self.costs[queue]
        if not costs.choices:
            return self.placer.index.everything
        flavors = costs.nodes_of(choice)
        found = self._masks.get(flavors)
        if found is None:
            nodes = self.placer.index.nodes
            found = mask_of(
                at
                for at, node in enumerate(nodes)
                if node.flavor in flavors or ANY_FLAVOR in flavors
            )
            self._masks[flavors] = found
        return found

    def path(self, queue: str) -> list[TreeNode]:
        """A queue and the nodes above it."""
        found = self._paths.get(queue)
        if found is None:
            found = self._paths[queue] = self.ledgers.total.path(TreeNode(NodeKind.QUEUE, queue))
        return found

    def held(self, claim: Claim) -> Held:
        """What a gang holds now."""
        found = self._held.get(claim.name)
        return claim.tree.held if found is None else found

    def has_changed(self, claim: Claim) -> bool:
        """Whether a gang got, or lost, something in this cycle."""
        return claim.name in self._held

    def takes_gangs(self, queue: str) -> bool:
        """Whether a queue exists and does not hang on a cycle."""
        leaf = self.forest.leaves.get(queue)
        return leaf is not None and not leaf.cycle

    # What changes within a cycle

    def start(
        self,
        claim: Claim,
        placement: Placement,
        amounts: Mapping[FlavorResource, int],
        *,
        guaranteed: bool,
    ) -> None:
        """Count pods that were given places."""
        self.use(claim, amounts, guaranteed=guaranteed, waits=placement.waits)
        if self.dominant is not None:
            self._weigh(claim, claim.tree.named(placement.pods), add=True)
        self.hold(claim, claim.tree.with_pods(self.held(claim), placement.pods))

    def use(
        self,
        claim: Claim,
        amounts: Amounts,
        charges: Iterable[Charge] | None = None,
        *,
        guaranteed: bool = False,
        waits: bool = False,
    ) -> None:
        """Count what a gang gets, or what is kept for it."""
        self.ledgers.add(claim.queue, amounts, charges, guaranteed=guaranteed, waits=waits)
        if claim.counted and self.dominant is not None:
            self.dominant.count(claim.queue, amounts, add=True)
        self.forest.changed()

    def more_guaranteed(self, claim: Claim, added: Iterable[str]) -> dict[FlavorResource, int]:
        """What more of a gang would be guaranteed with optional pods that have a place now.

        Its core is what it gives back last, whatever started first: that may now be another part.
        """
        if claim.preemptible or not self.rules.growth_borrows:
            return {}
        held = self.held(claim)
        before = {pod.name: pod for pod in core_pods(claim.tree, held)}
        held = claim.tree.with_pods(held, added)
        after = {pod.name: pod for pod in core_pods(claim.tree, held)}
        change: dict[FlavorResource, int] = {}
        for name, pod in {**before, **after}.items():
            sign = (name in after) - (name in before)
            for what, amount in self.cost(claim, pod).items() if sign else ():
                change[what] = change.get(what, 0) + sign * amount
        return {what: amount for what, amount in change.items() if amount > 0}

    def place_again(
        self, claim: Claim, demand: Demand, *, within: int, waits: bool
    ) -> Placement | None:
        """Give a gang the very places that were freed for it: others keep those freed for them."""
        places = self.progress(claim.name).places
        if not places:
            return None
        pods = choice_among(demand, places)
        if pods is None:
            return None
        return self.placer.place_at(claim.name, pods, places, within=within, waits=waits)

    def evict(self, claim: Claim, pods: Iterable[Pod]) -> None:
        """End pods: they no longer count, and their room is free when they are gone."""
        counts = claim.leaf is not None
        for pod in pods:
            if counts:
                self.ledgers.end(claim.queue, self.cost(claim, pod))
                self._weigh(claim, (pod,), add=False)
            self.placer.release(claim.name, pod.name)

    def end(self, claim: Claim, pods: tuple[Pod, ...]) -> None:
        """End those of a gang's pods that were not told to before; it no longer holds them."""
        self.evict(claim, self.firm(claim, pods))
        names = (pod.name for pod in pods)
        self.hold(claim, claim.tree.without_pods(self.held(claim), names))

    def spare(self, claim: Claim, pods: Iterable[Pod]) -> None:
        """Take an eviction back."""
        for pod in pods:
            self.placer.keep(claim.name, pod.name)
            self.ledgers.spare(claim.queue, self.cost(claim, pod))
            self._weigh(claim, (pod,), add=True)

    def evict_counted(self, claim: Claim) -> None:
        """Stop counting the pod sets of a gang."""
        if not claim.evicted or self.policy.ending_counts:
            self.ledgers.end(claim.queue, claim.usage, claim.charges)
            if self.dominant is not None:
                self.dominant.count(claim.queue, claim.usage, add=False)
        self.hold(claim, ())

    def firm(self, claim: Claim, pods: Iterable[Pod]) -> tuple[Pod, ...]:
        """Those of a gang's pods that have a place and were not told to end."""
        holdings = ((pod, self.placer.holding(claim.name, pod.name)) for pod in pods)
        return tuple(pod for pod, held in holdings if held is not None and held.hold is Hold.FIRM)

    def ends_before(
        self, claim: Claim, placement: Placement | None, evicted: Iterable[str]
    ) -> tuple[str, ...]:
        """Whose end a gang waits for: on its nodes or, where these are free, in its tree."""
        placed = () if placement is None else placement.assignments
        nodes = {each.node for each in placed}
        root = self.path(claim.queue)[-1]
        there: list[str] = []
        elsewhere: list[str] = []
        for name in sorted({*self.ending, *evicted}):
            other = self.claims[name]
            holdings = (self.placer.holding(name, pod.name) for pod in other.gang.pods)
            ends = [each for each in holdings if each is not None and each.hold is Hold.ENDS]
            if any(self.placer.index.nodes[each.at].name in nodes for each in ends):
                there.append(name)
            elif (ends or other.counted) and self._is_below(other.queue, root):
                elsewhere.append(name)
        return tuple(there or elsewhere)

    def _is_below(self, queue: str, root: TreeNode) -> bool:
        return self.takes_gangs(queue) and self.path(queue)[-1] == root

    def is_evicted(self, claim: Claim) -> bool:
        """Whether a gang lost all that it held in this cycle."""
        held = self._held.get(claim.name)
        return held is not None and not any(held)

    def hold(self, claim: Claim, held: Held) -> None:
        """Say what a gang holds from now on."""
        self.log.put_key(self._held, claim.name, held)

    def mark(self) -> int:
        """Begin a what-if; it ends with `undo` or `keep`."""
        return self.log.mark()

    def undo(self, mark: int) -> None:
        """All is again as at the mark."""
        self.log.undo(mark)
        self.forest.changed()

    def keep(self, mark: int) -> None:
        """What happened since the mark stays, unless an outer what-if is undone."""
        self.log.keep(mark)
