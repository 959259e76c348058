"""Clusters and pending gangs for the benchmarks of placement; the same ones in every run."""

from __future__ import annotations

import random
from dataclasses import dataclass

from bough.core.place.placer import Placer
from bough.model.cluster import Node, Resources, Topology, TopologyLevel
from bough.model.gang import Gang, Pod, PodState, SubGroup, TopologyConstraint
from bough.model.place_policy import PlacePolicy

GIB = 1 << 30
TOPOLOGY = Topology(
    "wires",
    (TopologyLevel("example.com/block", "block"), TopologyLevel("example.com/rack", "rack")),
)
#: A small one for what is compared with trying everything.
SMALL_TOPOLOGY = Topology("wires", (TopologyLevel("zone"), TopologyLevel("rack")))
CONSTRAINTS = (
    TopologyConstraint(required="rack"),
    TopologyConstraint(required="block"),
    TopologyConstraint(required="block", preferred="rack"),
    TopologyConstraint(preferred="rack"),
)


@dataclass
class World:
    """A cluster with running pods, and gangs that wait."""

    nodes: list[Node]
    running: list[Gang]
    pending: list[Gang]

    def placer(self, policy: PlacePolicy | None = None, topology: Topology = TOPOLOGY) -> Placer:
        placer = Placer(self.nodes, [topology], policy)
        placer.add(self.running)
        return placer


def mixed(
    nodes: int = 5_000,
    gangs: int = 10_000,
    *,
    starved: bool = False,
    shapes: int = 0,
    constrained: bool = False,
) -> World:
    """Nodes of 8 GPUs in two flavors, four tenths in use; gangs of 1 to 8 equal pods.

    starved:      nine nodes of ten have no CPU left.
    shapes:       so many different requests, by GPUs, flavor and CPU, instead of 8.
    constrained:  every gang must, or should, be within a rack or a block.
    """
    chance = random.Random(7)
    world = World([], [], [])
    for number in range(nodes):
        used = chance.choice([0, 0, 0, 2, 4, 6, 8, 8, 3])
        cpu = 192 if starved and number % 10 else used * chance.choice([8, 16, 24])
        _add_node(world, number, nodes, used, cpu * 1000, used * chance.choice([64, 128, 256]))
    for number in range(gangs):
        gpus = chance.choice([1, 1, 2, 4, 8, 8])
        cpu = gpus * 8_000 + (chance.randrange(shapes // 8) if shapes else 0)
        requests = Resources(gpus=gpus, cpu_milli=cpu, memory_bytes=gpus * 96 * GIB)
        count = chance.choice([1, 1, 2, 2, 4, 8])
        flavor = chance.choice(["h100", "h100", "l40"])
        constraint = CONSTRAINTS[number % len(CONSTRAINTS)] if constrained else None
        selector = {"flavor": flavor}
        world.pending.append(_gang(f"gang-{number}", count, requests, selector, constraint))
    return world


def _add_node(world: World, number: int, nodes: int, gpus: int, cpu: int, memory: int) -> None:
    name = f"node-{number:05}"
    labels = {
        "flavor": "h100" if number < nodes * 7 // 10 else "l40",
        "example.com/block": f"block-{number // 500}",
        "example.com/rack": f"rack-{number // 25}",
    }
    capacity = Resources(8, 192_000, 2048 * GIB, 110)
    world.nodes.append(Node(name, capacity, labels, flavor=labels["flavor"]))
    if gpus or cpu or memory:
        requests = Resources(gpus=gpus, cpu_milli=cpu, memory_bytes=memory * GIB)
        pod = Pod("pod", requests=requests, state=PodState.RUNNING, node=name)
        world.running.append(Gang(f"on-{name}", "queue", (pod,), minimum=1))


def one_large_gang(nodes: int = 5_000, pods: int = 1_024) -> World:
    """A gang of whole nodes and half nodes under required block and preferred rack."""
    world = World([], [], [])
    for number in range(nodes):
        _add_node(world, number, nodes, 8 if number % 7 == 0 else 0, 0, 0)
    requests = Resources(gpus=2, cpu_milli=8_000, memory_bytes=96 * GIB)
    constraint = TopologyConstraint(required="block", preferred="rack")
    world.pending.append(_gang("large", pods, requests, {}, constraint))
    return world


def kai(nodes: int, jobs: int, pods: int) -> World:
    """The input of KAI's own benchmarks: equal nodes, equal jobs of one-GPU pods."""
    capacity = Resources(8, 20_000_000, 20_000_000_000, 110)
    requests = Resources(gpus=1, cpu_milli=1_000, memory_bytes=1_000_000_000)
    return World(
        [Node(f"node-{number}", capacity) for number in range(nodes)],
        [],
        [_gang(f"job-{number}", pods, requests, {}) for number in range(jobs)],
    )


def nested(seed: int) -> tuple[World, Gang]:
    """A small cluster in use, and a gang of replicas in which every level has a constraint."""
    chance = random.Random(seed)
    world = World([], [], [])
    for number in range(chance.randint(4, 6)):
        name = f"n{number}"
        labels = {"zone": chance.choice("ab"), "rack": chance.choice("xy")}
        capacity = Resources(chance.randint(1, 3), chance.randint(1, 4), 9, 9)
        world.nodes.append(Node(name, capacity, labels))
    subgroups: list[SubGroup] = []
    pods: list[Pod] = []
    for replica in ("r0", "r1", "r2")[: chance.randint(1, 3)]:
        required = chance.choice([None, "zone"])
        constraint = TopologyConstraint(required=required, preferred="rack")
        subgroups.append(SubGroup(replica, constraint=constraint))
        for leaf in ("l", "w"):
            size = chance.randint(1, 2)
            rack = TopologyConstraint(required=chance.choice(["zone", "rack"]))
            own = chance.choice([None, rack])
            subgroups.append(SubGroup(f"{leaf}-{replica}", replica, size, own))
            for at in range(size):
                requests = Resources(chance.randint(1, 2), chance.randint(0, 2))
                pods.append(Pod(f"{leaf}-{replica}-{at}", f"{leaf}-{replica}", requests))
    replicas = sum(subgroup.parent is None for subgroup in subgroups)
    minimum = chance.randint(1, replicas)
    whole = TopologyConstraint(required=chance.choice([None, None, "zone"]), preferred="zone")
    return world, Gang("gang", "q", tuple(pods), tuple(subgroups), minimum, whole)


def _gang(
    name: str,
    count: int,
    requests: Resources,
    selector: dict[str, str],
    constraint: TopologyConstraint | None = None,
) -> Gang:
    pods = tuple(
        Pod(f"{name}-{number}", requests=requests, node_selector=selector)
        for number in range(count)
    )
    return Gang(name, f"queue-{len(name) % 4}", pods, minimum=count, constraint=constraint)
