"""What would help: each remedy by itself, its least amount, and the bound on plans."""

from __future__ import annotations

import msgspec
import pytest

from bough.core.explain.change import apply_remedy
from bough.core.explain.judge import Judge
from bough.core.explain.remedies import remedies
from bough.core.explain.sentences import say_remedy
from bough.model.admission import AdmissionRules, StopPolicy
from bough.model.certificate import Raise, Remedies, Remedy, RemedyKind
from bough.model.gang import SubGroup
from bough.model.policy import KUEUE, OSMO, Policy
from bough.model.quota import Cohort, NodeKind, TreeNode
from bough.model.snapshot import Snapshot
from bough.model.workload import Flavor
from tests.worlds_explain import GPU, RED, gang, held, kueue_world, quota, workload, world


def found(snapshot: Snapshot, name: str = "new", policy: Policy = OSMO) -> dict[RemedyKind, Remedy]:
    """The first remedy of each kind; each of them works."""
    result = remedies(snapshot, policy, name)
    judge = Judge(snapshot, policy, name)
    assert not judge.starts(snapshot)
    for remedy in result.found:
        assert judge.starts(apply_remedy(snapshot, name, remedy)), say_remedy(remedy)
    assert not result.given_up
    return {remedy.kind: remedy for remedy in reversed(result.found)}


def test_who_does_not_wait_needs_no_remedy():
    assert Remedies(plans=1) == remedies(world(gang("new", 1)), OSMO, "new")
    assert Remedies() == remedies(world(gang("old", 1)), OSMO, "new")


def test_the_cheapest_remedy_comes_first():
    old = gang("old", 3, on="n0 n0 n0")

    kinds = [each.kind for each in remedies(world(old, gang("new", 2)), OSMO, "new").found]

    assert [
        RemedyKind.WAIT,
        RemedyKind.RUN_AS_LOW,
        RemedyKind.SMALLER_MINIMUM,
        RemedyKind.RAISE_QUOTA,
    ] == kinds


def test_waiting_names_one_workload_whose_end_is_enough():
    older = gang("older", 1, on="n0", started_ms=1)
    large = gang("large", 3, on="n0 n0 n0", started_ms=2)

    assert ("large",) == found(world(older, large, gang("new", 3)))[RemedyKind.WAIT].ends


def test_waiting_names_several_of_whom_none_is_superfluous_in_the_order_they_have_run():
    ones = [gang(f"one-{at}", 1, on="n0", started_ms=9 - at) for at in range(4)]
    other = gang("other", 2, on="n1 n1", queue="blue", started_ms=0)

    remedy = found(world(*ones, other, gang("new", 2)))[RemedyKind.WAIT]

    assert ("one-3", "one-2") == remedy.ends
    assert "wait until one-3 and one-2 have ended" == say_remedy(remedy)


def test_who_would_not_start_even_if_all_ended_is_not_told_to_wait():
    assert RemedyKind.WAIT not in found(world(gang("old", 1, on="n0"), gang("new", 5)))


def test_the_largest_minimum_that_works_is_told():
    old = gang("old", 1, on="n0")

    remedy = found(world(old, gang("new", 4)))[RemedyKind.SMALLER_MINIMUM]

    assert (None, 4, 3) == (remedy.subgroup, remedy.before, remedy.minimum)
    assert "lower the minimum from 4 to 3" == say_remedy(remedy)


def test_the_minimum_of_one_subgroup_may_be_what_is_lowered():
    subgroups = (SubGroup("x", minimum=3), SubGroup("y", minimum=1))
    new = gang("new", 4, minimum=2)
    pods = tuple(
        msgspec.structs.replace(pod, subgroup="x" if at < 3 else "y")
        for at, pod in enumerate(new.pods)
    )
    new = msgspec.structs.replace(new, pods=pods, subgroups=subgroups)

    result = remedies(world(gang("old", 1, on="n0"), new), OSMO, "new")

    lowered = [each for each in result.found if each.kind is RemedyKind.SMALLER_MINIMUM]
    assert [(None, 2, 1), ("x", 3, 2)] == [
        (each.subgroup, each.before, each.minimum) for each in lowered
    ]


def test_pods_that_choose_their_nodes_may_be_told_to_take_any():
    old = gang("old", 4, on="n0 n0 n0 n0", queue="blue")

    remedies_of = found(world(old, gang("new", 2, selector={"rack": "r0"})))

    assert RemedyKind.OTHER_FLAVOR in remedies_of
    assert RemedyKind.OTHER_FLAVOR not in found(world(old, gang("new", 5)))


def test_quota_is_raised_by_what_is_lacking_and_comes_from_above():
    snapshot = world(gang("old", 3, on="n0 n0 n0"), gang("new", 3), red=4, blue=1)

    remedy = found(snapshot)[RemedyKind.RAISE_QUOTA]

    assert (Raise(RED, GPU, 2),) == remedy.raises
    assert "raise the quota of queue red by 2 any/gpu" == say_remedy(remedy)
    changed = apply_remedy(snapshot, "new", remedy)
    assert quota(1) == changed.cohorts[0].resource_groups


