from __future__ import annotations

from bough.core.gang.demand import needed
from bough.core.gang.tree import GangTree
from bough.core.place.domain_options import options
from bough.core.place.node_bits import positions
from bough.core.place.placer import Placer
from bough.core.place.result import NoPlace
from bough.model.cluster import Node, Resources
from bough.model.gang import Gang, TopologyConstraint
from bough.model.place_policy import PlacePolicy
from tests.places import NEAR, TOPOLOGY, gang, node, pod

BOTH = TopologyConstraint(required="zone", preferred="rack")


def tried(nodes: list[Node], wanted: Gang, policy: PlacePolicy | None = None) -> list[str]:
    """The sets of nodes that are tried for a gang, as the last letters of their names."""
    placer = Placer(nodes, [TOPOLOGY], policy)
    placer.add([wanted])
    tree = GangTree.of(wanted)
    demand = needed(tree, tree.held)
    assert demand is not None
    part = placer.compile(tree, demand, tree.held)
    assert not isinstance(part, NoPlace)
    assert part.zone is not None
    sets = (option.nodes for option in options(placer.index, part.zone, placer.index.everything))
    return ["".join(placer.index.nodes[at].name[-1] for at in positions(each)) for each in sets]


def test_racks_come_before_zones_and_the_tightest_comes_first() -> None:
    nodes = [
        node("n0", 2, rack="a.x"),
        node("n1", 1, rack="a.y"),
        node("n2", 4, rack="b.x"),
        node("n3", 2, rack="b.y"),
    ]
    wanted = gang(pod("p", 2), constraint=BOTH)
    assert ["0", "3", "2", "01", "23"] == tried(nodes, wanted)
    assert ["0", "3", "2", "01", "23", "0123"] == tried(nodes, gang(pod("p", 2), constraint=NEAR))


def test_a_wider_domain_with_the_same_nodes_is_not_tried_again() -> None:
    one_zone = [node("n0", 2, rack="a.x"), node("n1", 1, rack="a.y")]
    assert ["0", "01"] == tried(one_zone, gang(pod("p", 2), constraint=NEAR))
    one_rack = [node("n0", 2, rack="a.x"), node("n1", 1, rack="a.x")]
    assert ["01"] == tried(one_rack, gang(pod("p", 2), constraint=NEAR))
    assert ["01"] == tried(one_rack, gang(pod("p", 2), constraint=BOTH))
    beside = [*one_rack, node("n2", 1)]
    assert ["01", "012"] == tried(beside, gang(pod("p", 2), constraint=NEAR))
    strict = PlacePolicy(outside=False)
    assert ["01"] == tried(beside, gang(pod("p", 2), constraint=NEAR), strict)


def test_a_domain_without_enough_cpu_is_not_tried_for_pods_of_several_sizes() -> None:
    small = Resources(8, 3_000, 1 << 40, 110)
    nodes = [node("n0", rack="a.x", capacity=small), node("n1", rack="a.y", capacity=small)]
    sizes = (Resources(1, 2_000), Resources(0, 2_000))
    wanted = gang(*(pod(f"p{at}", requests=each) for at, each in enumerate(sizes)), constraint=BOTH)
    assert ["01"] == tried(nodes, wanted)
