"""Whole gangs: all or nothing, constraints, choice among replicas, growth, waiting."""

from __future__ import annotations

import msgspec
import pytest

from bough.core.gang.demand import needed
from bough.core.gang.tree import GangTree
from bough.core.place.cluster import Hold
from bough.core.place.placer import Placer
from bough.core.place.result import GangPlacement, NoPlace, Placement
from bough.errors import Broken
from bough.model.cluster import Match
from bough.model.gang import Gang, PodState, SubGroup, SubGroupSet, TopologyConstraint
from bough.model.place_policy import PlacePolicy
from tests.places import (
    NEAR,
    RACK,
    ZONE,
    gang,
    node,
    places,
    pod,
    replicas,
    start,
)

RACKS = [node(f"n{at}", 2, rack=rack) for at, rack in enumerate(("a.x", "a.x", "a.y", "a.y"))]


def several(count: int, gpus: int = 1, **fields: object) -> Gang:
    return gang(*(pod(f"p{number}", gpus) for number in range(count)), **fields)  # type: ignore[arg-type]


# All or nothing


def test_a_gang_that_does_not_fit_takes_nothing() -> None:
    placer = Placer([node("n", 4)])
    tree = GangTree.of(several(5))
    assert NoPlace() == placer.start(tree, tree.held)
    assert [4] == [row[0] for row in placer.index.idle]


def test_a_gang_grows_beyond_its_minimum_while_there_is_room() -> None:
    found = start([node("n", 4)], several(6, minimum=3))
    assert isinstance(found, GangPlacement)
    assert (3, 1) == (len(found.core.assignments), len(found.growth))


def test_growth_skips_pods_that_do_not_fit() -> None:
    wanted = gang(pod("a"), pod("b", 8), pod("c"), minimum=1)
    assert {"a": "n", "c": "n"} == places([node("n", 4)], wanted)


def test_the_minimum_is_found_among_pods_of_which_some_do_not_fit() -> None:
    wanted = gang(pod("a", 8), pod("b"), pod("c"), minimum=2)
    assert {"b": "n", "c": "n"} == places([node("n", 4)], wanted)


def test_a_gang_that_lacks_pods_is_refused_for_that() -> None:
    assert NoPlace(lacks_pods=True) == start([node("n")], several(2, minimum=3))


def test_a_gang_that_has_what_it_needs_only_grows() -> None:
    found = start([node("n")], gang(pod("a", node="n"), pod("b"), minimum=1))
    assert isinstance(found, GangPlacement)
    assert () == found.core.assignments
    assert ["b"] == [each.pod for each in found.assignments]


def test_pods_of_several_sizes_are_placed_where_the_given_order_would_fail() -> None:
    nodes = [node("a", 2), node("b", 3)]
    wanted = gang(pod("small-0", 1), pod("small-1", 1), pod("large", 3))
    assert {"small-0": "a", "small-1": "a", "large": "b"} == places(nodes, wanted)


def test_pods_are_packed_exactly_where_the_largest_first_would_fail() -> None:
    """Best fit would put 4 on the node of 5, and then find no place for the last 2."""
    nodes = [node("five", 5), node("six", 6)]
    wanted = gang(*(pod(f"p{at}", gpus) for at, gpus in enumerate([4, 3, 2, 2])))
    found = places(nodes, wanted)
    assert ("six", "five") == (found["p0"], found["p1"])
    assert {"five", "six"} == {found["p2"], found["p3"]}


# Constraints


def test_a_required_level_keeps_all_pods_in_one_domain() -> None:
    assert {"p0": "n0", "p1": "n0", "p2": "n1"} == places(RACKS, several(3, constraint=RACK))
    assert {} == places(RACKS, several(5, constraint=RACK))
    assert 5 == len(places(RACKS, several(5, constraint=ZONE)))


def test_the_tightest_domain_that_fits_is_taken() -> None:
    busy = gang(pod("busy", 1, node="n2"), name="other")
    assert {"p0": "n2", "p1": "n3", "p2": "n3"} == places(RACKS, several(3, constraint=RACK), busy)


def test_a_node_outside_of_the_topology_is_none_for_a_requirement() -> None:
    nodes = [node("n0", 8, labels={"rack": "x"})]
    assert {} == places(nodes, several(1, constraint=RACK))
    assert {"p0": "n0"} == places(nodes, several(1, constraint=NEAR))


