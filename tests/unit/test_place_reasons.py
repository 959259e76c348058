from __future__ import annotations

import msgspec

from bough.core.gang.demand import needed
from bough.core.gang.tree import GangTree
from bough.core.place.placer import Placer
from bough.core.place.reasons import explain
from bough.model.cluster import Node, Resources, Taint
from bough.model.gang import Gang, SubGroup, SubGroupSet, TopologyConstraint
from bough.model.place_policy import PlacePolicy
from bough.model.shortage import Cause, DomainRoom, Explanation, NodeCount, Short, Together
from tests.places import NEAR, RACK, TOPOLOGY, gang, node, pod, replicas


def why(
    nodes: list[Node], wanted: Gang, *others: Gang, policy: PlacePolicy | None = None
) -> Explanation:
    placer = Placer(nodes, [TOPOLOGY], policy)
    placer.add([*others, wanted])
    tree = GangTree.of(wanted)
    demand = needed(tree, tree.held)
    assert demand is not None
    before = (list(placer.index.idle), list(placer.index.later))
    found = explain(placer, tree, demand, tree.held)
    assert before == (list(placer.index.idle), list(placer.index.later))
    return found


def test_the_missing_pods_and_what_they_ask_for_are_named() -> None:
    (lack,) = why([node("n", 4)], gang(*(pod(f"p{at}", 3) for at in range(2)))).lacks
    assert ("gang", 2, 1, 1) == (lack.subgroup, lack.needed, lack.found, lack.missing)
    assert 3 == lack.requests.gpus


def test_every_node_is_counted_under_the_first_cause_that_applies() -> None:
    nodes = [
        node("a", cordoned=True, labels={"disk": "fast"}),
        node("b"),
        node("c", taints=(Taint("t"),), labels={"disk": "fast"}),
        node("d", 1, labels={"disk": "fast"}),
        node("e", capacity=Resources(8, 500, 1 << 40, 110), labels={"disk": "fast"}),
        node("f", capacity=Resources(8, 64_000, 5, 110), labels={"disk": "fast"}),
        node("g", capacity=Resources(8, 64_000, 1 << 40, 0), labels={"disk": "fast"}),
    ]
    wanted = gang(pod("p", 4, node_selector={"disk": "fast"}))
    (lack,) = why(nodes, wanted).lacks
    assert (
        NodeCount(Cause.CORDONED, 1),
        NodeCount(Cause.SELECTOR, 1),
        NodeCount(Cause.TAINT, 1),
        NodeCount(Cause.RESOURCE, 1, "gpus"),
        NodeCount(Cause.RESOURCE, 1, "cpu"),
        NodeCount(Cause.RESOURCE, 1, "memory"),
        NodeCount(Cause.RESOURCE, 1, "pods"),
    ) == lack.nodes


def test_a_resource_that_no_node_has_is_named() -> None:
    wanted = gang(pod("p", requests=Resources(other=(("moon/dust", 1),))))
    (lack,) = why([node("n")], wanted).lacks
    assert (NodeCount(Cause.RESOURCE, 1, "moon/dust"),) == lack.nodes


def test_nodes_outside_of_the_topology_are_told_of_where_a_preference_may_not_use_them() -> None:
    nodes = [node("n0", 2, rack="a.x"), node("n1", 9)]
    wanted = gang(*(pod(f"p{at}") for at in range(4)), constraint=NEAR)
    (lack,) = why(nodes, wanted, policy=PlacePolicy(outside=False)).lacks
    assert (4, 2) == (lack.needed, lack.found)
    assert (NodeCount(Cause.OUTSIDE, 1), NodeCount(Cause.NONE, 1)) == lack.nodes


def test_the_domains_that_hold_most_are_named() -> None:
    nodes = [
        node("n0", 2, rack="a.x"),
        node("n1", 3, rack="a.y"),
        node("n2", 1, rack="b.x"),
        node("n3", 9),
    ]
    (lack,) = why(nodes, gang(*(pod(f"p{at}") for at in range(4)), constraint=RACK)).lacks
    best = (DomainRoom("a.y", 3), DomainRoom("a.x", 2), DomainRoom("b.x", 1))
    assert Together("wires", "shelf", 4, best, domains=3, pinned=False) == lack.together
    assert 1 == lack.missing
    assert NodeCount(Cause.OUTSIDE, 1) in lack.nodes


def test_a_leaf_of_a_set_that_is_not_needed_says_how_many_pods_it_needs_itself() -> None:
    wanted = msgspec.structs.replace(
        replicas([2, 2, 2], gpus=9, minimum=1), sets=(SubGroupSet(("r0", "r1"), RACK),)
    )
    found = why([node("n")], wanted).lacks
    together = Together("wires", "shelf", 2, (), domains=0, pinned=False)
    assert [("r0", together), ("r1", together), ("r2", None)] == [
        (lack.subgroup, lack.together) for lack in found
    ]


def test_only_domains_that_pods_which_run_allow_are_named() -> None:
    nodes = [node("n0", 1, rack="a.x"), node("n1", 8, rack="a.y")]
    wanted = gang(pod("a", node="n0"), pod("b"), constraint=RACK)
    (lack,) = why(nodes, wanted).lacks
    assert lack.together is not None
    assert ((DomainRoom("a.x", 0),), True) == (lack.together.best, lack.together.pinned)


def test_the_subgroup_that_finds_no_room_beside_the_others_is_named() -> None:
    wanted = gang(
        *(pod(f"{leaf}{at}", 1, leaf) for leaf in "ab" for at in range(2)),
        subgroups=(SubGroup("a", minimum=2), SubGroup("b", minimum=2)),
    )
    (lack,) = why([node("n", 3)], wanted).lacks
    assert ("b", 1) == (lack.subgroup, lack.missing)


def test_too_few_replicas_are_counted() -> None:
    found = why([node("n", 4)], replicas([2, 3, 3], minimum=2))
    assert (Short("gang", needed=2, found=1, candidates=3),) == found.short
    assert ["r1", "r2"] == [lack.subgroup for lack in found.lacks]


def test_a_constraint_that_cannot_be_looked_up_has_no_other_reason() -> None:
    wanted = gang(pod("p"), constraint=TopologyConstraint(required="row"))
    assert Explanation() == why([node("n")], wanted)