def test_every_node_on_the_way_that_lacks_quota_is_raised():
    team = TreeNode(NodeKind.COHORT, "team")
    snapshot = world(gang("new", 3), red=2, blue=1)
    red = msgspec.structs.replace(snapshot.queues[0], cohort="team")
    cohorts = (*snapshot.cohorts, Cohort("team", "root", quota(0)))

    remedy = found(
        msgspec.structs.replace(snapshot, cohorts=cohorts, queues=(red, snapshot.queues[1]))
    )[RemedyKind.RAISE_QUOTA]

    assert (Raise(RED, GPU, 1), Raise(team, GPU, 1)) == remedy.raises


def test_who_is_behind_another_needs_quota_for_both():
    old = gang("old", 4, on="n0 n0 n0 n0")
    snapshot = world(old, gang("first", 2), gang("new", 1, submitted_ms=1), blue=0)

    assert (Raise(RED, GPU, 3),) == found(snapshot)[RemedyKind.RAISE_QUOTA].raises


def test_a_limit_is_raised_by_what_is_lacking():
    old = gang("old", 5, on="n0 n0 n0 n0 n1", preemptible=True)
    snapshot = world(old, gang("new", 3, preemptible=True), red_limit=2)

    remedy = found(snapshot)[RemedyKind.RAISE_LIMIT]

    assert (Raise(RED, GPU, 2),) == remedy.raises
    assert "raise the borrowing limit of queue red by 2 any/gpu" == say_remedy(remedy)


def test_capacity_that_is_not_there_is_not_raised():
    low = gang("low", 4, on="n0 n0 n0 n0", preemptible=True)
    more = gang("more", 4, on="n1 n1 n1 n1", preemptible=True)

    kinds = set(found(world(low, more, gang("new", 1, preemptible=True))))

    assert {RemedyKind.WAIT} == kinds


def test_a_cycle_is_broken_at_one_cohort():
    tangled = (Cohort("root", "above"), Cohort("above", "root"))

    remedy = found(world(gang("new", 1), cohorts=tangled))[RemedyKind.UNTANGLE]

    assert TreeNode(NodeKind.COHORT, "above") == remedy.node
    assert "take cohort above out of the cycle: it must have no parent" == say_remedy(remedy)


def test_a_search_that_was_cut_short_says_so_and_still_works():
    ones = [gang(f"one-{at}", 1, on="n0", started_ms=at) for at in range(4)]
    snapshot = world(*ones, gang("new", 4))

    result = remedies(snapshot, OSMO, "new", most_plans=2)

    assert RemedyKind.WAIT in result.given_up
    wait = result.found[0]
    assert (RemedyKind.WAIT, False) == (wait.kind, wait.exact)
    assert Judge(snapshot, OSMO, "new").starts(apply_remedy(snapshot, "new", wait))


# In the form of Kueue


def test_a_workload_may_wait_be_smaller_or_get_more_quota():
    old = held(workload("old", 4), "red")
    snapshot = kueue_world({"red": (workload("new", 1, pods=3),)}, {"red": (old,)})

    remedies_of = found(snapshot, "ns/new", KUEUE)

    assert ("ns/old",) == remedies_of[RemedyKind.WAIT].ends
    smaller = remedies_of[RemedyKind.SMALLER_MINIMUM]
    assert ("main", 3, 2) == (smaller.subgroup, smaller.before, smaller.minimum)
    assert (Raise(RED, GPU, 1),) == remedies_of[RemedyKind.RAISE_QUOTA].raises
    assert (Raise(RED, GPU, 1),) == remedies_of[RemedyKind.RAISE_LIMIT].raises
    assert RemedyKind.RUN_AS_LOW not in remedies_of


def test_a_workload_of_a_stopped_queue_is_helped_by_opening_it():
    rules = AdmissionRules(stop=StopPolicy.HOLD)

    remedies_of = found(kueue_world({"red": (workload("new", 1),)}, rules=rules), "ns/new", KUEUE)

    assert {RemedyKind.RESUME: Remedy(RemedyKind.RESUME, node=RED)} == remedies_of


def test_a_workload_that_asks_for_another_flavor_is_told_which_it_would_get():
    flavor = Flavor("any", {"type": "a100"})
    new = workload("new", 1, selector={"type": "h100"})

    remedies_of = found(kueue_world({"red": (new,)}, flavors=(flavor,)), "ns/new", KUEUE)

    assert {RemedyKind.OTHER_FLAVOR: Remedy(RemedyKind.OTHER_FLAVOR, flavors=("any",))} == (
        remedies_of
    )


@pytest.mark.parametrize("names", [("a",), ("a", "b"), tuple("abcde"), tuple("abcdefgh")])
def test_a_sentence_names_a_few_and_counts_the_rest(names: tuple[str, ...]):
    sentence = say_remedy(Remedy(RemedyKind.WAIT, names))

    assert all(name in sentence for name in names[:3])
    assert ("others" in sentence) == (len(names) > 4)
