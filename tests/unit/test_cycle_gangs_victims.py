"""Which victims are taken for a gang."""

from __future__ import annotations

from bough.core.cycle.best_victims import MOST_TO_EXCHANGE
from bough.model.cluster import Resources
from bough.model.gang import Gang, Pod
from bough.model.plan import Plan
from tests.cycle_gangs import (
    HIGH,
    LOW,
    NORMAL,
    cluster,
    gang,
    node,
    nominated,
    queue,
    reasons,
    replicas,
)
from tests.deciding import decide
from tests.simulation import replace

#: Preemptible, and above LOW.
MIDDLE = 75


def taken(decided: Plan) -> dict[str, tuple[str, ...]]:
    """Which pods of which gang end; none: the gang as a whole."""
    return {each.workload: each.pods for each in decided.evictions}


def preemptible(made: Gang) -> Gang:
    return replace(made, preemptible=True)


def test_the_surplus_pod_that_is_where_room_is_wanted_is_given_back_not_the_last() -> None:
    world = cluster(
        [node("n1", 2), node("n2", 2)],
        [queue("q0", 4), queue("q1", 0)],
        [
            gang("sweep", "q1", LOW, pods=3, minimum=2, on=("n2", "n1", "n1")),
            gang("new", "q0", gpus=2, at=1),
        ],
    )

    assert {"sweep": ("sweep-0",)} == taken(decide(world))


def test_surplus_of_one_queue_and_a_gang_of_another_are_found_together() -> None:
    world = cluster(
        [node("n0", 1), node("n1", 1), node("n2", 4)],
        [queue("q0", 4), queue("q1", 2), queue("q3", 0)],
        [
            gang("g1", "q1", LOW, pods=3, minimum=1, on=("n2", "n0", "n1")),
            gang("g3", "q3", LOW, gpus=2, on="n2"),
            gang("new", "q0", pods=2, gpus=2, at=1),
        ],
    )

    assert {"g1": ("g1-0",), "g3": ()} == taken(decide(world))


def test_the_lower_priority_ends_though_it_is_older() -> None:
    world = cluster(
        [node("n", 2)],
        [queue("q", 2)],
        [
            gang("low", "q", LOW, on="n"),
            preemptible(gang("mid", "q", MIDDLE, on="n", at=1)),
            gang("new", "q", at=2),
        ],
    )

    assert {"low": ()} == taken(decide(world))


def test_one_gang_ends_rather_than_two_though_these_are_newer() -> None:
    world = cluster(
        [node("n", 2), node("m", 2)],
        [queue("q", 4), queue("r", 0)],
        [
            gang("one", "r", LOW, gpus=2, on="n"),
            gang("two", "r", LOW, on="m", at=1),
            gang("three", "r", LOW, on="m", at=2),
            gang("new", "q", gpus=2, at=3),
        ],
    )

    assert {"one": ()} == taken(decide(world))


def test_any_replica_that_is_not_needed_is_given_back_as_a_whole() -> None:
    sizes = {"r0": 2, "r1": 2, "r2": 2}
    for needs in sizes:
        # Only here is the node large enough for a pod of two GPUs without the replica.
        on = dict.fromkeys(sizes, "small") | {needs: "large"}
        nodes = [node("small", 4), node("large", 2)]
        world = cluster(
            [replace(nodes[0], capacity=replace(nodes[0].capacity, memory_bytes=1)), nodes[1]],
            [queue("q", 2), queue("r", 0)],
            [
                replicas("lws", "r", sizes, needed=2, priority=LOW, on=on),
                gang("new", "q", gpus=2, at=1),
            ],
        )

        assert {"lws": (f"{needs}-1", f"{needs}-0")} == taken(decide(world))


def test_a_gang_with_a_guarantee_gives_back_any_of_its_equal_pods() -> None:
    world = cluster(
        [node("n", 1), node("m", 2)],
        [queue("q", 2), queue("r", 1)],
        [
            gang("firm", "r", HIGH, pods=2, minimum=1, on=("m", "n")),
            gang("new", "q", gpus=2, at=1),
        ],
    )

    assert {"firm": ("firm-0",)} == taken(decide(world))


def test_what_is_guaranteed_does_not_grow_by_what_is_given_back() -> None:
    """Without its first pod, one of two GPUs would be what it needs, and its quota is one."""
    firm = gang("firm", "r", HIGH, pods=2, minimum=1, on=("m", "n"))
    first, last = firm.pods
    firm = replace(firm, pods=(first, _of(last, 2)))
    world = cluster(
        [node("n", 2), node("m", 2)],
        [queue("q", 3), queue("r", 1)],
        [firm, gang("new", "q", gpus=2, at=1)],
    )

    assert {"firm": ("firm-1",)} == taken(decide(world))


def _of(pod: Pod, gpus: int) -> Pod:
    return replace(pod, requests=Resources(gpus=gpus, pods=1))


def test_a_gang_that_could_shrink_to_its_quota_is_not_broken() -> None:
    """Both of its pods are in the way; its queue has quota for one."""
    nodes, queues = [node("n", 2)], [queue("q", 2), queue("r", 1)]
    new = gang("new", "q", gpus=2, at=1)
    elastic = gang("low", "r", LOW, pods=2, minimum=1, on="n")
    rigid = gang("low", "r", LOW, pods=2, on="n")

    assert {"new": "limit"} == reasons(decide(cluster(nodes, queues, [elastic, new], root=0)))
    assert {"low": ()} == taken(decide(cluster(nodes, queues, [rigid, new], root=0)))


def test_on_a_large_cluster_surplus_is_given_back_where_the_gang_would_go() -> None:
    """There are more units than are compared with each other."""
    count = MOST_TO_EXCHANGE // 2
    nodes = [node(f"n{at:03}", 2) for at in range(count)]
    elastic = [
        gang(f"g{at:03}", "r", LOW, pods=2, minimum=1, on=nodes[at].name, at=at)
        for at in range(count - 1)
    ]
    last = gang("last", "r", LOW, pods=2, minimum=1, on=(nodes[-1].name, nodes[-1].name))
    wide = replace(
        last, pods=(last.pods[0], replace(last.pods[1], node="apart")), submitted_ms=count
    )
    world = cluster(
        [*nodes, node("apart", 1)],
        [queue("q", 2), queue("r", 0)],
        [*elastic, wide, gang("new", "q", NORMAL, gpus=2, at=999)],
    )
    decided = decide(world)

    assert {"last": ("last-0",)} == taken(decided)
    assert ["new"] == nominated(decided)
