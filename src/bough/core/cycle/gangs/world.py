"""The working copy of a cycle over gangs: two ledgers, the places, and what every gang holds.

Everything goes through marks, so that a what-if, and the whole cycle, can be undone exactly.
Must not know who is served when, nor who may be evicted.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bough.core.cycle.gangs.claim import Claim
from bough.core.cycle.gangs.tariff import Tariff, first_gpus
from bough.core.cycle.ledgers import Ledgers
from bough.core.cycle.ledgers import Mark as LedgerMark
from bough.core.gang.order import NAME_ORDER, SPEC_ORDER
from bough.core.gang.release import core_pods
from bough.core.gang.tree import Held
from bough.core.place.bits import mask_of
from bough.core.place.cluster import Hold
from bough.core.place.placer import Placer
from bough.core.place.result import Placement
from bough.core.quota.fairtree import ANY_FLAVOR
from bough.core.undo import UndoLog
from bough.model.gang import Gang, Pod
from bough.model.gangrules import GangRules
from bough.model.quota import FlavorResource, NodeKind, TreeNode
from bough.model.snapshot import Snapshot


class Mark(NamedTuple):
    """Where things stood."""

    log: int
    ledgers: LedgerMark


class World:
    """What is declared, counted, placed and held."""

    def __init__(self, snapshot: Snapshot, rules: GangRules) -> None:
        self.rules = rules
        #: Whether any decision has looked at the clock.
        self.time_matters = False
        self._now_ms = snapshot.now_ms
        self.log = UndoLog()
        self.ledgers = Ledgers(snapshot.cohorts, snapshot.queues)
        self.placer = Placer(snapshot.nodes, snapshot.topologies, rules.placement, self.log)
        gpus = first_gpus((*snapshot.cohorts, *snapshot.queues))
        self.tariffs = {queue.name: Tariff(queue, gpus) for queue in snapshot.queues}
        self._flavor_of = {node.name: node.flavor for node in snapshot.nodes}
        self._masks: dict[tuple[str | None, ...], int] = {}
        self._paths: dict[str, list[TreeNode]] = {}
        self._open: dict[str, bool] = {}
        self._tree_order = NAME_ORDER if rules.subgroups_by_name else SPEC_ORDER
        self.claims: dict[str, Claim] = {}
        #: The gangs that want something, by priority, submit time and name.
        self.waiting: list[Claim] = []
        #: The gangs of each queue that held something when the cycle began.
        self.running: dict[str, dict[str, Claim]] = {}
        #: Gangs that may hold more than they need, and gangs that may be evicted; the oldest first.
        self.elastic: list[Claim] = []
        self.preemptible: list[Claim] = []
        #: Gangs that run with less than they need.
        self.stale: dict[str, Claim] = {}
        #: Gangs that were told to end, in part or whole, before the cycle began.
        self.ending: dict[str, Claim] = {}
        #: Gangs for which others were told to end in an earlier cycle.
        self.nominated: frozenset[str] = frozenset()
        #: What gangs hold now, where that is not what they held when the cycle began.
        self._held: dict[str, Held] = {}

    @property
    def now_ms(self) -> int:
        """The time of the snapshot."""
        self.time_matters = True
        return self._now_ms

    # Gangs come and go between cycles

    def begin(self, snapshot: Snapshot) -> None:
        """Begin a cycle: what came and went before it cannot be undone any more."""
        self._now_ms = snapshot.now_ms
        self.time_matters = False
        self.nominated = frozenset(
            name for name, progress in snapshot.progress.items() if progress.nominated
        )
        self.log.forget()

    def enter(self, gang: Gang) -> None:
        """Count and place what a gang holds."""
        claim = self.claims[gang.name] = Claim(gang, self._tree_order)
        self.placer.add((gang,))
        if claim.waiting:
            insort(self.waiting, claim, key=_line)
        if claim.ending:
            self.ending[claim.name] = claim
        if claim.running:
            self.running.setdefault(claim.queue, {})[claim.name] = claim
            for row in self._rows(claim):
                insort(row, claim, key=_age)
            if claim.is_stale:
                self.stale[claim.name] = claim
        self._count(claim, add=True)

    def leave(self, name: str) -> None:
        """Forget a gang and all that it holds."""
        claim = self.claims.pop(name)
        self._count(claim, add=False)
        for pod in claim.gang.pods:
            self.placer.release(name, pod.name, gone=True)
        self.stale.pop(name, None)
        self.ending.pop(name, None)
        if claim.waiting:
            del self.waiting[bisect_left(self.waiting, claim.line, key=_line)]
        if claim.running:
            del self.running[claim.queue][name]
            for row in self._rows(claim):
                del row[bisect_left(row, claim.age, key=_age)]

    def _rows(self, claim: Claim) -> list[list[Claim]]:
        """The rows of possible victims that a gang stands in."""
        rows = [self.elastic] if claim.elastic else []
        return [*rows, self.preemptible] if claim.gang.preemptible else rows

    def _count(self, claim: Claim, *, add: bool) -> None:
        if claim.queue not in self.tariffs:
            return
        core = set[str]()
        if not claim.gang.preemptible:
            borrows = self.rules.growth_borrows
            pods = core_pods(claim.tree, claim.tree.held) if borrows else claim.running
            core = {pod.name for pod in pods}
        ledgers = self.ledgers
        count = ledgers.add if add else ledgers.remove
        for pod in claim.running:
            count(claim.queue, self.price(claim, pod), guaranteed=pod.name in core)
        count_present = ledgers.present.add_usage if add else ledgers.present.remove_usage
        for pod in claim.ending:
            count_present(claim.queue, self.price(claim, pod))

    # What things count and where they may be

    def price(self, claim: Claim, pod: Pod) -> Mapping[FlavorResource, int]:
        """What a pod that has a place counts against its queue."""
        tariff = self.tariffs[claim.queue]
        if not tariff.choices:
            return {}
        node = self.placer.node_of(claim.name, pod.name) or pod.node or ""
        return tariff.price(pod.requests, tariff.choice_of(self._flavor_of.get(node)))

    def nodes_for(self, queue: str, choice: int) -> int:
        """The nodes that may be used for a choice of flavors: those of another flavor may not."""
        tariff = self.tariffs[queue]
        if not tariff.choices:
            return self.placer.index.everything
        flavors = tariff.nodes_of(choice)
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
            found = self._paths[queue] = self.ledgers.total.path(self.queue_node(queue))
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
        found = self._open.get(queue)
        if found is None:
            known = queue in self.tariffs
            found = known and not self.ledgers.total.cycle(self.queue_node(queue))
            self._open[queue] = found
        return found

    def queue_node(self, queue: str) -> TreeNode:
        """The node of the quota tree that a queue is."""
        return TreeNode(NodeKind.QUEUE, queue)

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
        self.ledgers.add(claim.queue, amounts, guaranteed=guaranteed, waits=placement.waits)
        self.hold(claim, claim.tree.with_pods(self.held(claim), placement.pods))

    def more_guaranteed(self, claim: Claim, added: Iterable[str]) -> dict[FlavorResource, int]:
        """What more of a gang would be guaranteed with optional pods that have a place now.

        Its core is what it gives back last, whatever started first: that may now be another part.
        """
        if claim.gang.preemptible or not self.rules.growth_borrows:
            return {}
        held = self.held(claim)
        before = {pod.name: pod for pod in core_pods(claim.tree, held)}
        held = claim.tree.with_pods(held, added)
        after = {pod.name: pod for pod in core_pods(claim.tree, held)}
        change: dict[FlavorResource, int] = {}
        for name, pod in {**before, **after}.items():
            sign = (name in after) - (name in before)
            for what, amount in self.price(claim, pod).items() if sign else ():
                change[what] = change.get(what, 0) + sign * amount
        return {what: amount for what, amount in change.items() if amount > 0}

    def evict(self, claim: Claim, pods: Iterable[Pod]) -> None:
        """End pods: they count no more, and their room is free when they are gone."""
        for pod in pods:
            self.ledgers.total.remove_usage(claim.queue, self.price(claim, pod))
            self.placer.release(claim.name, pod.name)

    def spare(self, claim: Claim, pods: Iterable[Pod]) -> None:
        """Take an eviction back."""
        for pod in pods:
            self.placer.keep(claim.name, pod.name)
            self.ledgers.total.add_usage(claim.queue, self.price(claim, pod))

    def firm(self, claim: Claim, pods: Iterable[Pod]) -> tuple[Pod, ...]:
        """Those of a gang's pods that have a place and were not told to end."""
        holdings = ((pod, self.placer.holding(claim.name, pod.name)) for pod in pods)
        return tuple(pod for pod, held in holdings if held is not None and held.hold is Hold.FIRM)

    def ends_before(
        self, claim: Claim, placement: Placement, evicted: Iterable[str]
    ) -> tuple[str, ...]:
        """Whose end a gang waits for: on its nodes or, where these are free, in its tree."""
        nodes = {each.node for each in placement.assignments}
        root = self.path(claim.queue)[-1]
        there: list[str] = []
        elsewhere: list[str] = []
        for name in sorted({*self.ending, *evicted}):
            other = self.claims[name]
            holdings = (self.placer.holding(name, pod.name) for pod in other.gang.pods)
            ends = [each for each in holdings if each is not None and each.hold is Hold.ENDS]
            if any(self.placer.index.nodes[each.at].name in nodes for each in ends):
                there.append(name)
            elif ends and self.takes_gangs(other.queue) and self.path(other.queue)[-1] == root:
                elsewhere.append(name)
        return tuple(there or elsewhere)

    def is_evicted(self, claim: Claim) -> bool:
        """Whether a gang lost all that it held in this cycle."""
        held = self._held.get(claim.name)
        return held is not None and not any(held)

    def hold(self, claim: Claim, held: Held) -> None:
        """Say what a gang holds from now on."""
        self.log.put_key(self._held, claim.name, held)

    def mark(self) -> Mark:
        """Begin a what-if; it ends with `undo` or `keep`."""
        return Mark(self.log.mark(), self.ledgers.mark())

    def undo(self, mark: Mark) -> None:
        """All is again as at the mark."""
        self.log.undo(mark.log)
        self.ledgers.undo(mark.ledgers)

    def keep(self, mark: Mark) -> None:
        """What happened since the mark stays, unless an outer what-if is undone."""
        self.ledgers.keep(mark.ledgers)


def _age(claim: Claim) -> tuple[int, str]:
    return claim.age


def _line(claim: Claim) -> tuple[int, int, str]:
    return claim.line
