from __future__ import annotations

from bough.model.cluster import Resources, Taint, TaintEffect, Toleration
from bough.model.gang import Gang, PodState
from bough.model.place_policy import KAI_PLACEMENT, Packing, PlacePolicy
from tests.places import gang, node, places, pod

SPREAD = PlacePolicy(packing=Packing.SPREAD)
SOFT = Taint("soft", effect=TaintEffect.PREFER_NO_SCHEDULE)


def on(name: str, gpus: int) -> Gang:
    """A pod that runs somewhere."""
    return gang(pod("other", gpus, node=name), name=f"on-{name}")


def test_the_node_with_the_fewest_free_gpus_that_fits_is_taken() -> None:
    nodes = [node("a", 8), node("b", 4), node("c", 2)]
    assert {"p": "b"} == places(nodes, gang(pod("p", 3)))


def test_of_equal_nodes_the_first_by_name_is_taken() -> None:
    assert {"p": "node10"} == places([node("node2"), node("node10")], gang(pod("p")))


def test_pods_of_a_gang_fill_a_node_before_they_go_to_the_next() -> None:
    nodes = [node("a", 4), node("b", 2)]
    found = places(nodes, gang(*(pod(f"p{number}") for number in range(4))))
    assert {"p0": "b", "p1": "b", "p2": "a", "p3": "a"} == found


def test_spreading_takes_the_emptiest_node_in_relation_to_its_size() -> None:
    nodes = [node("a", 8), node("b", 4)]
    assert {"p": "b"} == places(nodes, gang(pod("p")), on("a", 1), policy=SPREAD)
    found = places(nodes, gang(pod("p0"), pod("p1"), pod("p2")), policy=SPREAD)
    assert {"p0": "a", "p1": "b", "p2": "a"} == found


def test_spreading_pods_without_gpus_goes_by_cpu() -> None:
    nodes = [node("a", 0), node("b", 0)]
    wanted = gang(*(pod(f"p{number}", 0) for number in range(4)))
    assert {"p0": "a", "p1": "b", "p2": "a", "p3": "b"} == places(nodes, wanted, policy=SPREAD)


def test_pods_without_gpus_keep_off_free_gpus() -> None:
    nodes = [node("a", 8), node("b", 0)]
    assert {"p": "b"} == places(nodes, gang(pod("p", 0)))
    assert {"p": "b"} == places(nodes, gang(pod("p", 0)), policy=KAI_PLACEMENT)


def test_pods_without_gpus_can_be_packed_by_cpu() -> None:
    nodes = [
        node("a", capacity=Resources(0, 64_000, 1 << 40, 110)),
        node("b", capacity=Resources(0, 2_000, 1 << 40, 110)),
        node("c", capacity=Resources(8, 1_000, 1 << 40, 110)),
    ]
    wanted = gang(*(pod(f"p{number}", 0) for number in range(3)))
    assert {"p0": "b", "p1": "b", "p2": "a"} == places(nodes, wanted, policy=KAI_PLACEMENT)
    assert {"p0": "a", "p1": "a", "p2": "a"} == places(nodes, wanted)


def test_a_node_whose_taint_advises_against_the_pod_comes_last() -> None:
    nodes = [node("a", 1, taints=(SOFT,)), node("b", 8)]
    assert {"p": "b"} == places(nodes, gang(pod("p")))
    assert {"p": "a"} == places(nodes, gang(pod("p")), on("b", 8))
    tolerant = pod("p", tolerations=(Toleration("soft", "Exists"),))
    assert {"p": "a"} == places(nodes, gang(tolerant))


def test_room_that_is_free_comes_before_room_that_will_be() -> None:
    nodes = [node("a", 2), node("b", 8)]
    ending = gang(pod("e", 2, node="a", state=PodState.RELEASING), name="other")
    assert {"p": "b"} == places(nodes, gang(pod("p", 2)), ending, later=True)
