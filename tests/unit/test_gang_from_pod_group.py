from __future__ import annotations

import pytest

from bough.core.gang.from_pod_group import gang_of_one, normalise
from bough.core.quota.fair_tree import queue_obstacle
from bough.model.cluster import Topology, TopologyLevel
from bough.model.fair_queue import FairQueue
from bough.model.gang import Gang, Pod, SubGroup, SubGroupSet, TopologyConstraint
from bough.model.pod_group import (
    MemberPod,
    PodGroup,
    Preemptibility,
    PriorityClass,
    SubGroupSetSpec,
    SubGroupSpec,
    TopologyConstraints,
)

BLOCK = TopologyConstraint(required="block")
RACK = TopologyConstraint(required="rack")
ROW = TopologyConstraint(required="row")
SUBGROUPS = (
    SubGroupSpec("decode"),
    SubGroupSpec("leaders", "decode", 1),
    SubGroupSpec("workers", "decode", 4),
    SubGroupSpec("prefill", None, 2),
)


def minimums(pod_group: PodGroup) -> list[int | None]:
    gang = normalise(pod_group, ())
    return [gang.minimum, *(subgroup.minimum for subgroup in gang.subgroups)]


def constrained(constraints: TopologyConstraints) -> Gang:
    return normalise(PodGroup("pg", subgroups=SUBGROUPS, constraints=constraints), ())


def test_the_newer_form_is_taken_as_it_is():
    subgroups = (SubGroupSpec("a", min_sub_group=1), SubGroupSpec("b", "a", min_member=4))
    assert [1, 1, 4] == minimums(PodGroup("pg", min_sub_group=1, subgroups=subgroups))


def test_an_older_min_member_above_leaves_counts_children():
    subgroups = [SubGroupSpec(f"replica-{index}", min_member=3) for index in range(3)]
    assert [2, 3, 3, 3] == minimums(PodGroup("pg", min_member=2, subgroups=tuple(subgroups)))


def test_the_oldest_form_needs_all_children():
    subgroups = [SubGroupSpec(f"prefill-{index}", min_member=8) for index in range(2)]
    assert [None, 8, 8] == minimums(PodGroup("pg", min_member=16, subgroups=tuple(subgroups)))


def test_a_leaf_that_does_not_say_needs_one_pod():
    assert [1] == minimums(PodGroup("pg"))
    assert [None, 1] == minimums(PodGroup("pg", subgroups=(SubGroupSpec("a"),)))


def test_a_zero_beside_min_sub_group_means_nothing():
    subgroups = (SubGroupSpec("a", min_member=1), SubGroupSpec("b", min_member=1))
    assert [1, 1, 1] == minimums(PodGroup("pg", min_member=0, min_sub_group=1, subgroups=subgroups))


def test_parents_are_looked_up_and_names_kept():
    subgroups = (SubGroupSpec("a"), SubGroupSpec("b", "A", 1))
    gang = normalise(PodGroup("pg", "team", "queue", subgroups=subgroups), ())
    assert ("team/pg", "queue") == (gang.name, gang.queue)
    assert (SubGroup("a", None, None), SubGroup("b", "a", 1)) == gang.subgroups


def test_a_constraint_nests_where_it_stands():
    subgroups = (SubGroupSpec("a", None, 1, constraint=RACK),)
    gang = normalise(PodGroup("pg", subgroups=subgroups, constraint=BLOCK), ())
    assert (BLOCK, RACK) == (gang.constraint, gang.subgroups[0].constraint)


def test_a_named_constraint_goes_to_its_subgroup_and_a_set_stays_a_set():
    gang = constrained(
        TopologyConstraints(
            subgroups={"workers": RACK}, sets=(SubGroupSetSpec(("leaders", "workers"), BLOCK),)
        )
    )
    assert [None, None, RACK, None] == [each.constraint for each in gang.subgroups]
    assert (SubGroupSet(("leaders", "workers"), BLOCK),) == gang.sets


def test_a_global_constraint_alone_holds_for_the_whole_gang():
    gang = constrained(TopologyConstraints(fallback=ROW))
    assert (ROW, ()) == (gang.constraint, gang.sets)
    plain = PodGroup("pg", constraints=TopologyConstraints(fallback=ROW))
    assert ROW == normalise(plain, ()).constraint


def test_a_global_constraint_holds_together_what_nothing_specific_is_said_about():
    gang = constrained(TopologyConstraints(fallback=ROW, subgroups={"workers": RACK}))
    assert gang.constraint is None
    assert (SubGroupSet(("leaders", "prefill"), ROW),) == gang.sets


