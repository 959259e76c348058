"""How the gang of a group is made up, in the three ways in which it can be written."""

from __future__ import annotations

from typing import Any

import pytest

from bough.control.gangs_of_groups import needed_gpus
from bough.control.workflows.specs import read_spec
from bough.errors import Invalid
from bough.model.gang import SubGroup, TopologyConstraint
from bough.model.workflow import GroupSpec

RACK = TopologyConstraint(required="rack")


def group(fields: str, resources: str = "default: {gpu: 1}") -> GroupSpec:
    text = f"workflow: {{name: x, resources: {{{resources}}}, groups: [{{name: g, {fields}}}]}}"
    return read_spec(text).groups[0]


def complaint(fields: str, resources: str = "default: {gpu: 1}") -> str:
    with pytest.raises(Invalid) as caught:
        group(fields, resources)
    return "\n".join(caught.value.details)


def leaves(spec: GroupSpec) -> dict[str | None, list[str]]:
    found: dict[str | None, list[str]] = {}
    for task in spec.tasks:
        found.setdefault(task.subgroup, []).append(task.name)
    return found


# Elastic groups


def test_a_group_that_says_nothing_needs_all_of_its_tasks():
    spec = group("tasks: [{name: a, lead: true}, {name: b}]")

    assert (None, (), 2) == (spec.minimum, spec.subgroups, needed_gpus(spec))
    assert (None, 2) == (group("minMember: 2, tasks: [{name: a, replicas: 2}]").minimum, 2)


def test_of_an_elastic_group_the_lead_and_so_many_others_are_needed():
    spec = group("minMember: 3, tasks: [{name: a}, {name: b, lead: true}, {name: c, replicas: 3}]")

    assert (SubGroup("lead", None, 1), SubGroup("others", None, 2)) == spec.subgroups
    assert {"lead": ["b"], "others": ["a", "c-0", "c-1", "c-2"]} == leaves(spec)
    assert (None, 3, 5) == (spec.minimum, needed_gpus(spec), spec.gpus)


def test_one_of_many_that_are_alike_is_enough_as_the_lead_comes_first():
    spec = group("tasks: [{name: w, replicas: {min: 1, max: 4}}]")

    assert (1, (), 1) == (spec.minimum, spec.subgroups, needed_gpus(spec))


def test_one_of_many_that_are_not_alike_could_be_another_than_the_lead():
    found = complaint(
        "minMember: 1, tasks: [{name: a, lead: true}, {name: b, resource: large}]",
        "default: {gpu: 1}, large: {gpu: 2}",
    )

    assert (
        "workflow.groups[0].minMember: is 1, so that the group could run without its lead a"
        in found
    )


def test_a_range_counts_for_itself():
    spec = group("tasks: [{name: m, lead: true}, {name: w, replicas: {min: 2, max: 5}}, {name: v}]")

    assert (SubGroup("fixed", None, 2), SubGroup("w", None, 2)) == spec.subgroups
    assert {"fixed": ["m", "v"], "w": ["w-0", "w-1", "w-2", "w-3", "w-4"]} == leaves(spec)
    assert (4, 7) == (needed_gpus(spec), spec.gpus)


def test_a_lead_with_a_range_is_its_first():
    spec = group(
        "tasks: [{name: m, lead: true, replicas: {min: 2, max: 3}}, {name: fixed, replicas: 2}]"
    )

    assert {"fixed": ["fixed-0", "fixed-1"], "m-lead": ["m-0"], "m-others": ["m-1", "m-2"]} == dict(
        sorted(leaves(spec).items())
    )
    assert SubGroup("m", None, None) in spec.subgroups
    assert 4 == needed_gpus(spec)


# The words of PodGroups

REPLICAS = (
    "minSubGroup: 2, subGroups: [{name: main}, {name: all, minSubGroup: 1},"
    " {name: r1, parent: all, topologyConstraint: {requiredTopologyLevel: rack}},"
    " {name: r2, parent: all}], tasks: [{name: m, lead: true, subGroup: main},"
    " {name: a, subGroup: r1, replicas: 2}, {name: b, subGroup: r2, replicas: 3}]"
)


