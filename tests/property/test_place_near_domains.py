"""Which domains are near those in use: what is kept up as more are used, and what that costs."""

from __future__ import annotations

import sys
from types import FrameType

from hypothesis import given
from hypothesis import strategies as st

from bough.core.gang.tree import GangTree
from bough.core.place.domain_options import Spread
from bough.core.place.domains import Domains
from bough.core.place.near_domains import Neighbours
from bough.core.place.node_bits import mask_of
from bough.core.place.node_index import Index
from bough.core.place.placer import Placer
from bough.core.place.result import GangPlacement
from bough.core.undo import UndoLog
from bough.model.cluster import Node, Resources, Topology, TopologyLevel
from bough.model.gang import Gang, Pod, TopologyConstraint
from bough.model.place_policy import PlacePolicy

LEVELS = ("zone", "block", "rack")
TOPOLOGY = Topology("wires", tuple(TopologyLevel(each) for each in LEVELS))
RACK = len(LEVELS) - 1


def node(number: int, places: tuple[int, ...], gpus: int = 1) -> Node:
    """A node with as many of the labels as there are places."""
    labels = {label: str(place) for label, place in zip(LEVELS, places, strict=False)}
    return Node(f"n{number:04}", Resources(gpus, 1000, 1000, 10), labels)


@given(st.data())
def test_distances_are_what_looking_at_all_nodes_in_use_would_find(data: st.DataObject) -> None:
    place = st.tuples(*[st.integers(0, 1)] * 3) | st.tuples(st.integers(0, 1))
    places = data.draw(st.lists(place, min_size=1, max_size=12))
    nodes = [node(number, each) for number, each in enumerate(places)]
    domains = Domains(TOPOLOGY, Index(nodes, PlacePolicy(), UndoLog()))
    sets = st.sets(st.integers(0, len(nodes) - 1))
    used, within = mask_of(data.draw(sets)), mask_of(data.draw(sets))
    near = Neighbours(Spread(domains, RACK, used), within, used)
    while near.distance:
        assert near.distance == {at: _distance(domains, at, used) for at in near.distance}
        at = data.draw(st.sampled_from(sorted(near.distance)))
        near.use(at)
        used |= near.nodes[at]


def _distance(domains: Domains, at: int, used: int) -> int:
    """How many levels up a rack is in one domain with what is used; 0 while nothing is."""
    mask = domains.levels[RACK].masks[at]
    if not used:
        return 0
    for up in range(len(LEVELS)):
        for wide in domains.levels[RACK - up].masks:
            if wide & mask and wide & used:
                return up
    return len(LEVELS)


def test_ten_times_the_pods_of_a_gang_take_about_ten_times_the_steps() -> None:
    assert _steps_to_place(1_280) < 11 * _steps_to_place(128)


def _steps_to_place(pods: int) -> int:
    """Calls that placing one gang takes: four pods on a node, four nodes a rack."""
    nodes = [
        node(number, (number // 256, number // 32, number // 4), gpus=4)
        for number in range(pods // 4)
    ]
    constraint = TopologyConstraint(preferred="rack")
    asks = Resources(gpus=1, cpu_milli=1, memory_bytes=1)
    members = tuple(Pod(f"p{number}", requests=asks) for number in range(pods))
    gang = Gang("large", "queue", members, minimum=pods, constraint=constraint)
    placer, tree = Placer(nodes, [TOPOLOGY]), GangTree.of(gang)
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    found = placer.start(tree, tree.held)
    sys.setprofile(before)
    assert isinstance(found, GangPlacement)
    return calls
