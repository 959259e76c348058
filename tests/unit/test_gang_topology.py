from __future__ import annotations

import pytest

from bough.core.gang.topology import levels_named, resolved
from bough.model.cluster import Topology, TopologyLevel
from bough.model.gang import TopologyConstraint
from bough.model.pod_group import PodGroup, SubGroupSetSpec, SubGroupSpec, TopologyConstraints
from tests.checked import ERROR, WARNING, Told, check_gangs, pod_group, told, topology

CLUSTER = Topology(
    "cluster",
    (TopologyLevel("example.com/block", "block"), TopologyLevel("example.com/rack", "rack")),
)
OTHER = Topology("other", (TopologyLevel("zone"),))
RACK = TopologyConstraint(required="rack")
SUBGROUPS = (
    SubGroupSpec("decode"),
    SubGroupSpec("leaders", "decode", 1),
    SubGroupSpec("workers", "decode", 1),
    SubGroupSpec("prefill", None, 1),
)


def found(*topologies: Topology, severity: str = ERROR, **fields: object) -> Told:
    fields = {"subgroups": SUBGROUPS, **fields}
    group = PodGroup("pg", **fields)  # type: ignore[arg-type]
    return told(check_gangs(pod_group(group), *map(topology, topologies)), severity)


def named(**constraints: TopologyConstraint) -> TopologyConstraints:
    return TopologyConstraints(subgroups=constraints)


def sets(*members: tuple[str, ...]) -> TopologyConstraints:
    return TopologyConstraints(sets=tuple(SubGroupSetSpec(each, RACK) for each in members))


def test_levels_are_not_checked_where_no_topology_is_known():
    assert [] == found(constraint=TopologyConstraint("nowhere", "no such level"))


def test_a_level_is_found_by_label_and_by_alias():
    assert [] == found(CLUSTER, constraint=RACK)
    assert [] == found(CLUSTER, constraint=TopologyConstraint("cluster", "example.com/rack"))


def test_a_label_counts_before_an_alias_and_that_before_the_end_of_a_label():
    levels = (
        TopologyLevel("a.com/rack"),
        TopologyLevel("b.com/cage", "rack"),
        TopologyLevel("rack"),
        TopologyLevel("c.com/cage"),
        TopologyLevel("d.com/row"),
    )
    all_levels = Topology("t", levels)

    def meant(name: str) -> tuple[int, ...]:
        return levels_named(all_levels, name)

    assert [(2,), (0,), (1, 3), (4,), ()] == [
        *map(meant, ("rack", "a.com/rack", "cage", "row", "ow"))
    ]
    assert (1,) == levels_named(Topology("t", levels[:2]), "rack")


def test_an_unknown_level_is_reported_with_those_that_there_are():
    constraint = TopologyConstraint(required="row", preferred="cage")
    assert [
        (
            "spec.topologyConstraint.requiredTopologyLevel",
            "topology 'cluster' has no level 'row'; its levels are block, rack",
        ),
        (
            "spec.topologyConstraint.preferredTopologyLevel",
            "topology 'cluster' has no level 'cage'; its levels are block, rack",
        ),
    ] == found(CLUSTER, constraint=constraint)


def test_an_unknown_topology_is_reported():
    expected = "there is no topology 'what'; known: cluster, other"
    constraint = TopologyConstraint("what", "rack")
    field = "spec.topologyConstraints.subGroups.prefill.topology"
    assert [(field, expected)] == found(CLUSTER, OTHER, constraints=named(prefill=constraint))


def test_a_topology_must_be_named_where_there_are_several():
    field = "spec.subGroups[0].topologyConstraint.topology"
    subgroup = SubGroupSpec("a", None, 1, constraint=RACK)
    expected = [(field, "is missing, and there are several: cluster, other")]
    assert expected == found(CLUSTER, OTHER, subgroups=(subgroup,))
    assert [] == found(CLUSTER, subgroups=(subgroup,))


