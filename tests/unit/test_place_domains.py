from __future__ import annotations

import pytest

from bough.core.place import node_changes
from bough.core.place.columns import GPUS
from bough.core.place.domains import ResolvedConstraint, Topologies, UnknownTopology
from bough.core.place.node_bits import positions
from bough.core.place.node_index import Index
from bough.core.undo import UndoLog
from bough.model.cluster import Topology, TopologyLevel
from bough.model.gang import TopologyConstraint
from bough.model.place_policy import PlacePolicy
from tests.places import TOPOLOGY, node

NODES = [
    node("n0", rack="a.x"),
    node("n1", rack="a.y"),
    node("n2", rack="b.x"),
    node("n3", labels={"rack": "x"}),
]
OTHER = Topology("power", (TopologyLevel("feed"),))


def build(*topologies: Topology) -> tuple[Index, Topologies]:
    index = Index(NODES, PlacePolicy(), UndoLog())
    return index, Topologies(topologies, index)


def scope_of(topologies: Topologies, **fields: str) -> ResolvedConstraint | UnknownTopology | None:
    return topologies.scope(TopologyConstraint(**fields))


def test_racks_of_one_name_in_two_zones_are_two_domains() -> None:
    _, topologies = build(TOPOLOGY)
    (domains,) = topologies
    assert ("a", "b") == domains.levels[0].ids
    assert ("a.x", "a.y", "b.x") == domains.levels[1].ids
    assert [[0], [1], [2]] == [list(positions(mask)) for mask in domains.levels[1].masks]


def test_a_node_that_lacks_a_label_is_outside() -> None:
    _, topologies = build(TOPOLOGY)
    assert 0b0111 == topologies.inside("wires")


def test_a_level_is_known_by_its_label_and_by_its_alias() -> None:
    _, topologies = build(TOPOLOGY)
    expected = [1, 1]
    assert expected == [
        scope.required
        for name in ("rack", "shelf")
        if isinstance(scope := scope_of(topologies, required=name), ResolvedConstraint)
    ]


def test_a_level_is_known_by_the_end_of_its_label_where_only_one_ends_so() -> None:
    levels = tuple(TopologyLevel(label) for label in ("a/zone", "a/rack", "b/rack"))
    _, topologies = build(Topology("wires", levels))
    scope = scope_of(topologies, required="zone")
    assert isinstance(scope, ResolvedConstraint)
    assert 0 == scope.required
    assert isinstance(scope_of(topologies, required="rack"), UnknownTopology)


def test_where_no_topology_is_named_the_only_one_is_meant() -> None:
    _, topologies = build(TOPOLOGY)
    scope = scope_of(topologies, required="rack")
    assert isinstance(scope, ResolvedConstraint)
    assert "wires" == scope.domains.name


def test_where_no_topology_is_named_and_there_are_several_it_cannot_be_looked_up() -> None:
    _, topologies = build(TOPOLOGY, OTHER)
    constraint = TopologyConstraint(required="rack")
    assert UnknownTopology(constraint, None, ("power", "wires")) == topologies.scope(constraint)
    assert isinstance(scope_of(topologies, topology="power", required="feed"), ResolvedConstraint)


def test_what_is_not_there_is_named_with_what_there_is() -> None:
    _, topologies = build(TOPOLOGY)
    constraint = TopologyConstraint(required="row")
    assert UnknownTopology(constraint, "row", ("zone", "shelf")) == topologies.scope(constraint)
    constraint = TopologyConstraint(topology="moon")
    assert UnknownTopology(constraint, "moon", ("wires",)) == topologies.scope(constraint)


def test_a_preference_that_the_requirement_implies_is_none() -> None:
    _, topologies = build(TOPOLOGY)
    for preferred in ("zone", "rack"):
        scope = scope_of(topologies, required="rack", preferred=preferred)
        assert isinstance(scope, ResolvedConstraint)
        assert (1, None) == (scope.required, scope.preferred)


def test_a_constraint_without_levels_asks_for_nothing() -> None:
    _, topologies = build(TOPOLOGY)
    assert scope_of(topologies) is None
    assert scope_of(topologies, topology="wires") is None


def test_what_is_free_in_a_domain_follows_its_nodes_and_their_undoing() -> None:
    index, topologies = build(TOPOLOGY)
    (domains,) = topologies
    row = index.columns.request(index.nodes[0].capacity)
    assert [16, 8] == list(domains.free(0, GPUS))
    mark = index.log.mark()
    index.take(0, row)
    assert [8, 8] == list(domains.free(0, GPUS))
    assert [0, 8, 8] == list(domains.free(1, GPUS))
    index.log.undo(mark)
    assert [16, 8] == list(domains.free(0, GPUS))


def test_what_is_free_is_known_after_more_changes_than_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node_changes, "MAXIMUM_CHANGES", 2)
    index, topologies = build(TOPOLOGY)
    (domains,) = topologies
    row = index.columns.request(index.nodes[0].capacity)
    for at in (0, 1, 2):
        index.take(at, row)
    index.free(1, row)
    assert [8, 0] == list(domains.free(0, GPUS))


def test_the_narrowest_domain_around_some_nodes_is_found() -> None:
    _, topologies = build(TOPOLOGY)
    (domains,) = topologies
    assert (1, 0) == domains.around(0b0001, 1)
    assert (0, 0) == domains.around(0b0001, 0)
    assert (0, 0) == domains.around(0b0011, 1)
    assert domains.around(0b0101, 1) is None
    # A node outside of the topology does not count, and alone it is in no domain.
    assert (1, 0) == domains.around(0b1001, 1)
    assert domains.around(0b1000, 1) is None
