"""Small clusters that share by quota, limit, weight and priority, with gangs that come and go."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from bough.core.quota.fair_tree import capacity_of, fair_tree
from bough.model.cluster import Node, Resources
from bough.model.fair_queue import FairAmount, FairQueue
from bough.model.gang import Gang, Pod
from bough.model.policy import KAI_FAIR
from bough.model.snapshot import Snapshot
from tests.simulation import Simulation, replace

GPUS = 4


class FairWorld(Simulation):
    """Nodes of four GPUs below departments with queues; gangs of one to four pods."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._number = 0
        nodes = tuple(
            Node(f"node{at}", Resources(gpus=GPUS, cpu_milli=64_000, memory_bytes=2**38, pods=110))
            for at in range(random.randint(2, 5))
        )
        tree = fair_tree(self._queues(), capacity_of(nodes))
        self.queues = [queue.name for queue in tree.queues]
        super().__init__(
            Snapshot(cohorts=tree.cohorts, queues=tree.queues, nodes=nodes), policy=KAI_FAIR
        )

    def _queues(self) -> list[FairQueue]:
        random = self.random
        found = [FairQueue("dep0"), FairQueue("dep1")]
        found += [FairQueue(f"queue{at}", f"dep{at % 2}") for at in range(random.randint(2, 4))]
        return [
            replace(
                queue,
                gpus=FairAmount(
                    Fraction(random.randint(0, 6)),
                    Fraction(random.randint(4, 12)) if random.random() < 0.2 else None,
                    Fraction(random.randint(0, 3)),
                ),
                cpu_milli=FairAmount(None, None, Fraction(1)),
                memory_bytes=FairAmount(None, None, Fraction(1)),
                priority=random.choice((100, 100, 101)),
                created_ms=at,
            )
            for at, queue in enumerate(found)
        ]

    def come(self, gangs: int) -> None:
        """Gangs come, each with its own size and rank."""
        random = self.random
        for _ in range(gangs):
            self._number += 1
            name = f"gang{self._number}"
            size, gpus = random.choice(((1, 1), (1, 2), (2, 1), (1, 4), (3, 1), (2, 2), (4, 1)))
            requests = Resources(gpus=gpus, cpu_milli=1000, memory_bytes=2**30, pods=1)
            guaranteed = random.random() < 0.2
            self.submit(
                Gang(
                    name,
                    random.choice(self.queues),
                    tuple(Pod(f"{name}-{at}", requests=requests) for at in range(size)),
                    minimum=random.randint(1, size),
                    priority=100 if guaranteed else random.choice((50, 50, 75)),
                    preemptible=not guaranteed,
                    submitted_ms=self._number,
                )
            )

    def go(self) -> None:
        """Some of what runs has done its work."""
        for name in self.running:
            if self.random.random() < 0.3:
                self.end(name)
