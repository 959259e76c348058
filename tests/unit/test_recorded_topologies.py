"""How recorded questions about topologies are read and answered; the cases themselves are small."""

from __future__ import annotations

from typing import Any

from conformance.__main__ import answer


def node(name: str, rack: str | None, gpus: int, ending: int = 0) -> dict[str, Any]:
    labels = {} if rack is None else dict(zip(("zone", "rack"), rack.split("."), strict=True))
    return {
        "name": name,
        "labels": labels,
        "idle": {"gpu": gpus, "cpu_millis": 64_000, "memory_bytes": 1 << 40, "pods": 110},
        "releasing": {"gpu": ending, "cpu_millis": 0, "memory_bytes": 0},
    }


NODES = [
    node("n0", "a.x", 2),
    node("n1", "a.y", 1, ending=2),
    node("n2", "b.x", 4),
    node("n3", None, 8),
]


def out(nodes: list[dict[str, Any]], pods: int, active: str = "", **levels: str) -> dict[str, Any]:
    """What is answered for pods with one GPU each; `active` is a node where one runs."""
    wish = {"topology": "wires", "required_level": "", "preferred_level": ""}
    given = {
        "nodes": nodes,
        "topologies": [{"name": "wires", "levels": ["zone", "rack"]}],
        "constraint": wish | {f"{name}_level": level for name, level in levels.items()},
        "tasks": [
            {"name": f"job-{at}", "gpu": 1, "cpu_millis": 1_000, "memory_bytes": 1 << 30}
            for at in range(pods)
        ],
        "active_pods": [{"name": "job-9", "node": active}] if active else [],
        "subgroup": "",
    }
    return answer("unit_topology_subset_nodes", {"id": "one", "in": given})["actual"]["out"]


def test_room_that_is_being_freed_counts_and_the_tightest_domain_comes_first() -> None:
    # Zone b has less room than zone a, so that its rack comes first, and so does the zone itself.
    expected = [["n2"], ["n1"], ["n2"], ["n0", "n1"]]
    assert expected == out(NODES, 3, required="zone", preferred="rack")["node_sets"]


def test_domains_with_most_room_are_worth_most() -> None:
    scores = out(NODES, 3, required="zone", preferred="rack")["node_scores"]
    assert {"n2": 30_000, "n0": 60_000, "n1": 100_000} == scores


def test_a_node_that_is_overdrawn_has_nothing_to_give() -> None:
    nodes = [node("n0", "a.x", -1), node("n1", "a.x", 2)]
    assert [["n0", "n1"]] == out(nodes, 2, required="rack")["node_sets"]
    assert [] == out(nodes, 3, required="rack")["node_sets"]


def test_what_is_short_is_told_in_the_recorded_words() -> None:
    said = out(NODES[:2], 4, required="rack")["fit_errors"]
    assert [
        "<a.y>: node-group a.y can allocate only 3 of 4 required pods",
        "<a.x>: node-group a.x can allocate only 2 of 4 required pods",
        "topology wires, requirement rack couldn't be satisfied for job </job>",
    ] == said
    (said,) = out(NODES[:2], 6, required="rack")["fit_errors"]
    assert said.endswith("for job </job>: not enough resources in a to allocate the job")


def test_pods_that_run_decide_the_domain_also_where_it_is_none() -> None:
    assert [["n0"]] == out(NODES, 1, active="n0", required="rack")["node_sets"]
    assert [] == out(NODES, 1, active="n3", required="rack")["node_sets"]


def test_a_level_that_there_is_not_is_an_error() -> None:
    said = out(NODES, 1, required="rock")
    assert [] == said["node_sets"]
    assert "'rock' as the required topology constraint level" in said["error"]
