"""Small full clusters in which one gang wants what others have, and what is asked of its plan."""

from __future__ import annotations

from collections import Counter
from random import Random

from bough.core.cycle.plan import plan
from bough.model.cluster import Node, Resources
from bough.model.gang import Gang, Pod, PodState, SubGroup
from bough.model.policy import OSMO
from bough.model.quota import Cohort, Queue
from bough.model.snapshot import Snapshot
from tests.cycle_gangs import HIGH, NORMAL, TOPOLOGY, cohort, node, queue
from tests.oracles.victims import Victims

#: Priorities of what may be evicted.
LOWS = (25, 50, 75)
PREEMPTOR = "new"


class Maker:
    """Makes up a cluster of at most 4 nodes, 3 queues and 6 gangs that run."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.nodes = [node(f"n{at}", random.randint(1, 4)) for at in range(random.randint(1, 4))]
        self.free = {each.name: each.capacity.gpus for each in self.nodes}

    def world(self) -> Snapshot:
        cohorts, queues = self._tree(self.nodes)
        gangs = [self._runs(f"g{at}", queues) for at in range(self.random.randint(2, 6))]
        gangs = [each for each in gangs if each is not None]
        gangs.append(self._waits(queues))
        return Snapshot(
            now_ms=1000,
            cohorts=tuple(cohorts),
            queues=tuple(queues),
            nodes=tuple(self.nodes),
            topologies=(TOPOLOGY,),
            gangs={
                each.name: tuple(gang for gang in gangs if gang.queue == each.name)
                for each in queues
            },
        )

    def _tree(self, nodes: list[Node]) -> tuple[list[Cohort], list[Queue]]:
        """Queues below the root, or some of them below a team; the root has most of the rest."""
        random = self.random
        inner = [cohort("team")] if random.random() < 0.3 else []
        above = ["root", *(each.name for each in inner)]
        queues = [
            queue(f"q{at}", random.choice((0, 0, 1, 2, 3, 4)), random.choice(above))
            for at in range(random.randint(1, 3))
        ]
        capacity = sum(each.capacity.gpus for each in nodes)
        sold = sum(
            quota.nominal
            for each in queues
            for group in each.resource_groups
            for flavor in group.flavors
            for quota in flavor.resources.values()
        )
        left = max(0, capacity - sold - random.choice((0, 0, 0, 1, 2)))
        return [cohort("root", None, left), *inner], queues

    def _runs(self, name: str, queues: list[Queue]) -> Gang | None:
        """A gang that runs whole, on whatever is free; one in four has a guarantee."""
        random = self.random
        priority = random.choice((*LOWS, NORMAL))
        subgroups: tuple[SubGroup, ...] = ()
        if random.random() < 0.2:
            size = random.randint(1, 2)
            subgroups = tuple(SubGroup(f"r{at}", None, size) for at in range(random.randint(2, 3)))
            homes = [group.name for group in subgroups for _ in range(size + random.randint(0, 1))]
            minimum = random.randint(1, len(subgroups))
        else:
            homes = [None] * random.choice((1, 1, 2, 2, 3))
            minimum = random.randint(1, len(homes))
        gpus = random.choice((1, 1, 2))
        mixed = priority != NORMAL and not subgroups and random.random() < 0.2
        pods: list[Pod] = []
        for at, home in enumerate(homes):
            wanted = random.choice((1, 2)) if mixed else gpus
            places = [each for each, free in self.free.items() if free >= wanted]
            if not places:
                return self._undo(pods)
            place = random.choice(places)
            self.free[place] -= wanted
            pods.append(_pod(f"{name}-{at}", home, wanted, place))
        return Gang(
            name,
            random.choice(queues).name,
            tuple(pods),
            subgroups,
            minimum,
            priority=priority,
            preemptible=priority != NORMAL,
            submitted_ms=random.randint(0, 5),
        )

    def _undo(self, pods: list[Pod]) -> None:
        for pod in pods:
            self.free[pod.node or ""] += pod.requests.gpus

    def _waits(self, queues: list[Queue]) -> Gang:
        random = self.random
        count, gpus = random.choice(((1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (3, 1)))
        pods = tuple(_pod(f"{PREEMPTOR}-{at}", None, gpus, None) for at in range(count))
        roomy = [each for each in queues if _nominal(each) >= count * gpus] or queues
        return Gang(
            PREEMPTOR,
            random.choice(roomy).name,
            pods,
            minimum=count,
            priority=random.choice((60, NORMAL, HIGH)),
            submitted_ms=9,
        )


def check(random: Random, told: Counter[str]) -> None:
    """No set that may be taken is better than the one of the plan, and none is missed.

    Counts what was asked, and how often fewer GPUs would have done: where the lower priority has
    the larger pod.
    """
    snapshot = Maker(random).world()
    (preemptor,) = [gang for gangs in snapshot.gangs.values() for gang in gangs if _waits(gang)]
    victims = Victims(snapshot, preemptor)
    decided = plan(snapshot, OSMO)
    nominated = [each.workload for each in decided.nominations]
    told["worlds"] += 1
    if not victims.is_entitled or victims.fits(frozenset()):
        assert () == decided.evictions
        return
    told["asked"] += 1
    if not nominated:
        assert [] == victims.enough, "a set was missed"
        return
    told["served"] += 1
    taken = victims.taken(decided)
    assert taken in victims.legal, "taken, and may not be"
    assert victims.fits(taken), "not enough"
    price = victims.price(taken)
    best = min(victims.price(each) for each in victims.enough)
    assert best.broken == price.broken, "needless gangs"
    assert best == price, "needless GPUs"
    same = [each for each in map(victims.price, victims.enough) if each.broken == price.broken]
    told["broken"] += len(price.broken)
    told["with surplus"] += any(eviction.pods for eviction in decided.evictions)
    told["fewer GPUs would have done"] += min(each.total for each in same) < price.total


def _waits(gang: Gang) -> bool:
    return gang.name == PREEMPTOR


def _pod(name: str, subgroup: str | None, gpus: int, place: str | None) -> Pod:
    state = PodState.PENDING if place is None else PodState.RUNNING
    return Pod(name, subgroup, Resources(gpus=gpus, pods=1), state, place)


def _nominal(declared: Queue) -> int:
    return sum(
        quota.nominal
        for group in declared.resource_groups
        for flavor in group.flavors
        for quota in flavor.resources.values()
    )
