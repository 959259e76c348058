"""The cycle over gangs, decision by decision."""

from __future__ import annotations

from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan
from bough.model.gang import Gang, PodState
from bough.model.policy import OSMO
from bough.model.snapshot import Progress, Snapshot
from tests.cycle_gangs import (
    HIGH,
    LOW,
    RACK,
    cluster,
    evicted,
    gang,
    node,
    nominated,
    queue,
    reasons,
)
from tests.deciding import decide
from tests.simulation import Simulation, replace, started

# The line


def test_high_goes_before_normal_and_the_older_before_the_younger() -> None:
    gangs = [gang("n1", "q"), gang("n2", "q", at=1), gang("h1", "q", HIGH, at=2)]

    assert ["h1", "n1"] == started(decide(cluster([node("n", 2)], [queue("q", 2)], gangs)))


def test_of_two_submitted_at_once_the_name_decides() -> None:
    gangs = [gang("b", "q"), gang("a", "q")]

    assert ["a"] == started(decide(cluster([node("n", 1)], [queue("q", 1)], gangs)))


def test_no_gang_passes_one_that_waits_for_quota_also_where_the_queue_is_the_whole_tree() -> None:
    world = cluster(
        [node("n", 4)],
        [queue("q", 3, None)],
        [gang("run", "q", on="n"), gang("large", "q", pods=3), gang("small", "q", at=1)],
    )

    assert {"large": "quota", "small": "behind"} == reasons(decide(world))


def test_no_gang_waits_behind_one_that_no_node_is_large_enough_for() -> None:
    """It has no quota now, and would have no place when it had; others would wait for nothing."""
    nodes = [node("n", 2), node("m", 2)]
    running, small = gang("run", "q", on="n"), gang("small", "q", at=1)
    for large, expected in (
        (gang("large", "q", gpus=4), {"large": "place"}),
        (gang("large", "q", pods=4), {"large": "quota", "small": "behind"}),
        (gang("large", "q", pods=2, gpus=2), {"large": "quota", "small": "behind"}),
    ):
        decided = decide(cluster(nodes, [queue("q", 4)], [running, large, small]))
        assert expected == reasons(decided)


def test_a_running_gang_that_lacks_a_pod_is_completed_whatever_waits_before_it() -> None:
    world = cluster(
        [node("n", 3)],
        [queue("q", 3)],
        [gang("broken", "q", pods=3, on=("n", "n"), at=5), gang("first", "q", HIGH, pods=2)],
    )

    decided = decide(world)

    assert ["broken"] == started(decided)
    assert {"first": "quota"} == reasons(decided)


def test_a_gang_without_pods_and_one_whose_pods_are_gated_wait_for_pods() -> None:
    gated = gang("gated", "q")
    world = cluster(
        [node("n", 3)],
        [queue("q", 3)],
        [
            replace(gated, pods=tuple(replace(p, state=PodState.GATED) for p in gated.pods)),
            replace(gang("none", "q"), pods=()),
        ],
    )

    assert {"gated": "pods", "none": "pods"} == reasons(decide(world))


# Reservations


def fragmented(*more: Gang) -> Snapshot:
    """Two racks of 4 GPUs, each half full; a gang of 3 in one rack has quota and no place."""
    return cluster(
        [node("n1", 4, "x"), node("n2", 4, "y")],
        [queue("a", 4), queue("b", 4)],
        [
            gang("long", "b", pods=2, on="n1", started=1),
            gang("short", "b", pods=2, on="n2", started=2),
            gang("wide", "a", pods=3, constraint=RACK, at=1),
            *more,
        ],
    )


def test_who_lacks_a_place_keeps_its_quota_and_what_it_will_need_of_what_is_free() -> None:
    """It will be on n1 when `long` has ended, and needs 1 of the 2 GPUs that are free there."""
    later = [gang(f"one{at}", "a", at=2 + at) for at in range(2)]

    decided = decide(fragmented(*later))

    assert ["one0"] == started(decided)
    assert {"wide": "place", "one1": "quota"} == reasons(decided)


def test_a_later_gang_of_another_queue_does_not_take_the_room_that_is_kept() -> None:
    snapshot = replace(
        fragmented(gang("pair", "c", pods=2, constraint=RACK, at=9)),
    )
    snapshot = replace(
        snapshot,
        queues=(*snapshot.queues, queue("c", 2)),
        gangs={
            **snapshot.gangs,
            "c": (gang("pair", "c", pods=2, constraint=RACK, at=9),),
        },
    )

    decided = decide(snapshot)

    assert ["pair"] == started(decided)
    assert {"n2"} == {bind.node for bind in decided.binds}


