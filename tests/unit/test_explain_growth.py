"""What elastic gangs that run still want, and why they cannot have it."""

from __future__ import annotations

import msgspec

from bough.core.explain.growth import explain_growth
from bough.model.gang import PodState, SubGroup, TopologyConstraint
from bough.model.gang_rules import GangRules
from bough.model.policy import OSMO
from tests.worlds_explain import gang, world


def test_a_gang_that_has_all_its_pods_wants_nothing():
    assert explain_growth(world(gang("old", 2, on="n0 n0")), OSMO, "old") is None


def test_a_gang_that_waits_is_not_asked_about_growth():
    assert explain_growth(world(gang("new", 9)), OSMO, "new") is None
    assert explain_growth(world(), OSMO, "nothing") is None


def test_a_gang_that_cannot_grow_for_lack_of_gpus_says_so():
    elastic = gang("elastic", 6, on="n0 n0", minimum=2)
    full = gang("full", 6, on="n0 n0 n1 n1 n1 n1", queue="blue", preemptible=True)

    found = explain_growth(world(elastic, full), OSMO, "elastic")

    assert found is not None
    assert (2, 4, "limit") == (found.has, found.wants, found.reason)
    assert (
        "it has 2 of 6 pods and wants 4 more: the next needs 1 any/gpu and 0 are left of all that "
        "cohort root has"
    ) == found.sentence


def test_a_gang_at_the_limit_of_its_queue_says_so():
    elastic = gang("elastic", 4, on="n0 n0", minimum=2)

    found = explain_growth(world(elastic, red=2, red_limit=0), OSMO, "elastic")

    assert found is not None
    assert found.certificate is not None
    assert "limit" == found.reason
    assert "queue red" == str(found.certificate.refusal and found.certificate.refusal.node)


def test_what_the_plan_starts_is_not_wanted_any_more():
    elastic = gang("elastic", 6, on="n0 n0", minimum=2)

    found = explain_growth(world(elastic, red=2, red_limit=2), OSMO, "elastic")

    assert found is not None
    assert (4, 2) == (found.has, found.wants)


def test_growth_that_must_stay_in_its_rack_says_that():
    rack = TopologyConstraint("wires", "rack")
    elastic = gang("elastic", 6, on="n0 n0", minimum=2, constraint=rack)

    found = explain_growth(world(elastic), OSMO, "elastic")

    assert found is not None
    assert (4, 2, "place") == (found.has, found.wants, found.reason)
    assert "rack" in found.sentence


def test_where_growth_may_not_borrow_its_quota_is_the_reason():
    elastic = gang("elastic", 6, on="n0 n0", minimum=2)
    policy = msgspec.structs.replace(OSMO, gangs=GangRules(growth_borrows=False))

    found = explain_growth(world(elastic, red=2), policy, "elastic")

    assert found is not None
    assert (2, 4, "quota") == (found.has, found.wants, found.reason)


def test_a_replica_that_does_not_fit_is_what_a_gang_of_subgroups_wants():
    both = (SubGroup("x", minimum=2), SubGroup("y", minimum=2))
    whole = gang("elastic", 4, on="n0 n0", minimum=1, subgroups=both, gpus=2)
    pods = tuple(
        msgspec.structs.replace(pod, subgroup="x" if at < 2 else "y")
        for at, pod in enumerate(whole.pods)
    )
    full = gang("full", 3, on="n1 n1 n1", queue="blue")

    found = explain_growth(world(msgspec.structs.replace(whole, pods=pods), full), OSMO, "elastic")

    assert found is not None
    assert (2, 2, "limit") == (found.has, found.wants, found.reason)
    assert "the next needs 4 any/gpu and 1 is left" in found.sentence


def test_a_gang_that_was_told_to_shrink_says_for_what_it_waits():
    elastic = gang("elastic", 4, on="n0 n0 n0 n0", minimum=2, queue="blue")
    other = gang("other", 4, on="n1 n1 n1 n1", queue="blue")
    snapshot = world(elastic, other, gang("new", 2), red=4, blue=4)

    found = explain_growth(snapshot, OSMO, "elastic")

    assert found is not None
    assert (2, 2, "limit") == (found.has, found.wants, found.reason)


def test_a_pod_that_is_ending_already_is_not_wanted_again():
    elastic = gang("elastic", 3, on="n0 n0 n0", minimum=2)
    ending = msgspec.structs.replace(elastic.pods[2], state=PodState.RELEASING)
    elastic = msgspec.structs.replace(elastic, pods=(*elastic.pods[:2], ending))

    assert explain_growth(world(elastic), OSMO, "elastic") is None
