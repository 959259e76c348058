from __future__ import annotations

import pytest

from bough.model.pod_group import PodGroup, SubGroupSpec
from tests.checked import ERROR, WARNING, Told, check_gangs, member, pod_group, told

#: Levels of subgroups.
MAX_DEPTH = 64


def found(*subgroups: SubGroupSpec, severity: str = ERROR, **fields: object) -> Told:
    """The fields and messages of what is wrong with a PodGroup."""
    group = PodGroup("pg", subgroups=subgroups, **fields)  # type: ignore[arg-type]
    return told(check_gangs(pod_group(group)), severity)


def leaf(name: str, parent: str | None = None, pods: int | None = 1) -> SubGroupSpec:
    return SubGroupSpec(name, parent, min_member=pods)


def inner(name: str, children: int | None, parent: str | None = None) -> SubGroupSpec:
    return SubGroupSpec(name, parent, min_sub_group=children)


def test_a_plain_pod_group_has_no_problems():
    assert [] == check_gangs(pod_group(PodGroup("pg", min_member=4)))
    assert [] == check_gangs(pod_group(PodGroup("pg")))


def test_the_newer_form_has_no_problems():
    subgroups = (inner("decode", 2), leaf("leaders", "decode"), leaf("workers", "decode", 4))
    group = PodGroup("pg", min_sub_group=1, subgroups=subgroups)
    assert [] == check_gangs(pod_group(group))


def test_a_pod_group_is_named_in_its_problems():
    problems = check_gangs(pod_group(PodGroup("pg", namespace="team", min_member=0)))
    assert ["PodGroup/team/pg"] == [problem.subject for problem in problems]


def test_names_are_unique():
    expected = [("spec.subGroups[2].name", "'a' is the name of subGroups[0], too")]
    assert expected == found(leaf("a"), leaf("b"), leaf("a"))


@pytest.mark.parametrize("name", ["-a", "a b", "a/b", "x" * 64])
def test_a_name_that_no_label_can_hold_is_refused(name: str):
    ((field, message),) = found(leaf(name))
    assert "spec.subGroups[0].name" == field
    assert "cannot be the value of a label" in message


@pytest.mark.parametrize("name", ["Decode", "a.b", "a_b"])
def test_a_name_that_newer_servers_refuse_is_a_warning(name: str):
    ((field, message),) = found(leaf(name), severity=WARNING)
    assert ("spec.subGroups[0].name", True) == (field, "RFC 1123" in message)
    assert [] == found(leaf(name))


def test_a_parent_must_exist():
    expected = [("spec.subGroups[1].parent", "there is no subgroup 'x'")]
    assert expected == found(leaf("a"), leaf("b", "x"))


def test_a_parent_in_capitals_is_found_in_lower_case():
    subgroups = (inner("decode", 1), leaf("workers", "Decode"))
    assert [] == found(*subgroups)
    expected = [("spec.subGroups[1].parent", "'Decode' is read as 'decode'")]
    assert expected == found(*subgroups, severity=WARNING)


def test_every_cycle_is_named_once():
    subgroups = [leaf("a", "c"), leaf("b", "a"), leaf("c", "b"), leaf("d", "d"), leaf("e", "a")]
    assert [
        ("spec.subGroups[0].parent", "is in a cycle: a → c → b → a"),
        ("spec.subGroups[3].parent", "is in a cycle: d → d"),
    ] == found(*subgroups)


def test_nesting_has_a_limit_that_is_said_once():
    chain = [inner("s0", 1)]
    chain += [inner(f"s{depth}", 1, f"s{depth - 1}") for depth in range(1, MAX_DEPTH + 2)]
    chain.append(leaf("end", f"s{MAX_DEPTH + 1}"))
    expected = f"is nested too deep; at most {MAX_DEPTH} levels are allowed"
    assert [(f"spec.subGroups[{MAX_DEPTH}].parent", expected)] == found(*chain)


def test_nesting_is_measured_whatever_the_order_of_the_spec():
    chain = [inner(f"s{depth}", 1, f"s{depth - 1}") for depth in range(1, MAX_DEPTH)]
    subgroups = [leaf("end", f"s{MAX_DEPTH - 1}"), *reversed(chain), inner("s0", 1)]
    expected = f"is nested too deep; at most {MAX_DEPTH} levels are allowed"
    assert [("spec.subGroups[0].parent", expected)] == found(*subgroups)


def test_a_long_chain_of_parents_is_walked_in_linear_time():
    chain = [inner(f"s{depth}", 1, f"s{depth - 1}" if depth else None) for depth in range(2_000)]
    assert 2 == len(found(*chain))


def test_both_minimums_of_a_pod_group_exclude_each_other():
    subgroups = [leaf(name, pods=8) for name in "abc"]
    ((field, message),) = found(*subgroups, min_member=24, min_sub_group=3)
    assert "spec.minMember" == field
    assert message.startswith("minMember (24) and minSubGroup (3) cannot be used together")


def test_a_min_member_of_zero_beside_min_sub_group_counts_as_unset():
    assert [] == found(leaf("a"), min_member=0, min_sub_group=1)


def test_both_minimums_of_a_subgroup_exclude_each_other():
    both = SubGroupSpec("a", min_member=1, min_sub_group=1)
    ((field, message),) = found(both, leaf("b", "a"))
    assert "spec.subGroups[0].minMember" == field
    assert "cannot be used together" in message


def test_min_sub_group_is_not_above_the_number_of_children():
    expected = [("spec.minSubGroup", "is 5, but there are only 4 child subgroups")]
    assert expected == found(*(leaf(name) for name in "abcd"), min_sub_group=5)
    below = [("spec.subGroups[0].minSubGroup", "is 2, but there is only 1 child subgroup")]
    assert below == found(inner("a", 2), leaf("b", "a"))