def test_without_reservations_the_room_is_taken() -> None:
    later = [gang(f"one{at}", "a", at=2 + at) for at in range(2)]

    decided = decide(fragmented(*later), reservations=0)

    assert ["one0", "one1"] == started(decided)


def test_low_uses_what_is_kept_and_gives_it_back() -> None:
    simulation = Simulation(fragmented(*(gang(f"low{at}", "b", LOW, at=9 + at) for at in range(4))))
    first = simulation.step()
    assert 4 == len(started(first))
    simulation.end("long")

    decided = simulation.step()

    assert ["wide"] == nominated(decided)
    assert 1 == len(evicted(decided))


def test_room_is_kept_also_on_a_cluster_that_low_fills() -> None:
    """What may be evicted is no reason to lose one's turn: the quota is there without it."""
    lows = [gang(f"low{at}", "b", LOW, on=f"n{1 + at % 2}", at=at) for at in range(4)]
    later = [gang(f"one{at}", "a", at=20 + at) for at in range(2)]

    decided = decide(fragmented(*lows, gang("blocks", "b", at=9), *later))

    assert {"wide": "limit", "blocks": "quota", "one1": "quota"} == reasons(decided)
    assert ["one0"] == nominated(decided)


def test_a_gang_is_not_starved_by_a_stream_of_smaller_ones() -> None:
    """Small ones come and go for ever; the wide one gets its rack when the first has ended."""
    simulation = Simulation(fragmented())
    for number in range(6):
        simulation.submit(gang(f"small{number}", "a", at=10 + number))
        simulation.submit(gang(f"other{number}", "b", at=10 + number))
        simulation.step()
        if number == 2:
            simulation.end("long")
        for name in [name for name in simulation.running if name[:5] in {"small", "other"}]:
            simulation.end(name)
        simulation.tick()

    assert "wide" in simulation.running


def test_who_fits_on_no_node_at_all_keeps_nothing() -> None:
    world = cluster(
        [node("n", 4, "x")],
        [queue("q", 8)],
        [gang("run", "q", on="n"), gang("huge", "q", gpus=5), gang("small", "q", pods=3, at=1)],
        root=0,
    )

    decided = decide(world)

    assert ["small"] == started(decided)
    assert {"huge": "place"} == reasons(decided)


# Nominations


def test_who_was_promised_room_goes_first() -> None:
    """HIGH comes while the victim of NORMAL is ending: it does not take the room."""
    ending = gang("low", "q", LOW, on="n")
    ending = replace(
        ending, pods=tuple(replace(pod, state=PodState.RELEASING) for pod in ending.pods)
    )
    world = cluster(
        [node("n", 1)],
        [queue("q", 1)],
        [ending, gang("normal", "q", at=1), gang("high", "q", HIGH, at=2)],
    )
    promised = replace(world, progress={"normal": Progress(nominated=True)})

    assert ["normal"] == nominated(decide(promised))
    assert ["high"] == nominated(decide(world))


def test_a_promise_is_news_for_a_memo() -> None:
    memo = Memo()
    world = cluster(
        [node("n", 1)], [queue("q", 1)], [gang("normal", "q", at=1), gang("high", "q", HIGH, at=2)]
    )
    promised = replace(world, progress={"normal": Progress(nominated=True)})

    assert ["high"] == started(plan(world, OSMO, memo))
    assert ["normal"] == started(plan(promised, OSMO, memo))
    assert ["high"] == started(plan(world, OSMO, memo))


def test_who_waits_for_room_says_for_whose_end_as_long_as_it_waits() -> None:
    simulation = Simulation(
        cluster(
            [node("n", 2)],
            [queue("a", 2), queue("b", 0)],
            [
                gang("low1", "b", LOW, on="n"),
                gang("low2", "b", LOW, on="n", at=1),
                gang("want", "a", pods=2, at=2),
            ],
        )
    )

    waits_for = []
    for ended in (["low1"], ["low2"], []):
        waits_for += [each.waits_for for each in simulation.step().nominations]
        simulation.end_evicted(ended)

    assert [("low1", "low2"), ("low2",)] == waits_for
