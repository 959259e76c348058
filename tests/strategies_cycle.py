"""Random clusters with quota trees and gangs, and what happens to them, for the cycle over gangs.

Everything is drawn from a `Random`, which Hypothesis can provide: it is then shrunk like the rest.
"""

from __future__ import annotations

from fractions import Fraction
from random import Random

from hypothesis import strategies as st

from bough.model.cluster import Node, Resources, Topology, TopologyLevel
from bough.model.gang import Gang, Pod, PodState, SubGroup, TopologyConstraint
from bough.model.quota import Cohort, FlavorQuotas, Queue, Quota, ResourceGroup
from bough.model.snapshot import Snapshot
from tests.simulation import Simulation, pods_in, replace

LOW, NORMAL, HIGH = 50, 100, 125
TOPOLOGY = Topology("wires", (TopologyLevel("zone"), TopologyLevel("rack")))
WEIGHTS = (Fraction(0), Fraction(1, 2), Fraction(1), Fraction(1), Fraction(2), Fraction(3))


def randoms() -> st.SearchStrategy[Random]:
    """A source of choices that Hypothesis controls."""
    return st.randoms(use_true_random=False)


def seeds() -> st.SearchStrategy[Random]:
    """A source of choices that is fast, and not shrunk."""
    return st.integers(0, 2**32).map(Random)