def test_a_preferred_level_that_is_wider_than_the_required_one_says_nothing_new():
    constraint = TopologyConstraint(required="rack", preferred="block")
    ((field, message),) = [
        each
        for each in found(CLUSTER, constraint=constraint, severity=WARNING)
        if "wider" in each[1]
    ]
    assert "spec.topologyConstraint.preferredTopologyLevel" == field
    assert message.startswith("'block' is wider than the required level 'rack'")


def test_a_constraint_without_levels_says_nothing():
    warnings = found(constraint=TopologyConstraint("cluster"), severity=WARNING)
    assert ("spec.topologyConstraint", "names no level, so that it says nothing") in warnings


def test_a_constraint_names_a_subgroup_that_exists():
    field = "spec.topologyConstraints.subGroups.nobody"
    assert [(field, "there is no subgroup 'nobody'")] == found(constraints=named(nobody=RACK))


def test_a_subgroup_is_constrained_in_one_place():
    subgroups = (SubGroupSpec("a", None, 1, constraint=RACK),)
    ((field, message),) = found(subgroups=subgroups, constraints=named(a=RACK))
    assert "spec.topologyConstraints.subGroups.a" == field
    assert "has a topologyConstraint as well" in message


def test_a_global_constraint_is_of_no_use_beside_one_for_everything():
    ((field, message),) = found(constraint=RACK, constraints=TopologyConstraints(fallback=RACK))
    assert "spec.topologyConstraints.global" == field
    assert "keep one of them" in message


def test_members_of_a_set_share_a_parent():
    expected = (
        "the members of a set share a parent, but these do not:"
        " workers below decode, prefill below the PodGroup"
    )
    field = "spec.topologyConstraints.subGroupSets[0].subGroups"
    assert [(field, expected)] == found(constraints=sets(("workers", "prefill")))


def test_a_subgroup_is_in_one_set():
    assert [
        (
            "spec.topologyConstraints.subGroupSets[1].subGroups[0]",
            "'workers' is in subGroupSets[0] already; one set is allowed",
        )
    ] == found(constraints=sets(("leaders", "workers"), ("workers",)))


def test_a_set_names_subgroups_that_exist_and_is_not_empty():
    prefix = "spec.topologyConstraints.subGroupSets"
    assert [
        (f"{prefix}[0].subGroups[1]", "there is no subgroup 'x'"),
        (f"{prefix}[1].subGroups", "is empty; a set names the subgroups that it holds for"),
    ] == found(constraints=sets(("leaders", "x"), ()))


def test_a_resolved_constraint_names_its_topology_and_labels():
    expected = TopologyConstraint("cluster", "example.com/block", "example.com/rack")
    actual = resolved(TopologyConstraint(required="block", preferred="rack"), [CLUSTER])
    assert expected == actual


def test_a_constraint_stays_as_written_where_it_cannot_be_looked_up():
    assert RACK == resolved(RACK, [])
    assert RACK == resolved(RACK, [CLUSTER, OTHER])
    assert resolved(None, [CLUSTER]) is None


@pytest.mark.parametrize(
    ("levels", "field", "message"),
    [
        ((), "spec.levels", "has 0 levels, but must have 1 to 16"),
        (
            (TopologyLevel("a"), TopologyLevel("a")),
            "spec.levels[1].nodeLabel",
            "'a' names levels[0] already",
        ),
        (
            (TopologyLevel("a", "x"), TopologyLevel("b", "x")),
            "spec.levels[1].alias",
            "'x' names levels[0] already",
        ),
        (
            (TopologyLevel("kubernetes.io/hostname"), TopologyLevel("b")),
            "spec.levels[0].nodeLabel",
            "kubernetes.io/hostname is the narrowest level there is, and must come last",
        ),
    ],
)
def test_what_is_wrong_with_a_topology(levels: tuple[TopologyLevel, ...], field: str, message: str):
    assert [(field, message)] == told(check_gangs(topology(Topology("t", levels))))


def test_a_good_topology_has_no_problems():
    hosts = TopologyLevel("kubernetes.io/hostname", "host")
    assert [] == check_gangs(topology(Topology("t", (*CLUSTER.levels, hosts))))