def test_subgroups_without_a_number_need_all_of_their_tasks():
    spec = group(REPLICAS)

    assert 2 == spec.minimum
    assert (
        SubGroup("main", None, 1),
        SubGroup("all", None, 1),
        SubGroup("r1", "all", 2, RACK),
        SubGroup("r2", "all", 3),
    ) == spec.subgroups
    assert 3 == needed_gpus(spec)


def test_an_elastic_subgroup_with_the_lead_is_divided():
    spec = group(
        "subGroups: [{name: a, minMember: 2}, {name: a-lead, minMember: 1}], tasks: [{name: m,"
        " lead: true, subGroup: a}, {name: w, subGroup: a, replicas: 3}, {name: x, subGroup:"
        " a-lead}]"
    )

    assert {"a-lead-2": ["m"], "a-others": ["w-0", "w-1", "w-2"], "a-lead": ["x"]} == leaves(spec)
    assert SubGroup("a-lead-2", "a", 1) in spec.subgroups
    assert SubGroup("a-others", "a", 1) in spec.subgroups


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (REPLICAS.replace("minSubGroup: 2", "minSubGroup: 1"),
         "tasks[0].subGroup: the lead m is in 'main', one of 2 subgroups of which 1 are enough"),
        (REPLICAS.replace("subGroup: r1", "subGroup: all"),
         "tasks[1].subGroup: 'all' has subgroups of its own"),
        (REPLICAS.replace(", subGroup: r1", ""), "tasks[1].subGroup: is missing"),
        (REPLICAS.replace("minSubGroup: 2", "minSubGroup: 3"), "is 3, but there are only 2"),
        (REPLICAS.replace("parent: all}", "parent: nobody}"), "there is no subgroup 'nobody'"),
        (REPLICAS.replace("{name: r2, parent: all}", "{name: r2, parent: all, minMember: 4}"),
         "subGroups[3].minMember: is 4, but there are 3 tasks"),
        (REPLICAS.replace("{name: main}", "{name: main}, {name: empty}"),
         "subGroups[1]: no task is in the subgroup 'empty'"),
        ("minMember: 3, tasks: [{name: a, replicas: 2}]", "minMember: is 3, but there are 2 tasks"),
        ("minMember: 2, tasks: [{name: a}]", "minMember: is 2, but there is 1 task"),
        ("subGroups: [" + "{name: s}, " * 2_001 + "], tasks: [{name: a, subGroup: s}]",
         "subGroups: are 2001; at most 2000 are possible"),
        ("minMember: 0, tasks: [{name: a}]", "minMember: is 0, but must be greater than 0"),
        ("minSubGroup: 1, tasks: [{name: a}]", "minSubGroup: counts child subgroups, but"),
        ("minMember: 1, minSubGroup: 1, subGroups: [{name: s}], tasks: [{name: a, subGroup: s}]",
         "cannot be used together"),
        ("minMember: 2, tasks: [{name: a, replicas: {min: 1, max: 2}}]",
         "replicas: are a range, and the group says itself how many it needs"),
        ("subGroups: [{name: s}, {name: s}], tasks: [{name: a, subGroup: s}]",
         "'s' is the name of subGroups[0], too"),
    ],
)  # fmt: skip
def test_a_gang_that_cannot_be_is_refused_where_it_stands(fields: str, message: str):
    assert message in complaint(fields)


def test_the_older_form_is_read_with_a_warning():
    text = (
        "workflow: {name: x, groups: [{name: g, minMember: 1, subGroups: [{name: s, minMember: 1}],"
        " tasks: [{name: a, subGroup: s}]}]}"
    )
    (warning,) = read_spec(text).warnings

    assert warning.startswith("workflow.groups[0].minMember: counts the 1 child subgroup, an older")


def test_a_lead_as_deep_as_possible_cannot_be_divided():
    chain = "{name: s0}, " + ", ".join(f"{{name: s{n}, parent: s{n - 1}}}" for n in range(1, 64))
    fields = f"subGroups: [{chain}], tasks: [{{name: a, replicas: 3, subGroup: s63}}]"

    assert 64 == len(group(fields).subgroups)
    fields = fields.replace("{name: s63, ", "{name: s63, minMember: 2, ")
    assert "is nested too deep for a lead" in complaint(fields)


# Topologies of resources


def resources(**levels: str) -> str:
    return ", ".join(f"{name}: {{topology: [{each}]}}" for name, each in levels.items())