class Generator:
    """Makes up worlds. The sizes are small, so that things collide."""

    def __init__(self, random: Random, *, plain: bool = False, flavors: int = 1) -> None:
        self.random = random
        #: No subgroups and no topology: a plain oracle can tell what fits.
        self.plain = plain
        #: No gang may have less than all of its pods.
        self.rigid = False
        self.flavors = ("big", "small")[:flavors]
        self._count = 0

    def world(self) -> Snapshot:
        """A cluster without gangs."""
        random = self.random
        nodes = tuple(self._node(number) for number in range(random.randint(1, 4)))
        cohorts, queues = self._tree(nodes)
        return Snapshot(
            now_ms=1000,
            cohorts=cohorts,
            queues=queues,
            nodes=nodes,
            topologies=(TOPOLOGY,),
            gangs={queue.name: () for queue in queues},
        )

    def gang(self, snapshot: Snapshot, priority: int | None = None) -> Gang:
        """A gang that waits in some queue."""
        random = self.random
        self._count += 1
        name = f"g{self._count:02}"
        if priority is None:
            priority = random.choice((LOW, LOW, NORMAL, HIGH))
        subgroups, pods, minimum = self._members()
        # Submit times collide now and then: names must break the tie.
        submitted = snapshot.now_ms - random.choice((0, 0, 0, random.randint(0, 5)))
        return Gang(
            name,
            random.choice(snapshot.queues).name,
            pods,
            subgroups,
            minimum,
            self._constraint(),
            priority=priority,
            preemptible=priority == LOW,
            submitted_ms=submitted,
        )

    def happen(self, simulation: Simulation, priority: int | None = None) -> None:
        """Anything may happen between two cycles; a gang that comes may have a certain priority."""
        gangs = simulation.gangs
        match self.random.choice("ssssseeepfqt"):
            case "s":
                simulation.submit(self.gang(simulation.snapshot, priority))
            case "e" if gangs:
                simulation.end(self.random.choice(sorted(gangs)))
            case "p" if simulation.ending:
                simulation.end_evicted([self.random.choice(simulation.ending)])
            case "f" if simulation.running:
                name = self.random.choice(simulation.running)
                pod = self.random.choice(pods_in(gangs[name], PodState.RUNNING))
                simulation.fail(name, pod.name)
            case "q":
                queue = self.random.choice(simulation.snapshot.queues)
                simulation.declare(replace(queue, resource_groups=self._quotas(leaf=True)))
            case _:
                simulation.tick(self.random.choice((1, 100, 100_000)))

    # The cluster

    def _node(self, number: int) -> Node:
        random = self.random
        labels = {"zone": random.choice("ab"), "rack": random.choice("xy")}
        capacity = Resources(random.randint(1, 4), 8000, 1 << 40, 100)
        flavor = random.choice((*self.flavors, None)) if len(self.flavors) > 1 else None
        return Node(f"n{number}", capacity, labels, flavor=flavor)

    def _tree(self, nodes: tuple[Node, ...]) -> tuple[tuple[Cohort, ...], tuple[Queue, ...]]:
        """Up to three levels. The root gets what makes the tree sold out, oversold or undersold."""
        random = self.random
        inner = [
            Cohort(f"c{number}", "root", self._quotas(leaf=False), random.choice(WEIGHTS))
            for number in range(random.randint(0, 2))
        ]
        above = ["root", *(cohort.name for cohort in inner)]
        queues = [
            Queue(
                f"q{number}",
                random.choice(above),
                self._quotas(leaf=True),
                random.choice(WEIGHTS),
            )
            for number in range(random.randint(1, 4))
        ]
        if random.random() < 0.1:
            return (), tuple(replace(queue, cohort=None) for queue in queues)
        sold = sum(_nominal(each) for each in (*inner, *queues))
        capacity = sum(node.capacity.gpus for node in nodes)
        own = capacity - sold + random.choice((0, 0, 0, 1, -1))
        if random.random() < 0.2:
            own = 0
        quotas = tuple(
            FlavorQuotas(name, {"gpu": Quota(own if at == 0 else 0)})
            for at, name in enumerate(self.flavors)
        )
        root = Cohort("root", None, (ResourceGroup(("gpu",), quotas),))
        return (root, *inner), tuple(queues)

    def _quotas(self, *, leaf: bool) -> tuple[ResourceGroup, ...]:
        random = self.random

        def limit() -> int | None:
            return random.randint(0, 4) if random.random() < 0.25 else None

        quotas = tuple(
            FlavorQuotas(
                name, {"gpu": Quota(random.randint(0, 4) if leaf else 0, limit(), limit())}
            )
            for name in self.flavors
        )
        return (ResourceGroup(("gpu",), quotas),)

    # Gangs

    def _members(self) -> tuple[tuple[SubGroup, ...], tuple[Pod, ...], int | None]:
        random = self.random
        gpus = random.choice((1, 1, 1, 2))
        if self.plain or random.random() < 0.7:
            count = random.randint(1, 4)
            whole = self.rigid or random.random() < 0.5
            minimum = count if whole else random.randint(1, count)
            return (), tuple(_pod(f"p{at}", None, gpus) for at in range(count)), minimum
        sizes = [random.randint(1, 3) for _ in range(random.randint(1, 3))]
        subgroups = tuple(
            SubGroup(f"r{at}", None, random.randint(1, size), self._constraint())
            for at, size in enumerate(sizes)
        )
        pods = tuple(
            _pod(f"r{at}-{number}", f"r{at}", random.choice((gpus, gpus, 1)))
            for at, size in enumerate(sizes)
            for number in range(size)
        )
        minimum = None if random.random() < 0.3 else random.randint(1, len(sizes))
        return subgroups, pods, minimum

    def _constraint(self) -> TopologyConstraint | None:
        if self.plain or self.random.random() < 0.8:
            return None
        level = self.random.choice(("zone", "rack"))
        if self.random.random() < 0.3:
            return TopologyConstraint(preferred=level)
        return TopologyConstraint(required=level)


def _pod(name: str, subgroup: str | None, gpus: int) -> Pod:
    return Pod(name, subgroup, Resources(gpus=gpus, cpu_milli=1, memory_bytes=1))


def _nominal(declared: Cohort | Queue) -> int:
    return sum(
        quota.nominal
        for group in declared.resource_groups
        for flavor in group.flavors
        for quota in flavor.resources.values()
    )
