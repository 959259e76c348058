"""The choice of flavors: which suit, which are free and how, where a search stops and resumes."""

from __future__ import annotations

import msgspec
import pytest

from bough.core.cycle.cycle import Cycle
from bough.core.cycle.decide_pod_sets import decide
from bough.core.cycle.memo import Memo
from bough.core.cycle.partial_admission import largest_that_fits
from bough.core.cycle.together import line_up
from bough.model.admission_rules import FlavorFungibility, FlavorPreference, FlavorSearch
from bough.model.cluster import Match, Taint, TaintEffect, Toleration
from bough.model.policy import KUEUE
from bough.model.quota import FlavorQuotas, Quota, ResourceGroup
from bough.model.reason import WaitReason
from bough.model.snapshot import Progress
from bough.model.workload import (
    Admission,
    Assignment,
    Flavor,
    PodSet,
    PodTemplate,
    TopologyRequest,
)
from tests.cycle_kueue import (
    admitted,
    cohort,
    cycle,
    evicted,
    flavors,
    group,
    pods,
    queue,
    running,
    snapshot,
    wait,
    waiting,
)

NEXT, STOP = FlavorSearch.TRY_NEXT_FLAVOR, FlavorSearch.MAY_STOP_SEARCH


def test_the_first_flavor_that_fits_is_taken() -> None:
    decided = cycle([queue("q", x=1, y=2, z=2)], waits={"q": [waiting("w", 2)]})
    assert {"gpu": "y"} == flavors(decided, "w")


def test_all_resources_of_a_group_get_one_flavor_and_groups_choose_for_themselves() -> None:
    both = ResourceGroup(
        ("cpu", "gpu"),
        (
            FlavorQuotas("x", {"cpu": Quota(9), "gpu": Quota(1)}),
            FlavorQuotas("y", {"cpu": Quota(9), "gpu": Quota(2)}),
        ),
    )
    workload = waiting("w", pod_sets=(pods(gpu=2, cpu=1, disk=3),))
    decided = cycle([queue("q", groups=(both, group("disk", d=9)))], waits={"q": [workload]})
    assert {"cpu": "y", "disk": "d", "gpu": "y"} == flavors(decided, "w")


def test_later_pod_sets_find_what_earlier_ones_left() -> None:
    sets = (pods(gpu=3), pods(name="second", gpu=3))
    (admit,) = cycle([queue("q", x=4, y=4)], waits={"q": [waiting("w", pod_sets=sets)]}).admits
    assert ["x", "y"] == [each.flavors["gpu"] for each in admit.admission.assignments]


def test_pod_sets_of_one_group_get_the_same_flavor() -> None:
    sets = tuple(
        PodSet(name, 1, PodTemplate({"gpu": 3}), topology=TopologyRequest(group="together"))
        for name in ("leader", "workers")
    )
    (admit,) = cycle([queue("q", x=4, y=6)], waits={"q": [waiting("w", pod_sets=sets)]}).admits
    assert ["y", "y"] == [each.flavors["gpu"] for each in admit.admission.assignments]


def test_a_resource_that_the_queue_does_not_list_is_no_match_unless_nothing_is_asked_of_it() -> (
    None
):
    asks = waiting("w", pod_sets=(pods(gpu=1, disk=1),))
    refused = wait(cycle([queue("q", x=1)], waits={"q": [asks]}), "w")
    assert (WaitReason.FLAVOR, "queue q does not list disk") == (
        refused.reason,
        refused.message,
    )
    nothing = waiting("w", pod_sets=(pods(gpu=1, disk=0),))
    assert {"gpu": "x"} == flavors(cycle([queue("q", x=1)], waits={"q": [nothing]}), "w")


SPOT = Taint("spot", "true", TaintEffect.NO_SCHEDULE)


