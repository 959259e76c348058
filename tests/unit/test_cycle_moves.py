"""Running gangs are moved so that another one fits."""

from __future__ import annotations

from bough.core.cycle.plan import plan
from bough.model.gang import PodState
from bough.model.plan import EvictionRule, Plan
from bough.model.policy import KAI_FAIR, OSMO
from bough.model.snapshot import Progress, Snapshot
from tests.cycle_gangs import LOW, cluster, gang, node, queue
from tests.simulation import Simulation, replace


def decide(snapshot: Snapshot, **rules: object) -> Plan:
    return plan(snapshot, replace(KAI_FAIR, gangs=replace(KAI_FAIR.gangs, **rules)))


def moved(decided: Plan) -> dict[str, dict[str, str]]:
    """Where pods of gangs that are moved go."""
    names = {each.workload for each in decided.evictions if each.rule is EvictionRule.MOVE}
    return {each.workload: each.pods for each in decided.nominations if each.workload in names}


def waits_for(decided: Plan) -> dict[str, tuple[str, ...]]:
    return {each.workload: each.waits_for for each in decided.nominations}


def scattered() -> Snapshot:
    """Two nodes with a free GPU each, and a gang that needs both on one node."""
    return cluster(
        [node("m", 2), node("n", 2)],
        [queue("a", 4)],
        [
            gang("old", "a", LOW, on="m"),
            gang("young", "a", LOW, on="n", at=1),
            gang("new", "a", LOW, gpus=2, at=2),
        ],
    )


def test_the_newest_is_moved_so_that_another_fits() -> None:
    decided = decide(scattered())

    assert {"young": {"young-0": "m"}} == moved(decided)
    assert {"young": ("young",), "new": ("young",)} == waits_for(decided)


def test_nothing_is_moved_where_that_is_switched_off() -> None:
    assert {} == moved(decide(scattered(), consolidation=0))


def test_nothing_is_moved_for_what_fits_as_things_are() -> None:
    world = cluster(
        [node("m", 2), node("n", 2)],
        [queue("a", 4)],
        [gang("has", "a", LOW, on="m"), gang("new", "a", LOW, gpus=2, at=1)],
    )

    decided = decide(world)

    assert ({}, ["new-0"]) == (moved(decided), [each.pod for each in decided.binds])


def test_a_gang_whose_node_is_gone_is_not_lifted() -> None:
    """It is told to be running still, but there is no place that it could leave."""
    world = cluster(
        [node("m", 2), node("n", 2)],
        [queue("a", 4)],
        [gang("lost", "a", LOW, on="gone"), gang("new", "a", LOW, gpus=2, at=1)],
    )

    assert {"new"} == waits_for(decide(world, allocate=False)).keys()


def crowded_beside_idle(*waiting: str) -> Snapshot:
    """A full node, an empty one, and gangs that wait for one GPU each."""
    return cluster(
        [node("full", 2), node("idle", 4)],
        [queue("a", 6)],
        [
            gang("old", "a", LOW, on="full"),
            gang("young", "a", LOW, on="full", at=1),
            *(gang(name, "a", LOW, at=2 + at) for at, name in enumerate(waiting)),
        ],
    )


def test_what_is_moved_already_is_lifted_again_before_anything_else_is() -> None:
    """Where idle room is not given away, all that starts has another lifted."""
    decided = decide(crowded_beside_idle("new", "next"), allocate=False)

    assert {"new", "next", "young"} == waits_for(decided).keys()
    assert {"young": {"young-0": "idle"}} == moved(decided)


def test_a_gang_that_stays_after_all_is_waited_for_by_none() -> None:
    """The first has surplus moved out of the way; the second goes where that was to go."""

    def world(*waiting: str) -> Snapshot:
        return cluster(
            [node("home", 4), node("other", 2), node("x", 2), node("y", 2)],
            [queue("a", 10)],
            [
                gang("has", "a", LOW, pods=2, minimum=1, gpus=2, on=("other", "home")),
                *(gang(name, "a", LOW, gpus=2, at=1 + at) for at, name in enumerate(waiting)),
            ],
        )

    one, two = decide(world("p"), allocate=False), decide(world("p", "q"), allocate=False)

    assert {"has": {"has-1": "y"}} == moved(one)
    assert ({}, ()) == (moved(two), two.evictions)
    assert {"p": (), "q": ()} == waits_for(two)


def test_what_moves_keeps_its_quota_until_it_runs_again() -> None:
    world = scattered()
    world = replace(world, nodes=(*world.nodes, node("o", 1)))
    story = Simulation(world, KAI_FAIR)
    first = story.step()
    story.submit(gang("late", "a", LOW, at=3))

    second = story.step()

    assert first.evictions
    assert moved(first) == {name: places for name, places in nominated(second) if name == "young"}
    assert () == second.binds


def nominated(decided: Plan) -> list[tuple[str, dict[str, str]]]:
    return [(each.workload, each.pods) for each in decided.nominations]


def test_growth_that_was_promised_to_a_gang_with_an_ending_pod_is_decided_anew() -> None:
    """It is no move: another gang, which needs the room to start, comes before it."""
    has = gang("has", "a", pods=3, minimum=1, on=("m", "m"))
    going = replace(has.pods[1], state=PodState.RELEASING)
    has = replace(has, pods=(has.pods[0], going, has.pods[2]))
    world = cluster([node("m", 3)], [queue("a", 2)], [has, gang("new", "a", at=1)], root=0)
    world = replace(world, progress={"has": Progress(nominated=True, places={"has-2": "m"})})

    decided = plan(world, OSMO)

    assert [("new", {"new-0": "m"})] == nominated(decided)


def test_a_gang_that_has_what_it_was_promised_grows_after_those_that_have_not() -> None:
    """One was promised a pod, another two GPUs; with its next pod the first would leave one."""
    world = cluster(
        [node("m", 4), node("n", 4)],
        [queue("a", 4), queue("b", 4)],
        [
            gang("grows", "a", LOW, pods=4, minimum=1, on=("m", "m")),
            gang("old", "b", LOW, pods=3, on=("n", "n", "m")),
            gang("first", "b", LOW, pods=2, at=1),
        ],
    )
    promised = {
        "grows": Progress(nominated=True, places={"grows-2": "m"}),
        "first": Progress(nominated=True, places={"first-0": "n", "first-1": "n"}),
    }

    decided = decide(replace(world, progress=promised))

    assert {"grows-2", "first-0", "first-1"} == {each.pod for each in decided.binds}
