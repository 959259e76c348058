"""Every example and story of both gang designs, applied as written and decided as designed.

The scenarios have their YAML and what must be decided (tests/scenarios/test_gang_scenarios.py says
how to read them). Here a scheduler decides, and what it decided is read back from the apiserver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bough.kube.failures import KubeRefused
from tests.kubernetes.bed.objects import node
from tests.kubernetes.scheduler.scheduled import Scheduled, member, queue
from tests.kubernetes.waiting import wait_for

FOLDER = Path(__file__).parents[3] / "scenarios"
FILES = sorted(FOLDER.glob("gang-*.yaml"))
Step = dict[str, Any]
#: What a scheduler finds where pods run, failed or ended is for others to say.
OTHER_STATES = {"running", "failed", "succeeded"}


@pytest.fixture(scope="module")
def decided(installed: Scheduled) -> Iterator[Scheduled]:
    """A cluster with a scheduler for all scenarios; PodGroups name no queue there."""
    installed.apply(queue("default-queue"))
    installed.start()
    yield installed
    installed.clear()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_design_is_decided_as_designed(decided: Scheduled, path: Path) -> None:
    scenario = yaml.safe_load(path.read_text())
    judged = 0
    for step in scenario["steps"]:
        placed_beside = "nodes" in step and "running" in step
        if "waiting" in step and (placed_beside or not OTHER_STATES & step.keys()):
            judge_places(decided, scenario["objects"], with_nodes(step))
            judged += 1
        elif step.get("errors"):
            judge_refusal(decided, scenario["objects"], step)
            judged += 1
    assert judged or path.stem == "gang-order", "nothing in it is about a decision"


def with_nodes(step: Step) -> Step:
    """Where nothing is said about nodes there is room for all, and what can start does."""
    if "nodes" in step:
        return step
    starts = step.get("can_start", True)
    placed = step.get("first_choice", step["waiting"]) if starts else {}
    return {**step, "nodes": {"all": {"gpus": 100}}, "placed": placed}


def judge_places(cluster: Scheduled, objects: list[Step], step: Step) -> None:
    where = cluster.namespace()
    for name, each in step["nodes"].items():
        cluster.create(node(name, each["gpus"], **each.get("labels", {})))
    group = prepare(cluster, objects, step["gang"])
    running = make_pods(cluster, where, step, "running", nodeName=step.get("node"))
    waiting = make_pods(cluster, where, step, "waiting")
    if running and waiting:
        # The scheduler hears of pods in their order: who tells of the last one knows what runs.
        leaf, count = list(waiting.items())[-1]
        name = f"{leaf}-waiting{count - 1}"
        wait_for(lambda: is_told_to_wait(cluster, where, name), f"{name} to be seen")
    cluster.create(group, where)
    try:
        if step["placed"]:
            wanted = running + Counter(step["placed"])
            wait_for(lambda: covers(leaves_of(cluster, where), wanted), f"{wanted}")
            check_together(cluster, where, step)
        else:
            # What runs with what it needs is told so, whatever more it wants.
            told = "True" if running else "False"
            wait_for(lambda: condition_of(cluster, where, step["gang"], told), "a decision")
        if running or not step["placed"]:
            assert running + Counter(step["placed"]) == leaves_of(cluster, where)
    finally:
        cluster.clear_objects("Pod", "PodGroup", "Node", "Topology")


def make_pods(cluster: Scheduled, where: str, step: Step, state: str, **more: Any) -> Counter[str]:
    """The pods of a step that are in one state; how many of each leaf."""
    counts = step.get(state, {})
    for leaf, count in counts.items():
        subgroup = "" if leaf == step["gang"] else leaf
        for number in range(count):
            made = member(f"{leaf}-{state}{number}", step["gang"], 1, subgroup, **more)
            del made["metadata"]["labels"]["kai.scheduler/queue"]
            cluster.create(made, where)
    return Counter(counts)


def judge_refusal(cluster: Scheduled, objects: list[Step], step: Step) -> None:
    """Either the definition refuses it, or it waits with the same sentence."""
    where = cluster.namespace()
    group = prepare(cluster, objects, step["gang"])
    try:
        cluster.create(member("a", step["gang"]), where)
        try:
            cluster.create(group, where)
        except KubeRefused as refused:
            if refused.status != 422:
                raise
            return
        told = wait_for(lambda: condition_of(cluster, where, step["gang"], "False"), "an error")
        assert "Invalid" == told["reason"]
        for field, text in step["errors"].items():
            assert field in told["message"]
            assert text in told["message"]
    finally:
        cluster.clear_objects("Pod", "PodGroup", "Node", "Topology")


def prepare(cluster: Scheduled, objects: list[Step], name: str) -> Step:
    """Make what the PodGroup needs; the PodGroup comes last, when all its pods are there."""
    for each in objects:
        if each["kind"] == "Topology":
            cluster.create(each)
    return next(
        each for each in objects if each["kind"] == "PodGroup" and each["metadata"]["name"] == name
    )


def leaves_of(cluster: Scheduled, where: str) -> Counter[str]:
    """How many pods of each leaf have a node."""
    return Counter(name.rpartition("-")[0] for name in cluster.places(where))


def covers(found: Counter[str], wanted: Counter[str]) -> bool:
    return all(found[leaf] >= count for leaf, count in wanted.items())


def check_together(cluster: Scheduled, where: str, step: Step) -> None:
    """All pods of a leaf, or of all leaves below a subgroup, have one value of a label."""
    places = cluster.places(where)
    for name, label in step.get("together", {}).items():
        values = {
            step["nodes"][place]["labels"][label]
            for pod, place in places.items()
            if pod.startswith(name) or name == step["gang"]
        }
        assert 1 == len(values), (name, label, places)


def is_told_to_wait(cluster: Scheduled, where: str, pod: str) -> bool:
    told = cluster.get("Pod", pod, where).get("status", {}).get("conditions", ())
    return ("PodScheduled", "False") in {(each["type"], each["status"]) for each in told}


def condition_of(
    cluster: Scheduled, where: str, name: str, status_told: str
) -> dict[str, Any] | None:
    """What a PodGroup says of whether it has what it needs."""
    status = cluster.get("PodGroup", name, where).get("status", {})
    for each in status.get("conditions", ()):
        if (each["type"], each["status"]) == ("Scheduled", status_told):
            return each
    return None