@pytest.mark.parametrize(
    ("flavor", "template", "suits"),
    [
        (Flavor("x", taints=(SPOT,)), PodTemplate(), False),
        (
            Flavor("x", taints=(SPOT,)),
            PodTemplate(tolerations=(Toleration("spot", "Equal", "true"),)),
            True,
        ),
        (
            Flavor("x", taints=(SPOT,), tolerations=(Toleration("spot", "Exists"),)),
            PodTemplate(),
            True,
        ),
        (
            Flavor("x", taints=(Taint("a", "", TaintEffect.PREFER_NO_SCHEDULE),)),
            PodTemplate(),
            True,
        ),
        (Flavor("x", {"zone": "a"}), PodTemplate(node_selector={"zone": "a"}), True),
        (Flavor("x", {"zone": "a"}), PodTemplate(node_selector={"zone": "b"}), False),
        (Flavor("x", {"zone": "a"}), PodTemplate(node_selector={"else": "b"}), True),
        (
            Flavor("x", {"zone": "a"}),
            PodTemplate(affinity=((Match("zone", "In", ("b",)),), (Match("zone", "In", ("a",)),))),
            True,
        ),
        (
            Flavor("x", {"zone": "a"}),
            PodTemplate(affinity=((Match("zone", "NotIn", ("a",)),),)),
            False,
        ),
        # A term that only speaks of other labels holds for any flavor.
        (
            Flavor("x", {"zone": "a"}),
            PodTemplate(affinity=((Match("zone", "In", ("b",)),), (Match("else", "Exists"),))),
            True,
        ),
        (
            Flavor("x", {"cores": "8"}),
            PodTemplate(affinity=((Match("cores", "Gt", ("7",)),),)),
            True,
        ),
        (
            Flavor("x", {"cores": "8"}),
            PodTemplate(affinity=((Match("cores", "Lt", ("8",)),),)),
            False,
        ),
        (
            Flavor("x", {"cores": "n"}),
            PodTemplate(affinity=((Match("cores", "Gt", ("7",)),),)),
            False,
        ),
        (Flavor("x", {"zone": "a"}, topology="racks"), PodTemplate(), False),
    ],
)
def test_a_flavor_suits_by_taints_and_by_the_labels_that_it_defines(
    flavor, template, suits
) -> None:
    pod_set = PodSet("main", 1, PodTemplate({"gpu": 1}, **_terms(template)))
    decided = cycle(
        [queue("q", x=1)], waits={"q": [waiting("w", pod_sets=(pod_set,))]}, flavors=(flavor,)
    )
    assert suits == bool(decided.admits)
    if not suits:
        assert WaitReason.FLAVOR == wait(decided, "w").reason


def _terms(template: PodTemplate) -> dict[str, object]:
    return {
        "node_selector": template.node_selector,
        "affinity": template.affinity,
        "tolerations": template.tolerations,
    }


def test_a_pod_set_that_asks_for_a_topology_is_refused_where_no_flavor_has_one() -> None:
    pod_set = PodSet("main", 1, PodTemplate({"gpu": 1}), topology=TopologyRequest(required="rack"))
    decided = cycle([queue("q", x=1)], waits={"q": [waiting("w", pod_sets=(pod_set,))]})
    assert "pod set main asks for a topology, which flavor x lacks" == wait(decided, "w").message


def _fungible(borrow=STOP, preempt=NEXT, preference=None, **flavors):
    """A queue with two flavors, of which others can lend more."""
    return queue(
        "q",
        "c",
        within="LowerPriority",
        fungibility=FlavorFungibility(borrow, preempt, preference),
        **flavors,
    )


def test_a_flavor_that_must_borrow_is_good_enough_unless_the_next_is_to_be_tried() -> None:
    spare = [cohort("c", x=5, y=5)]
    stops = cycle([_fungible(x=0, y=2)], spare, waits={"q": [waiting("w", 2)]})
    goes_on = cycle([_fungible(NEXT, x=0, y=2)], spare, waits={"q": [waiting("w", 2)]})
    assert ({"gpu": "x"}, {"gpu": "y"}) == (flavors(stops, "w"), flavors(goes_on, "w"))


def test_where_all_flavors_must_borrow_the_first_is_taken() -> None:
    decided = cycle(
        [_fungible(NEXT, x=0, y=0)], [cohort("c", x=5, y=5)], waits={"q": [waiting("w", 2)]}
    )
    assert {"gpu": "x"} == flavors(decided, "w")