def test_nodes_outside_of_the_topology_may_be_as_good_as_absent_for_a_preference() -> None:
    nodes = [*RACKS, node("n9", 8)]
    wanted = several(6, constraint=NEAR)
    busy = gang(*(pod(f"busy-{at}", 1, node=f"n{at}") for at in range(4)), name="other")
    assert "n9" in places(nodes, wanted, busy).values()
    strict = PlacePolicy(outside=False)
    assert {} == places(nodes, wanted, busy, policy=strict)
    assert {"n0", "n2", "n3"} == set(places(nodes, wanted, policy=strict).values())
    # Also where no order of the pods is greedy enough, and the exact search begins.
    mixed = gang(pod("large", 2), pod("small", 1), pod("huge", 3), constraint=NEAR)
    assert {} == places(nodes, mixed, policy=strict)


def test_a_pod_that_runs_outside_of_the_topology_may_be_joined_by_none() -> None:
    nodes = [*RACKS, node("n9", 8)]
    wanted = gang(pod("a", node="n9"), pod("b"), minimum=2, constraint=RACK)
    assert {"b": "n0"} == places(nodes, wanted)
    assert {} == places(nodes, wanted, policy=PlacePolicy(outside=False))


def test_pods_that_do_not_fit_together_go_on_with_the_tightest_or_the_roomiest_domain() -> None:
    sizes = {"a.x": 3, "b.x": 2, "b.y": 4, "b.z": 1}
    nodes = [node(f"n{rack}", gpus, rack=rack) for rack, gpus in sizes.items()]
    wanted = several(5, constraint=NEAR)
    assert ["nb.y"] * 4 + ["nb.z"] == list(places(nodes, wanted).values())
    # All of zone b, which has more room, comes before zone a.
    roomy = PlacePolicy(roomiest_first=True)
    assert ["nb.y"] * 4 + ["nb.x"] == list(places(nodes, wanted, policy=roomy).values())


def test_a_preference_is_kept_where_it_can_be_and_never_blocks() -> None:
    assert {"p0": "n0", "p1": "n0", "p2": "n1", "p3": "n1"} == places(
        RACKS, several(4, constraint=NEAR)
    )
    assert 6 == len(places(RACKS, several(6, constraint=NEAR)))


def test_a_preference_within_a_requirement_goes_out_only_as_far_as_it_must() -> None:
    nodes = [*RACKS, node("n4", 2, rack="b.x"), node("n5", 2, rack="b.y")]
    wanted = several(4, constraint=TopologyConstraint(required="zone", preferred="rack"))
    busy = gang(pod("busy", 1, node="n0"), pod("busy-2", 1, node="n2"), name="other")
    # No rack has four GPUs free; zone b is the tighter of the two that have.
    assert {"n4", "n5"} == set(places(nodes, wanted, busy).values())


def test_one_rack_that_is_the_whole_cluster_serves_a_wider_requirement() -> None:
    assert 2 == len(places(RACKS[:2], several(2, constraint=ZONE)))


def test_pods_that_run_pin_the_required_domain() -> None:
    wanted = gang(pod("a", node="n2"), pod("b"), pod("c"), constraint=RACK)
    assert {"b": "n2", "c": "n3"} == places(RACKS, wanted)
    full = gang(pod("busy", 1, node="n2"), pod("busy-2", 2, node="n3"), name="other")
    assert {} == places(RACKS, wanted, full)


def test_growth_stays_in_the_required_domain() -> None:
    assert {"n0", "n1"} == set(places(RACKS, several(8, minimum=2, constraint=RACK)).values())


def test_growth_stays_near_the_pods_that_run() -> None:
    constraint = TopologyConstraint(required="zone", preferred="rack")
    wanted = gang(pod("a", node="n3"), pod("b"), minimum=1, constraint=constraint)
    busy = gang(pod("busy", 1, node="n0"), name="other")
    assert {"b": "n3"} == places(RACKS, wanted, busy)
    eager = PlacePolicy(near_running=False)
    assert {"b": "n0"} == places(RACKS, wanted, busy, policy=eager)


def test_a_subgroup_is_placed_within_the_domain_of_its_parent() -> None:
    nodes = [
        node("n0", 2, rack="a.x"),
        node("n1", 1, rack="a.y"),
        node("n2", 2, rack="b.x"),
        node("n3", 2, rack="b.y"),
    ]
    wanted = gang(
        *(pod(f"{leaf}{at}", 1, leaf) for leaf in ("l", "w") for at in range(2)),
        subgroups=(
            SubGroup("both", constraint=ZONE),
            SubGroup("l", "both", 2, RACK),
            SubGroup("w", "both", 2, RACK),
        ),
    )
    assert {"l0": "n2", "l1": "n2", "w0": "n3", "w1": "n3"} == places(nodes, wanted)