def test_a_global_constraint_does_not_reach_below_a_specific_one():
    gang = constrained(TopologyConstraints(fallback=ROW, subgroups={"decode": RACK}))
    assert (SubGroupSet(("prefill",), ROW),) == gang.sets
    everything = {"decode": RACK, "prefill": RACK}
    assert () == constrained(TopologyConstraints(fallback=ROW, subgroups=everything)).sets


def test_a_global_constraint_does_not_hold_for_the_members_of_a_set():
    members = SubGroupSetSpec(("leaders", "workers"), BLOCK)
    gang = constrained(TopologyConstraints(fallback=ROW, sets=(members,)))
    assert (
        SubGroupSet(("leaders", "workers"), BLOCK),
        SubGroupSet(("prefill",), ROW),
    ) == gang.sets


def test_levels_are_looked_up_where_topologies_are_known():
    topology = Topology("t", (TopologyLevel("example.com/rack", "rack"),))
    constraints = TopologyConstraints(
        subgroups={"prefill": RACK}, sets=(SubGroupSetSpec(("leaders",), RACK),)
    )
    pod_group = PodGroup("pg", subgroups=SUBGROUPS, constraint=RACK, constraints=constraints)
    gang = normalise(pod_group, (), [topology])
    expected = TopologyConstraint("t", "example.com/rack")
    assert (expected, expected, expected) == (
        gang.constraint,
        gang.subgroups[3].constraint,
        gang.sets[0].constraint,
    )


def test_the_default_subgroup_is_the_gang_itself():
    gang = normalise(PodGroup("pg"), [Pod("a", "default"), Pod("b")])
    assert [None, None] == [pod.subgroup for pod in gang.pods]
    named = normalise(PodGroup("pg", subgroups=SUBGROUPS), [Pod("a", "default")])
    assert ["default"] == [pod.subgroup for pod in named.pods]


def test_a_pod_on_its_own_is_a_gang_of_one():
    member = MemberPod(
        Pod("lonely", subgroup="whatever"), None, "team", priority_class="build", created_ms=7
    )
    expected = Gang(
        name="lonely",
        queue="team",
        pods=(Pod("lonely"),),
        minimum=1,
        priority=100,
        submitted_ms=7,
        namespace="default",
    )
    assert expected == gang_of_one(member)


@pytest.mark.parametrize(
    ("name", "said", "expected"),
    [
        (None, None, (60, True)),
        ("unheard-of", None, (60, True)),
        ("train", None, (50, True)),
        ("build", None, (101, False)),
        ("inference", Preemptibility.PREEMPTIBLE, (125, True)),
        ("train", Preemptibility.NON_PREEMPTIBLE, (50, False)),
    ],
)
def test_a_priority_is_looked_up_and_says_who_is_preemptible(
    name: str | None, said: Preemptibility | None, expected: tuple[int, bool]
):
    classes = [PriorityClass("build", 101), PriorityClass("team", 60, default=True)]
    pod_group = PodGroup("pg", priority_class=name, preemptibility=said, created_ms=9)
    gang = normalise(pod_group, (), (), classes)
    assert (*expected, 9) == (gang.priority, gang.preemptible, gang.submitted_ms)


def test_the_default_priority_is_that_of_training():
    gang = normalise(PodGroup("pg"), ())
    assert (50, True) == (gang.priority, gang.preemptible)


def test_a_gang_goes_to_an_existing_leaf_queue():
    names = [("top", None), ("team", "top"), ("lost", "gone"), ("child", "lost")]
    queues = {name: FairQueue(name, parent) for name, parent in names}
    assert queue_obstacle("team", queues) is None
    sentences = {
        "": "it names no queue",
        "what": "queue 'what' does not exist",
        "top": "queue 'top' is not a leaf; gangs go to the queues below it: team",
        "child": "queue 'child' is stopped: the queue 'gone' above it does not exist",
    }
    for name, sentence in sentences.items():
        obstacle = queue_obstacle(name, queues)
        assert obstacle is not None
        assert (name, sentence) == (obstacle.queue, obstacle.sentence)


def test_a_queue_below_a_cycle_takes_no_gangs():
    queues = {
        name: FairQueue(name, parent) for name, parent in (("a", "b"), ("b", "a"), ("leaf", "a"))
    }
    obstacle = queue_obstacle("leaf", queues)
    assert obstacle is not None
    assert "queue 'leaf' is stopped: a cycle above it, a, b" == obstacle.sentence