def test_the_flavor_that_borrows_from_nearer_by_is_better() -> None:
    decided = cycle(
        [_fungible(NEXT, x=0, y=0)],
        [cohort("c", "root", x=0, y=5), cohort("root", x=5, y=0)],
        waits={"q": [waiting("w", 2)]},
    )
    assert {"gpu": "y"} == flavors(decided, "w")


def test_a_flavor_that_must_preempt_is_passed_for_one_that_fits_unless_it_is_good_enough() -> None:
    world = {
        "holds": [running("low", "q", 2, flavor="x")],
        "waits": {"q": [waiting("w", 2, priority=1)]},
    }
    goes_on = cycle([_fungible(x=2, y=2)], **world)
    stops = cycle([_fungible(preempt=STOP, x=2, y=2)], **world)
    assert ({"gpu": "y"}, {}) == (flavors(goes_on, "w"), evicted(goes_on))
    assert ([], {"low": "preempt"}) == (admitted(stops), evicted(stops))


def test_borrowing_is_better_than_preempting_unless_the_queue_prefers_otherwise() -> None:
    world = {
        "holds": [running("low", "q", 2, flavor="x")],
        "waits": {"q": [waiting("w", 2, priority=1)]},
    }
    spare = [cohort("c", y=5)]
    borrows = cycle([_fungible(NEXT, NEXT, x=2, y=0)], spare, **world)
    preference = FlavorPreference.PREEMPTION_OVER_BORROWING
    preempts = cycle([_fungible(NEXT, NEXT, preference, x=2, y=0)], spare, **world)
    assert ({"gpu": "y"}, {}) == (flavors(borrows, "w"), evicted(borrows))
    assert ([], {"low": "preempt"}) == (admitted(preempts), evicted(preempts))


def test_reclaiming_from_others_is_better_than_preempting_at_home() -> None:
    own = queue("q", "c", within="LowerPriority", reclaim="Any", x=2, y=2)
    decided = cycle(
        [own, queue("other", "c", x=0, y=0)],
        holds=[running("mine", "q", 2, flavor="x"), running("theirs", "other", 2, flavor="y")],
        waits={"q": [waiting("w", 2, priority=1)]},
    )
    assert {"theirs": "reclaim"} == evicted(decided)


def test_a_flavor_without_candidates_is_worse_than_any_that_can_be_had() -> None:
    preference = FlavorPreference.PREEMPTION_OVER_BORROWING
    decided = cycle(
        [_fungible(NEXT, NEXT, preference, x=2, y=0)],
        [cohort("c", y=5)],
        holds=[running("high", "q", 2, flavor="x", priority=9)],
        waits={"q": [waiting("w", 2)]},
    )
    assert {"gpu": "y"} == flavors(decided, "w")


def test_a_search_that_stopped_goes_on_behind_the_flavor_that_it_tried() -> None:
    world = {
        "holds": [running("high", "q", 2, flavor="x", priority=9)],
        "waits": {"q": [waiting("w", 2, priority=1)]},
    }
    decided = cycle([queue("q", x=2, y=2, z=2)], **world)
    assert {"gpu": "y"} == flavors(decided, "w")
    progress = {"ns/w": Progress(tried={"main": {"gpu": 1}})}
    assert {"gpu": "z"} == flavors(
        cycle([queue("q", x=2, y=2, z=2)], progress=progress, **world), "w"
    )
    at_the_end = {"ns/w": Progress(tried={"main": {"gpu": 2}})}
    again = cycle([queue("q", x=2, y=2, z=2)], progress=at_the_end, **world)
    assert {"gpu": "y"} == flavors(again, "w")


def test_who_is_passed_over_goes_on_behind_the_flavor_that_it_tried() -> None:
    decided = cycle(
        [queue("a", "c", x=0, y=0), queue("b", "c", x=0, y=0)],
        [cohort("c", x=1)],
        waits={"a": [waiting("v")], "b": [waiting("w")]},
    )
    assert ["v"] == admitted(decided)
    assert {"main": {"gpu": 0}} == wait(decided, "w").tried


