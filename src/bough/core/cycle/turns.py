"""In which order gangs are served, and which of them a cycle looks at.

Gangs of one shape stand together: what is said of the first of them holds for the others; while
guaranteed gangs are served, only until something is evicted. So the cost of a cycle grows with the
number of shapes and of starts, not of gangs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Protocol

from bough.core.cycle.claim import Claim
from bough.core.cycle.contest import Contest
from bough.core.cycle.cycle import Cycle
from bough.core.cycle.decide_pod_gang import free_growth, is_hopeless
from bough.core.cycle.fair_order import ranking
from bough.core.cycle.gates import is_ready, is_strict, may_grow
from bough.core.cycle.grow import Grower
from bough.core.cycle.idle_turns import IdleLines, Turn, lack, surplus
from bough.core.cycle.offers import wants_of
from bough.core.cycle.queue_line import by_standing
from bough.core.cycle.queue_order import Standing
from bough.core.cycle.reserve import Reservation
from bough.core.cycle.working_copy import WorkingCopy
from bough.model.admission_rules import QueueingStrategy
from bough.model.gang_rules import GrowthTurn
from bough.model.policy import Heads
from bough.model.snapshot import Parked


class Serve(Protocol):
    """Serves one gang; whether it has got what it needs, now or once room is free."""

    def __call__(self, cycle: Cycle, claim: Claim, *, takes: bool = True) -> bool:
        """`takes`: whether others may end, or be moved, for it."""
        ...


_NOBODY = Parked()


def heads(copy: WorkingCopy) -> Iterator[Claim]:
    """Which gangs to judge together: those that the policy lets the cycle look at, by queue."""
    nominated = _nominated_by_queue(copy)
    ready = partial(_lacks_something, copy)
    everyone = copy.policy.heads is Heads.ALL
    leaves, all_parked = copy.forest.leaves, copy.snapshot.parked
    for queue, line in sorted(copy.lines.items()):
        leaf = leaves.get(queue)
        if leaf is None:
            yield from line.everyone(_NOBODY, ready)
            continue
        parked = all_parked.get(queue, _NOBODY)
        favored = nominated.get(queue, ())
        if everyone and not is_strict(leaf):
            yield from line.everyone(parked, ready, favored)
            continue
        first = line.first(parked, ready, favored)
        if first is not None:
            yield first


def serve_guaranteed(cycle: Cycle, serve: Serve) -> None:
    """By priority and submit time. One that only lacks a place keeps room from those behind it."""
    copy = cycle.copy
    reserved: list[Reservation] = []

    def serve_one(claim: Claim) -> bool:
        """Whether the others of its shape may still have more luck."""
        served = serve(cycle, claim)
        offer = cycle.unplaced.get(claim.name)
        if offer is not None and len(reserved) < copy.rules.reservations:
            reserved.append(Reservation(copy, claim, offer))
            return True
        return served or not _is_alike(cycle, claim)

    # Gangs for which others were told to end have their turn first, so that neither a later one
    # with a higher priority nor one that keeps nodes for itself takes that room away.
    done = set[str]()
    for claim in _nominated(copy):
        leaf = claim.leaf
        if not claim.preemptible and (leaf is None or not is_strict(leaf)):
            done.add(claim.name)
            serve_one(claim)
    for claim, go_on in _by_standing(cycle, _kinds(copy, preemptible=False), done):
        go_on(serve_one(claim))
    for reservation in reserved:
        reservation.release()


def share_idle(
    cycle: Cycle, serve: Serve, grower: Grower, *, preemptible_only: bool, takes: bool = True
) -> None:
    """By weight between the queues, by priority and submit time within each.

    `takes`: whether others may end, or be moved, for what has its turn.
    """
    copy = cycle.copy
    entrance = _Entrance(cycle, serve, takes=takes)
    lines = entrance.lines
    entrance.open(preemptible=preemptible_only or None)
    contest = Contest(copy.ledgers.total, lines.queues, lines.head, ranking(copy))
    evicted = cycle.outcome.endings
    while True:
        if (queue := contest.next()) is None:
            if cycle.outcome.endings == evicted:
                return
            # Once for all that was evicted, not after each: what is left over is known only then.
            evicted = cycle.outcome.endings
            for other in entrance.reopen():
                contest.settle(other)
            continue
        turn = lines.leave(queue)
        claim, kind = turn.claim, turn.kind
        holds = bool(claim.running) or copy.has_changed(claim)
        had = holds and not claim.counted and wants_of(copy, claim).satisfied
        served = serve(cycle, claim, takes=takes)
        if kind is not None:
            entrance.go_on(kind, turn.position, served=served)
        if served and _grows_in_line(cycle, claim):
            if not had or grower.grow_once(claim):
                lines.enter(Turn(claim))
            elif takes:
                free_growth(cycle, claim)
        contest.settle(queue)


class _Entrance:
    """Lets gangs into the lines for idle capacity, the next of a shape when one before it left."""

    def __init__(self, cycle: Cycle, serve: Serve, *, takes: bool) -> None:
        self._cycle = cycle
        self._serve = serve
        self._takes = takes
        self.lines = IdleLines(cycle.copy, lack)
        #: Gangs that stand in line by themselves.
        self._alone: set[str] = set()
        #: Shapes of which no gang can start as things are, each with how far it got.
        self._given_up: list[tuple[list[Claim], int]] = []

    def open(self, *, preemptible: bool | None) -> None:
        """Let in the first of every shape.

        A gang for which others were told to end stands in line by itself, whatever is before it.
        """
        copy = self._cycle.copy
        nominated = [
            claim
            for claim in _nominated(copy)
            if preemptible is None or claim.preemptible is preemptible
        ]
        for claim in nominated:
            self.enter([claim], 0)
        self._alone.update(claim.name for claim in nominated)
        for kind in sorted(_kinds(copy, preemptible=preemptible), key=_first):
            self.enter(kind, 0)

    def enter(self, kind: list[Claim], position: int) -> None:
        """Let the next of a shape stand in line; what cannot start has its reason at once."""
        cycle = self._cycle
        for at in range(position, len(kind)):
            claim = kind[at]
            if claim.name in cycle.outcome.evicted or claim.name in self._alone:
                continue
            leaf = claim.leaf
            takes_gangs = leaf is not None and not leaf.cycle
            if takes_gangs and not is_hopeless(cycle, claim, takes=self._takes):
                self.lines.enter(Turn(claim, kind, at))
                return
            if not self._serve(cycle, claim, takes=self._takes) and _is_alike(cycle, claim):
                self._given_up.append((kind, at))
                return

    def go_on(self, kind: list[Claim], position: int, *, served: bool) -> None:
        """Let the next of a shape in, unless what was said of this one holds for it."""
        if served or not _is_alike(self._cycle, kind[position]):
            self.enter(kind, position + 1)
        else:
            self._given_up.append((kind, position))

    def reopen(self) -> list[str]:
        """Let gangs in again that were given up, as room may be left over; return their queues."""
        given_up, self._given_up = self._given_up, []
        for kind, position in given_up:
            self.enter(kind, position)
        return sorted({kind[position].queue for kind, position in given_up})


def _grows_in_line(cycle: Cycle, claim: Claim) -> bool:
    """Whether a gang that has what it needs keeps its turn until it has grown."""
    in_line = cycle.copy.rules.growth is GrowthTurn.IN_LINE
    return in_line and not claim.counted and may_grow(cycle, claim)


def share_rest(cycle: Cycle, grower: Grower) -> None:
    """What is left goes to growth: by weight between the queues, within each to the smallest."""
    copy = cycle.copy
    lines = IdleLines(copy, surplus)
    for claim in {**copy.growing, **cycle.outcome.bound}.values():
        if not claim.has_optional_pods or not may_grow(cycle, claim):
            continue
        if any(claim.tree.waiting(copy.held(claim))):
            lines.enter(Turn(claim))
    if not lines.queues:
        return
    contest = Contest(copy.ledgers.total, lines.queues, lines.head, ranking(copy))
    while (queue := contest.next()) is not None:
        claim = lines.leave(queue).claim
        if grower.grow_once(claim):
            lines.enter(Turn(claim))
        contest.settle(queue)


def _by_standing(
    cycle: Cycle, kinds: Iterable[list[Claim]], done: set[str]
) -> Iterator[tuple[Claim, Callable[[bool], None]]]:
    """The first of every shape, in order.

    The caller says whether to go on with the others of that shape. Where it did not, and something
    was evicted later, they are tried again: room may be left over.
    """
    line: list[tuple[Standing, int, list[Claim]]] = [(kind[0].standing, 0, kind) for kind in kinds]
    heapify(line)
    given_up: list[tuple[int, list[Claim]]] = []
    evicted = cycle.outcome.endings
    while line:
        _, position, kind = heappop(line)
        claim = kind[position]
        goes_on = [True]
        if claim.name not in done and claim.name not in cycle.outcome.served:
            yield claim, partial(goes_on.__setitem__, 0)
        if goes_on[0] and position + 1 < len(kind):
            heappush(line, (kind[position + 1].standing, position + 1, kind))
        elif not goes_on[0]:
            given_up.append((position, kind))
        if cycle.outcome.endings != evicted:
            evicted = cycle.outcome.endings
            for at, others in given_up:
                heappush(line, (others[at].standing, at, others))
            given_up.clear()


def _kinds(copy: WorkingCopy, *, preemptible: bool | None) -> Iterator[list[Claim]]:
    for line in copy.lines.values():
        for kind in line.kinds():
            if preemptible is None or kind[0].preemptible is preemptible:
                yield kind


def _first(kind: list[Claim]) -> Standing:
    return kind[0].standing


def _is_alike(cycle: Cycle, claim: Claim) -> bool:
    """Whether what was said of a gang holds for the others of its shape."""
    wait = cycle.outcome.waits.get(claim.name)
    return wait is not None and wait.alike


def _nominated(copy: WorkingCopy) -> list[Claim]:
    """The gangs for which others were told to end in an earlier cycle, by standing."""
    found = (
        copy.claims.get(name) for name, known in copy.snapshot.progress.items() if known.nominated
    )
    waiting = [claim for claim in found if claim is not None and claim.waiting]
    return sorted(waiting, key=by_standing)


def _nominated_by_queue(copy: WorkingCopy) -> dict[str, list[str]]:
    """By queue, for which gangs room is being freed.

    A queue in which everything waits for the first has none: there, no other goes first.
    """
    found: dict[str, list[str]] = {}
    for claim in _nominated(copy):
        leaf = claim.leaf
        if leaf is not None and leaf.queue.rules.queueing is QueueingStrategy.BEST_EFFORT_FIFO:
            found.setdefault(claim.queue, []).append(claim.name)
    return found


def _lacks_something(copy: WorkingCopy, claim: Claim) -> bool:
    """Whether a gang is in line for more than growth."""
    if not is_ready(copy, claim):
        return False
    return claim.counted or claim.leaf is None or not wants_of(copy, claim).satisfied