def test_a_domain_that_serves_one_subgroup_only_is_given_up_for_one_that_serves_all() -> None:
    """The tighter rack would take the first subgroup, and leave none for the larger second."""
    nodes = [node("n0", 3, rack="a.x"), node("n1", 2, rack="a.y")]
    sizes = [2, 3]
    assert {"r0-0": "n1", "r0-1": "n1", "r1-0": "n0", "r1-1": "n0", "r1-2": "n0"} == places(
        nodes, replicas(sizes, constraint=RACK)
    )


def test_replicas_in_racks_use_as_few_zones_as_possible_where_these_are_preferred() -> None:
    """Zone b holds two of the three; the tighter zones a and c hold one each."""
    racks = ("a.x", "b.x", "b.y", "c.x")
    nodes = [node(f"n{at}", 2, rack=rack) for at, rack in enumerate(racks)]
    wanted = replicas([2, 2, 2], constraint=RACK)
    wanted = msgspec.structs.replace(wanted, constraint=TopologyConstraint(preferred="zone"))
    assert {"n1", "n2", "n0"} == set(places(nodes, wanted).values())


def test_the_preference_of_a_subgroup_comes_before_that_of_the_gang() -> None:
    """Three pods fit into no rack, but into a zone, which is nearer than the rest of zone a."""
    racks = ("a.x", "a.y", "b.x", "b.y")
    nodes = [node(f"n{at}", 2, rack=rack) for at, rack in enumerate(racks)]
    wanted = msgspec.structs.replace(
        replicas([3, 3], constraint=NEAR), constraint=TopologyConstraint(preferred="zone")
    )
    found = places(nodes, wanted)
    assert {"n2", "n3"} == {found[f"r1-{at}"] for at in range(3)}


def test_a_set_of_subgroups_shares_a_domain_and_others_do_not() -> None:
    wanted = msgspec.structs.replace(replicas([2, 2, 2]), sets=(SubGroupSet(("r0", "r2"), RACK),))
    found = places(RACKS, wanted)
    assert 6 == len(found)
    racks = {name: found[f"{name}-0"] in {"n0", "n1"} for name in ("r0", "r1", "r2")}
    assert racks["r0"] == racks["r2"] != racks["r1"]


def test_a_replica_outside_of_a_set_serves_where_two_inside_do_not_fit_together() -> None:
    nodes = [node("n0", 3, rack="a.x"), node("n1", 3, rack="a.y")]
    wanted = msgspec.structs.replace(
        replicas([2, 2, 2], minimum=2), sets=(SubGroupSet(("r0", "r1"), RACK),)
    )
    assert {"r0", "r2"} == {name.partition("-")[0] for name in places(nodes, wanted)}


def test_a_set_that_has_no_domain_leaves_the_replicas_outside_of_it_alone() -> None:
    wanted = msgspec.structs.replace(
        replicas([2, 2, 2, 1], minimum=1), sets=(SubGroupSet(("r0", "r1"), RACK),)
    )
    assert {"r2-0", "r2-1", "r3-0"} == {*places([node("n")], wanted)}


def test_a_set_without_a_domain_that_every_choice_needs_is_an_obstacle() -> None:
    wanted = msgspec.structs.replace(
        replicas([1, 1, 1], minimum=2), sets=(SubGroupSet(("r0", "r1"), RACK),)
    )
    assert {} == places([node("n")], wanted)


def test_two_sets_without_domains_leave_the_rest_alone() -> None:
    sets = (SubGroupSet(("r0", "r1"), RACK), SubGroupSet(("r2", "r3"), ZONE))
    wanted = msgspec.structs.replace(replicas([1, 1, 1, 1, 1], minimum=1), sets=sets)
    assert {"r4-0": "n"} == places([node("n")], wanted)


def test_a_wide_requirement_leaves_a_whole_rack_to_a_narrow_one() -> None:
    """Best fit by name alone would take one node of each rack."""
    nodes = [node(f"n{at}", 1, rack=rack) for at, rack in enumerate(("a.x", "a.y", "a.x", "a.y"))]
    wanted = gang(
        *(pod(f"{leaf}{at}", 1, leaf) for leaf in ("wide", "narrow") for at in range(2)),
        subgroups=(SubGroup("wide", minimum=2, constraint=ZONE), SubGroup("narrow", None, 2, RACK)),
    )
    found = places(nodes, wanted)
    assert {"n0", "n2"} == {found["wide0"], found["wide1"]}
    assert {"n1", "n3"} == {found["narrow0"], found["narrow1"]}