def test_who_has_flavors_left_to_try_is_not_parked() -> None:
    """It could reclaim the first flavor; but there is no disk, so that would not help."""
    queues = [
        queue(
            "q",
            "c",
            reclaim="Any",
            fungibility=FlavorFungibility(STOP, STOP),
            groups=(group(x=2, y=2), group("disk", d=1)),
        ),
        queue("other", "c", x=0),
    ]
    workload = waiting("w", pod_sets=(pods(gpu=2, disk=1),))
    full = running("full", "q", 0)
    disk = Assignment("main", {"disk": "d"}, {"disk": 1}, 1)
    full = msgspec.structs.replace(full, admission=Admission("q", (disk,)))
    decided = cycle(
        queues, holds=[running("r", "other", 2, flavor="x"), full], waits={"q": [workload]}
    )
    refused = wait(decided, "w")
    assert ({}, False) == (evicted(decided), refused.parked)
    assert {"main": {"gpu": 0}} == refused.tried


def test_the_largest_counts_shrink_all_pod_sets_in_proportion() -> None:
    sets = [pods(10, 4), pods(6, 3), pods(5)]
    asked: list[tuple[int, ...]] = []

    def fits(counts: tuple[int, ...]) -> tuple[int, ...] | None:
        asked.append(counts)
        return counts if sum(counts) <= 16 else None

    assert (6, 4, 5) == largest_that_fits(sets, fits)
    assert len(asked) <= 5


def test_no_counts_are_found_where_even_the_smallest_do_not_fit_or_nothing_may_shrink() -> None:
    assert largest_that_fits([pods(3, 2)], lambda _: None) is None
    assert largest_that_fits([pods(3)], lambda counts: counts) is None


def test_a_good_enough_flavor_ends_the_search_though_an_earlier_one_was_better() -> None:
    decided = cycle(
        [_fungible(NEXT, STOP, x=0, y=2)],
        [cohort("c", x=5)],
        holds=[running("low", "q", 2, flavor="y")],
        waits={"q": [waiting("w", 2, priority=1)]},
    )
    assert ([], {"low": "preempt"}) == (admitted(decided), evicted(decided))


def test_a_flavor_without_candidates_is_worse_than_one_that_borrows_from_further_up() -> None:
    preference = FlavorPreference.PREEMPTION_OVER_BORROWING
    decided = cycle(
        [_fungible(NEXT, NEXT, preference, x=(2, 0), y=0)],
        [cohort("c", "root", x=5), cohort("root", y=5)],
        holds=[running("high", "q", 2, flavor="x", priority=9)],
        waits={"q": [waiting("w", 2)]},
    )
    assert {"gpu": "y"} == flavors(decided, "w")


def test_who_is_evaluated_again_stays_with_its_flavors() -> None:
    """Without the victim of another the first flavor would be free; it was not when it chose."""
    held = Assignment("main", {"gpu": "y", "disk": "d"}, {"gpu": 2, "disk": 1}, 1)
    other = Assignment("second", {"gpu": "x"}, {"gpu": 2}, 1)
    victim = msgspec.structs.replace(running("v", "b", 0), admission=Admission("b", (held, other)))
    queues = [
        queue("a", "c", reclaim="Any", groups=(group("disk", d=1),)),
        queue("b", "c", groups=(group(x=0, y=0), group("disk", d=0))),
        queue("q", "c", reclaim="Any", fungibility=FlavorFungibility(STOP, STOP), x=0, y=2),
    ]
    before = snapshot(
        queues,
        [cohort("c", x=2)],
        holds=[victim],
        waits={
            "a": [waiting("first", priority=1, pod_sets=(pods(disk=1),))],
            "q": [waiting("second", 2)],
        },
    )
    work = Cycle(Memo().refresh(before, KUEUE))
    first, second = line_up(work)
    decide(work, first)
    assert {"main": {"gpu": "y"}} == second.assignment.flavors
    decide(work, second)
    assert {"main": {"gpu": "y"}} == second.assignment.flavors
    assert ["ns/first", "ns/second"] == [*work.outcome.nominations]
