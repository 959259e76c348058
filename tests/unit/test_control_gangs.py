"""What is left of a group when some of its tasks have ended."""

from __future__ import annotations

from bough.control.gangs_of_groups import remaining
from bough.model.gang import SubGroup, SubGroupSet, TopologyConstraint
from bough.model.workflow import GroupSpec, TaskSpec


def tasks(*names: str) -> tuple[TaskSpec, ...]:
    """Tasks by name; what stands before a dot is the subgroup."""
    return tuple(TaskSpec(each, subgroup=each.partition(".")[0] or None) for each in names)


def names(spec: GroupSpec) -> list[str]:
    return [task.name for task in spec.tasks]


def test_a_group_needs_less_by_what_has_ended():
    spec = GroupSpec("g", tasks(".a", ".b", ".c", ".d"), minimum=3)

    assert ([".b", ".d"], 1) == (
        names(remaining(spec, {".a", ".c"})),
        remaining(spec, {".a", ".c"}).minimum,
    )
    assert 1 == remaining(spec, {".a", ".b", ".c"}).minimum


def test_a_group_that_needs_all_needs_all_that_are_left():
    spec = GroupSpec("g", tasks(".a", ".b"))

    assert None is remaining(spec, {".a"}).minimum


def test_a_subgroup_needs_less_by_what_has_ended_in_it():
    spec = GroupSpec(
        "g",
        tasks("x.1", "x.2", "x.3", "y.1", "y.2"),
        subgroups=(SubGroup("x", minimum=3), SubGroup("y", minimum=2)),
    )

    left = remaining(spec, {"x.1", "y.2"})

    assert [("x", 2), ("y", 1)] == [(each.name, each.minimum) for each in left.subgroups]
    assert None is left.minimum


def test_what_has_ended_as_a_whole_is_not_needed_any_more():
    spec = GroupSpec(
        "g",
        tasks("x.1", "y.1", "z.1"),
        minimum=2,
        subgroups=(
            SubGroup("top", minimum=2),
            SubGroup("x", "top"),
            SubGroup("y", "top"),
            SubGroup("z"),
        ),
        sets=(
            SubGroupSet(("x", "y"), TopologyConstraint(required="rack")),
            SubGroupSet(("y", "z"), TopologyConstraint(required="rack")),
        ),
    )

    one_over = remaining(spec, {"x.1"})
    assert [("top", 1), ("y", None), ("z", None)] == [
        (each.name, each.minimum) for each in one_over.subgroups
    ]
    assert (2, [("y", "z")]) == (one_over.minimum, [each.members for each in one_over.sets])
    branch_over = remaining(spec, {"x.1", "y.1"})
    assert (1, ["z"]) == (branch_over.minimum, [each.name for each in branch_over.subgroups])