def test_zones_with_equal_nodes_are_not_alike_when_their_racks_matter() -> None:
    nodes = [
        node("n0", 1, rack="a.x"),
        node("n1", 1, rack="a.y"),
        node("n2", 1, rack="b.x"),
        node("n3", 1, rack="b.x"),
    ]
    wanted = gang(
        pod("p0", 1, "inner"),
        pod("p1", 1, "inner"),
        subgroups=(SubGroup("outer", constraint=ZONE), SubGroup("inner", "outer", 2, RACK)),
    )
    assert {"p0": "n2", "p1": "n3"} == places(nodes, wanted)


def test_racks_with_equal_nodes_are_not_alike_when_pods_that_run_pin_one() -> None:
    nodes = [node("n0", 4, rack="a.x"), node("n1", 4, rack="a.y")]
    wanted = gang(
        *(pod(f"free{at}", 1, "free") for at in range(3)),
        pod("pinned0", 1, "pinned", node="n0"),
        *(pod(f"pinned{at}", 1, "pinned") for at in (1, 2)),
        subgroups=(SubGroup("free", None, 3, RACK), SubGroup("pinned", None, 3, RACK)),
    )
    found = places(nodes, wanted, gang(pod("busy", 1, node="n1"), name="other"))
    assert {"n1"} == {found[f"free{at}"] for at in range(3)}
    assert {"n0"} == {found["pinned1"], found["pinned2"]}


def test_a_constraint_that_cannot_be_looked_up_is_a_refusal_that_names_it() -> None:
    found = start(RACKS, several(1, constraint=TopologyConstraint(required="row")))
    assert isinstance(found, NoPlace)
    (unresolved,) = found.unresolved
    assert ("gang", "row") == (unresolved.subgroup, unresolved.problem.unknown)


# Some of several replicas


def test_a_replica_that_does_not_fit_yields_its_place_to_the_next() -> None:
    found = places(RACKS, replicas([5, 4, 4], minimum=2, constraint=RACK))
    assert {"r1", "r2"} == {name.partition("-")[0] for name in found}


def test_small_replicas_are_taken_where_the_first_ones_leave_too_little() -> None:
    nodes = [node("n", 4)]
    found = places(nodes, replicas([3, 2, 2], minimum=2))
    assert {"r1", "r2"} == {name.partition("-")[0] for name in found}


def test_an_optional_replica_starts_whole_or_not_at_all() -> None:
    found = start([node("n", 5)], replicas([2, 2, 2], minimum=1))
    assert isinstance(found, GangPlacement)
    assert [2, 2] == [len(unit.assignments) for unit in (found.core, *found.growth)]


def test_many_equal_replicas_that_cannot_all_fit_are_refused_without_much_work() -> None:
    nodes = [node(f"n{at:02}", 3, rack=f"a.r{at:02}") for at in range(40)]
    found = start(
        nodes, replicas([2] * 60, minimum=41, constraint=RACK), policy=PlacePolicy(work=100)
    )
    assert NoPlace() == found


def test_a_gang_with_very_many_subgroups_is_placed() -> None:
    nodes = [node(f"n{at:03}", 8, rack=f"a.r{at:03}") for at in range(300)]
    assert 2_000 == len(places(nodes, replicas([2] * 1_000, constraint=RACK)))


def test_a_search_that_is_too_long_gives_up_and_says_so() -> None:
    """Racks of 7, 6 and 5 hold 3 + 3 + ..., in no way 4 + 4 + 4 + 3 + 3: but that takes a while."""
    nodes = [node(f"n{at}", size, rack=f"a.r{at}") for at, size in enumerate((7, 6, 5))]
    wanted = replicas([4, 4, 4, 3, 3], constraint=RACK)
    assert NoPlace(gave_up=True) == start(nodes, wanted, policy=PlacePolicy(work=3))
    assert NoPlace(gave_up=False) == start(nodes, wanted)


# Room that is being freed


def ending(name: str, gpus: int, at: str) -> Gang:
    return gang(pod("e", gpus, node=at, state=PodState.RELEASING), name=name)


def test_a_gang_waits_for_room_that_is_being_freed_only_if_it_may() -> None:
    nodes = [node("a", 2), node("b", 2)]
    other = ending("other", 2, "b")
    assert NoPlace() == start(nodes, several(4), other)
    found = start(nodes, several(4), other, later=True)
    assert isinstance(found, GangPlacement)
    assert found.core.waits


def test_where_one_pod_waits_the_whole_gang_does_and_its_growth() -> None:
    nodes = [node("a", 3), node("b", 2)]
    found = start(nodes, several(5, minimum=4), ending("other", 2, "b"), later=True)
    assert isinstance(found, GangPlacement)
    assert [True] * 5 == [each.waits for each in found.assignments]