@pytest.mark.parametrize("value", [0, -1])
def test_min_sub_group_is_greater_than_zero(value: int):
    message = f"is {value}, but must be greater than 0; leave it out to need all"
    assert [("spec.minSubGroup", message)] == found(leaf("a"), min_sub_group=value)


def test_a_leaf_has_no_min_sub_group():
    expected = "counts child subgroups, but 'a' has none; use minMember to count pods"
    assert [("spec.subGroups[0].minSubGroup", expected)] == found(inner("a", 1), min_sub_group=1)


def test_a_pod_group_without_subgroups_has_no_min_sub_group():
    expected = "counts child subgroups, but the PodGroup has none; use minMember to count pods"
    assert [("spec.minSubGroup", expected)] == found(min_sub_group=1)


def test_a_leaf_of_the_newer_form_says_how_many_pods_it_needs():
    expected = "is missing; a leaf says how many of its pods it needs"
    assert [("spec.subGroups[0].minMember", expected)] == found(
        leaf("a", pods=None), min_sub_group=1
    )


@pytest.mark.parametrize("newer", [True, False])
def test_min_member_is_greater_than_zero(newer: bool):
    fields = {"min_sub_group": 1} if newer else {}
    expected = [("spec.subGroups[0].minMember", "is 0, but must be greater than 0")]
    assert expected == found(leaf("a", pods=0), **fields)


def test_a_plain_pod_group_needs_more_than_zero_pods():
    assert [("spec.minMember", "is 0, but must be greater than 0")] == found(min_member=0)


def test_above_leaves_the_newer_form_has_no_min_member():
    subgroups = (leaf("a", pods=1), leaf("b", "a"), inner("c", 1), leaf("d", "c"))
    errors = found(*subgroups, min_member=1)
    assert ["spec.minMember", "spec.subGroups[0].minMember"] == [field for field, _ in errors]
    assert all("minMember is for leaves only" in message for _, message in errors)


def test_an_older_min_member_counts_children_and_says_so():
    subgroups = (leaf("a", pods=1), leaf("b", "a", 4))
    assert [] == found(*subgroups, min_member=1)
    warnings = found(*subgroups, min_member=1, severity=WARNING)
    assert [
        ("spec.minMember", "counts the 1 child subgroup, an older form; write minSubGroup: 1"),
        (
            "spec.subGroups[0].minMember",
            "counts the 1 child subgroup, an older form; write minSubGroup: 1",
        ),
    ] == [(field, message.removesuffix(" instead")) for field, message in warnings]


def test_an_older_min_member_of_a_subgroup_is_not_above_its_children():
    ((field, message),) = found(leaf("parent", pods=2), leaf("child", "parent"))
    assert "spec.subGroups[0].minMember" == field
    assert message.startswith("is 2, but there is only 1 child subgroup")


def test_the_oldest_form_counts_pods_and_is_accepted_up_to_the_leaves_needs():
    replicas = [leaf(f"prefill-{index}", pods=8) for index in range(4)]
    assert [] == found(*replicas, min_member=32)
    ((field, message),) = found(*replicas, min_member=32, severity=WARNING)
    assert "spec.minMember" == field
    assert "taken to count pods, the oldest form, and all subgroups are needed" in message
    ((field, message),) = found(*replicas, min_member=33)
    assert "spec.minMember" == field
    assert message.endswith("the leaves need no more than 32 pods")


def test_an_older_leaf_without_min_member_needs_one_pod():
    expected = [("spec.subGroups[0].minMember", "is missing; one pod is taken to be enough")]
    assert expected == found(leaf("a", pods=None), severity=WARNING)


def test_all_errors_are_reported_at_once():
    errors = found(
        leaf("a", "nowhere"), leaf("a"), inner("b", 3), leaf("c", "b", 0), min_sub_group=9
    )
    assert [
        "spec.subGroups[1].name",
        "spec.subGroups[0].parent",
        "spec.minSubGroup",
        "spec.subGroups[2].minSubGroup",
        "spec.subGroups[3].minMember",
    ] == [field for field, _ in errors]


@pytest.mark.parametrize(
    ("subgroup", "expected"),
    [
        (None, "is missing: PodGroup pg has subgroups, and each pod names one of b"),
        ("a", "'a' has subgroups of its own; a pod names a leaf, one of b"),
        ("x", "PodGroup pg has no subgroup 'x'; its leaves are b"),
    ],
)
def test_a_pod_names_a_leaf(subgroup: str | None, expected: str):
    group = PodGroup("pg", subgroups=(leaf("a"), leaf("b", "a")))
    pods = (member("good", "pg", "b"), member("bad", "pg", subgroup))
    problems = [each for each in check_gangs(pod_group(group), *pods) if each.severity == ERROR]
    field = 'metadata.labels["kai.scheduler/subgroup-name"]'
    assert [(field, expected)] == told(problems)
    assert ["Pod/bad"] == [problem.subject for problem in problems]


def test_pods_of_a_plain_pod_group_name_no_subgroup_or_the_default_one():
    pods = (member("a", "pg"), member("b", "pg", "default"), member("c", "pg", "other"))
    problems = check_gangs(pod_group(PodGroup("pg")), *pods)
    assert ["names the subgroup 'other', but PodGroup pg has no subgroups"] == [
        problem.message for problem in problems
    ]


def test_a_pod_waits_for_a_pod_group_that_does_not_exist():
    pods = [member("a", "there"), member("b", "gone"), member("c", None)]
    expected = [
        (
            'metadata.annotations["pod-group-name"]',
            "there is no PodGroup 'gone'; the pod waits for it",
        )
    ]
    assert expected == told(check_gangs(pod_group(PodGroup("there")), *pods), WARNING)