def test_levels_that_all_share_are_one_constraint():
    tasks = "tasks: [{name: a, lead: true}, {name: b}]"
    for levels, constraint in {
        "{key: rack}": RACK,
        "{key: zone}, {key: rack}": RACK,
        "{key: zone}, {key: rack, requirementType: preferred}": TopologyConstraint(
            required="zone", preferred="rack"
        ),
        "{key: zone, requirementType: preferred}, {key: rack}": RACK,
        "{key: zone, requirementType: preferred}": TopologyConstraint(preferred="zone"),
    }.items():
        spec = group(tasks, resources(default=levels))
        assert (constraint, (), None) == (spec.constraint, spec.subgroups, spec.minimum)


def test_tasks_with_the_same_domain_are_together():
    spec = group(
        "tasks: [{name: a, lead: true}, {name: b, resource: two}, {name: c, resource: three,"
        " replicas: 2}]",
        resources(
            default="{key: zone, group: z}, {key: rack, group: r1}",
            two="{key: zone, group: z}, {key: rack, group: r_2}",
            three="{key: zone, group: z}, {key: rack, group: r_2}",
        ),
    )

    assert TopologyConstraint(required="zone") == spec.constraint
    assert (SubGroup("r1", None, 1, RACK), SubGroup("r-2", None, 3, RACK)) == spec.subgroups
    assert {"r1": ["a"], "r-2": ["b", "c-0", "c-1"]} == leaves(spec)
    assert ("zone", "rack") == spec.levels


def test_domains_nest():
    spec = group(
        "tasks: [{name: a, lead: true}, {name: b, resource: two}, {name: c, resource: three}]",
        resources(
            default="{key: zone, group: x}, {key: rack, group: r}",
            two="{key: zone, group: x}, {key: rack, group: s}",
            three="{key: zone, group: y}, {key: rack, group: r}",
        ),
    )

    assert None is spec.constraint
    assert (
        SubGroup("x", None, None, TopologyConstraint(required="zone")),
        SubGroup("x-r", "x", 1, RACK),
        SubGroup("x-s", "x", 1, RACK),
        SubGroup("y", None, 1, RACK),
    ) == spec.subgroups


@pytest.mark.parametrize(
    ("fields", "asked", "message"),
    [
        ("tasks: [{name: a, lead: true}, {name: b, resource: two}]",
         resources(default="{key: rack}", two="{key: zone}"), "the same topology keys, or none"),
        ("tasks: [{name: a, lead: true}, {name: b, resource: two}]",
         resources(default="{key: rack}", two="{key: rack, requirementType: preferred}"),
         "must all have it required, or all preferred"),
        ("tasks: [{name: a}]", resources(default="{key: rack}, {key: rack}"), "stands here twice"),
        ("tasks: [{name: a}]", resources(default="{key: rack, requirementType: maybe}"),
         "one of required, preferred"),
        ("minMember: 1, tasks: [{name: a, lead: true}, {name: b, resource: two}]",
         resources(default="{key: rack, group: a}", two="{key: rack, group: b}"),
         "minMember: counts tasks, but the topology"),
        ("tasks: [{name: a, lead: true}, {name: b, resource: two, replicas: {min: 1, max: 2}}]",
         resources(default="{key: rack, group: a}", two="{key: rack, group: b}"),
         "replicas: are a range, but the topology"),
        ("topologyConstraint: {requiredTopologyLevel: rack}, tasks: [{name: a}]",
         resources(default="{key: rack}"), "cannot be used together"),
    ],
)  # fmt: skip
def test_what_a_topology_cannot_say_is_refused(fields: str, asked: str, message: str):
    assert message in complaint(fields, asked)


def test_an_elastic_group_may_share_a_domain():
    spec: Any = group(
        "tasks: [{name: w, replicas: {min: 2, max: 4}}]",
        "default: {gpu: 1, topology: [{key: rack}]}",
    )

    assert (RACK, 2) == (spec.constraint, needed_gpus(spec))


def test_an_elastic_group_may_say_itself_that_it_is_together():
    spec = group(
        "topologyConstraint: {requiredTopologyLevel: rack},"
        " tasks: [{name: m, lead: true}, {name: w, replicas: {min: 2, max: 4}}]"
    )

    assert (RACK, 3, {"fixed", "w"}) == (spec.constraint, needed_gpus(spec), set(leaves(spec)))