def test_growth_waits_only_where_its_own_room_is_not_free() -> None:
    nodes = [node("a", 2), node("b", 2)]
    found = start(nodes, several(4, minimum=1), ending("other", 2, "b"), later=True)
    assert isinstance(found, GangPlacement)
    assert [False, False, True, True] == [each.waits for each in found.assignments]


def test_room_under_a_waiting_gang_is_kept_for_it() -> None:
    placer = Placer([node("a", 4)])
    placer.add([ending("other", 2, "a")])
    first, second = (GangTree.of(several(4, name=name)) for name in ("first", "second"))
    assert isinstance(placer.start(first, first.held, later=True), GangPlacement)
    single = GangTree.of(gang(pod("p"), name="single"))
    assert isinstance(placer.start(single, single.held, later=True), NoPlace)
    assert isinstance(placer.start(second, second.held, later=True), NoPlace)


# What-ifs


def test_evicting_a_victim_makes_room_for_later_and_undo_takes_it_back() -> None:
    placer = Placer([node("a", 4)])
    placer.add([gang(pod("v", 4, node="a"), name="victim")])
    tree = GangTree.of(several(2, 2))
    demand = needed(tree, tree.held)
    assert demand is not None
    assert isinstance(placer.place(tree, demand, tree.held, later=True), NoPlace)
    mark = placer.mark()
    placer.release("victim", "v")
    found = placer.place(tree, demand, tree.held, later=True)
    assert isinstance(found, Placement)
    assert found.waits
    placer.undo(mark)
    assert isinstance(placer.place(tree, demand, tree.held, later=True), NoPlace)


def test_a_victim_that_is_gone_leaves_room_for_now() -> None:
    placer = Placer([node("a", 4)])
    placer.add([gang(pod("v", 4, node="a"), name="victim")])
    placer.release("victim", "v", gone=True)
    tree = GangTree.of(several(4))
    assert isinstance(placer.start(tree, tree.held), GangPlacement)
    assert placer.node_of("victim", "v") is None


def test_a_victim_that_is_kept_after_all_has_its_room_again() -> None:
    placer = Placer([node("a", 4)])
    placer.add([gang(pod("v", 3, node="a"), name="victim")])
    placer.release("victim", "v")
    placer.keep("victim", "v")
    holding = placer.holding("victim", "v")
    assert holding is not None
    assert Hold.FIRM is holding.hold
    assert (1, 1) == (placer.index.idle[0][0], placer.index.later[0][0])


def test_an_ending_pod_can_be_gone_and_a_waiting_one_withdrawn() -> None:
    placer = Placer([node("a", 4)])
    placer.add([ending("other", 3, "a")])
    placer.take("gang", pod("w", 4), "a", waits=True)
    assert (1, 0) == (placer.index.idle[0][0], placer.index.later[0][0])
    placer.release("gang", "w")
    placer.release("other", "e", gone=True)
    assert (4, 4) == (placer.index.idle[0][0], placer.index.later[0][0])
    assert (None, None) == (placer.holding("gang", "w"), placer.holding("other", "e"))


def test_a_pod_cannot_have_two_places() -> None:
    placer = Placer([node("a", 4)])
    placer.take("gang", pod("p"), "a")
    with pytest.raises(Broken):
        placer.take("gang", pod("p"), "a")


def test_pods_on_nodes_that_are_not_there_hold_nothing() -> None:
    placer = Placer([node("a", 4)])
    placer.add([gang(pod("p", node="gone"))])
    assert placer.node_of("gang", "p") is None
    assert 4 == placer.index.idle[0][0]


def test_what_was_refused_is_tried_again_once_something_is_given_back() -> None:
    placer = Placer([node("a", 4), node("b", 4)])
    placer.add([gang(pod("v", 4, node="a"), name="victim")])
    tree = GangTree.of(several(5))
    assert isinstance(placer.start(tree, tree.held), NoPlace)
    mark = placer.mark()
    placer.release("victim", "v", gone=True)
    assert isinstance(placer.start(tree, tree.held), GangPlacement)
    placer.undo(mark)
    assert isinstance(placer.start(tree, tree.held), NoPlace)


def test_nodes_can_be_limited_to_a_mask() -> None:
    placer = Placer([node("a", 4), node("b", 4)])
    tree = GangTree.of(several(2))
    found = placer.start(tree, tree.held, within=0b10)
    assert isinstance(found, GangPlacement)
    assert {"b"} == {each.node for each in found.assignments}


def test_affinity_to_a_node_by_name_is_obeyed() -> None:
    match = Match("metadata.name", "In", ("b",))
    assert {"p": "b"} == places([node("a"), node("b")], gang(pod("p", affinity=((match,),))))
