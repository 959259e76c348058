"""What a gang that only lacks a place keeps from others.

If the gangs that have run longest ended first, the gang would fit one day. Until then it keeps its
quota and, of the room that it would have, what no gang that ends will give back: nothing may start
there that could not be evicted again. Gangs that borrow go on using both, and do not count here:
otherwise the room that is kept would move with every eviction, and with it the gangs for which
others were evicted.
"""

from __future__ import annotations

from operator import add, lt, sub
from typing import NamedTuple

from bough.core.cycle.claim import Claim
from bough.core.cycle.offers import Offer
from bough.core.cycle.room import room_for
from bough.core.cycle.victims import search
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.gang.release import surplus_pods
from bough.core.place.columns import Row
from bough.core.place.result import Placement
from bough.model.gang import Pod


class RunningPods(NamedTuple):
    """A gang that runs, with those of its pods that were not told to end."""

    claim: Claim
    pods: tuple[Pod, ...]


class Reservation:
    """The quota and the room that a gang keeps."""

    def __init__(self, copy: WorkingCopy, claim: Claim, offer: Offer) -> None:
        self._copy = copy
        self._claim = claim
        self._request = offer.request
        self._pods: list[Pod] = []
        future = _foresee(copy, claim, offer)
        #: Whether the gang would fit at all, if enough others ended.
        self.kept = future is not None
        if future is not None:
            # Only what is guaranteed: what others borrow in the meantime can be taken back.
            copy.ledgers.guaranteed.add_usage(claim.queue, offer.request)
            copy.forest.changed()
            self._hold(*future)

    def release(self) -> None:
        """Keep nothing any more."""
        if self.kept:
            self._copy.ledgers.guaranteed.remove_usage(self._claim.queue, self._request)
            self._copy.forest.changed()
        for pod in self._pods:
            self._copy.placer.release(self._claim.name, pod.name)

    def _hold(self, placement: Placement, returns: _Returns) -> None:
        tree = self._claim.tree
        for each in placement.assignments:
            leaf, bit = tree.places[each.pod]
            pod = tree.leaves[leaf].pods[bit]
            if not returns.take(each.node, pod):
                self._copy.placer.take(self._claim.name, pod, each.node, waits=True)
                self._pods.append(pod)


def _foresee(copy: WorkingCopy, claim: Claim, offer: Offer) -> tuple[Placement, _Returns] | None:
    """Where a gang will be once enough others have ended, and what these will have given back."""
    mark = copy.log.mark()
    _forget_what_may_be_evicted(copy)
    room = room_for(copy, claim, offer.demand, offer.nodes)
    ended: list[RunningPods] | None = []
    if not room.suffices():
        ended = search(
            (
                RunningPods(other, copy.firm(other, other.running))
                for other in _longest_running(copy)
            ),
            allowed=lambda holding: holding.claim is not claim,
            take=lambda holding: room.release(*holding),
            put_back=lambda holding: room.keep(*holding),
            fits=room.suffices,
        )
    found = None
    if ended is not None:
        for holding in ended:
            for pod in holding.pods:
                copy.placer.release(holding.claim.name, pod.name)
        held = copy.held(claim)
        found = copy.placer.place(claim.tree, offer.demand, held, later=True, within=offer.nodes)
    copy.log.undo(mark)
    if ended is None or not isinstance(found, Placement):
        return None
    return found, _Returns(copy, ended)


class _Returns:
    """What comes back to each node when some gangs have ended."""

    def __init__(self, copy: WorkingCopy, ended: list[RunningPods]) -> None:
        self._index = copy.placer.index
        self._rows: dict[int, Row] = {}
        for claim, pods in ended:
            for pod in pods:
                holding = copy.placer.holding(claim.name, pod.name)
                if holding is not None:
                    before = self._rows.get(holding.at)
                    row = holding.row if before is None else tuple(map(add, before, holding.row))
                    self._rows[holding.at] = row

    def take(self, node: str, pod: Pod) -> bool:
        """Give a pod room out of what comes back to a node, if that is enough."""
        at = self._index.position[node]
        wanted = self._index.columns.request(pod.requests)
        left = self._rows.get(at)
        if left is None or any(map(lt, left, wanted)):
            return False
        self._rows[at] = tuple(map(sub, left, wanted))
        return True


def _forget_what_may_be_evicted(copy: WorkingCopy) -> None:
    for leaf in copy.forest.leaves.values():
        for _, other in leaf.running:
            gone = other.running
            if not other.preemptible:
                gone = surplus_pods(other.tree, copy.held(other))
            for pod in gone:
                copy.placer.release(other.name, pod.name)


def _longest_running(copy: WorkingCopy) -> list[Claim]:
    """Every gang with a guarantee that runs, the one that has run longest first."""
    running = [
        claim
        for claims in copy.running.values()
        for claim in claims.values()
        if not claim.preemptible and claim.running
    ]
    running.sort(key=lambda claim: (claim.gang.started_ms or 0, claim.standing))
    return running
