"""Every scenarios/gang-*.yaml holds as it is written.

A step names a PodGroup and a situation: `running`, `waiting`, `failed` and `succeeded` say for
each leaf (or for the PodGroup itself) how many pods are so; `node` is where those are that run;
`nodes` says which nodes there are, with `gpus` and `labels`. Every pod wants one GPU. All other
fields say what must then be so; a field that is not there is not checked.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bough.core.gang.release import next_unit
from bough.core.gang.tree import GangTree
from bough.core.place.placer import Placer
from bough.core.place.result import GangPlacement
from bough.formats.yaml.fields import Fields
from bough.model.cluster import Node, Resources
from bough.model.gang import Gang, Pod, PodState
from bough.model.problem import Severity
from bough.tools.gang import describe
from bough.tools.load_gangs import Gangs, gather
from tests.scenario_file import read_scenario

FILES = sorted((Path(__file__).parents[2] / "scenarios").glob("gang-*.yaml"))
#: The words of a step for the states of pods.
STATES = {
    "running": PodState.RUNNING,
    "waiting": PodState.PENDING,
    "failed": PodState.FAILED,
    "succeeded": PodState.SUCCEEDED,
}
ONE_GPU = Resources(gpus=1, pods=1)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_gang_scenario(path: Path) -> None:
    scenario = read_scenario(str(path))
    found = gather(scenario.objects)

    for step in scenario.steps:
        take(found, step)

    assert [] == scenario.finish()


def test_the_stories_and_examples_of_both_designs_are_all_there() -> None:
    designs = {read_scenario(str(path)).design for path in FILES}
    stories = {f"hierarchical PodGroup, story {number}" for number in range(1, 7)}
    examples = {f"hierarchical PodGroup, example {number}" for number in range(1, 5)}
    newer = {
        f"minSubGroup, {part}"
        for part in (
            "motivation",
            "single-level example",
            "two-level example",
            "valid examples",
            "invalid examples",
        )
    }
    assert stories | examples | newer <= designs


def take(found: Gangs, step: Fields) -> None:
    """One step: a situation, then what must be so."""
    name = step.text("gang")
    check_problems(found, f"PodGroup/{name}", step)
    gangs = {gang.name: gang for gang in found.gangs}
    if name in gangs:
        gang = msgspec.structs.replace(gangs[name], pods=read_pods(step))
        check_facts(gang, step)
        check_releases(gang, step)
        if "nodes" in step:
            check_placement(gang, found, step)


def check_problems(found: Gangs, subject: str, step: Fields) -> None:
    for field, severity in (("errors", Severity.ERROR), ("warnings", Severity.WARNING)):
        if field not in step:
            continue
        wanted = step.text_map(field)
        told = {
            problem.field: problem.message
            for problem in found.problems
            if problem.subject == subject and problem.severity is severity
        }
        assert set(wanted) == set(told)
        for place, part in wanted.items():
            assert part in told[place]


def read_pods(step: Fields) -> tuple[Pod, ...]:
    node = step.optional_text("node")
    pods: list[Pod] = []
    for word, state in STATES.items():
        for leaf, count in numbers(step, word).items() if word in step else ():
            subgroup = None if leaf == step.text("gang") else leaf
            place = node if state is PodState.RUNNING else None
            pods += [
                Pod(f"{leaf}-{word}-{index}", subgroup, ONE_GPU, state, place)
                for index in range(count)
            ]
    return tuple(pods)


def check_facts(gang: Gang, step: Fields) -> None:
    told = describe(gang)
    for fact in ("can_start", "complete", "stale"):
        if fact in step:
            assert step.boolean(fact, default=False) == getattr(told, fact), fact
    if "not_preemptible" in step:
        assert step.integer("not_preemptible") == told.not_preemptible
    for fact in ("first_choice", "surplus"):
        if fact in step:
            assert numbers(step, fact) == by_leaf(gang, getattr(told, fact)), fact
    if "shortages" in step:
        short = {each.node: each.available for each in told.shortages}
        assert numbers(step, "shortages") == short
    if "growth" in step:
        assert list(step.texts("growth")) == [unit.node for unit in told.growth]


def check_releases(gang: Gang, step: Fields) -> None:
    tree = GangTree.of(gang)
    held = tree.held
    story: list[dict[str, str]] = []
    while (unit := next_unit(tree, held)) is not None:
        story.append({unit.kind.value: unit.node.name})
        held = tree.without_pods(held, [pod.name for pod in unit.pods])
    if "next_unit" in step:
        assert step.text_map("next_unit") == story[0]
    if "give_back" in step:
        wanted = [
            {key: unit.text(key) for key in unit.names()} for unit in step.children("give_back")
        ]
        assert wanted == story


def check_placement(gang: Gang, found: Gangs, step: Fields) -> None:
    nodes = {node.name: node for node in read_nodes(step.child("nodes"))}
    placer = Placer(nodes.values(), found.objects.topologies)
    placer.add([gang])
    tree = GangTree.of(gang)
    start = placer.start(tree, tree.held)
    assignments = start.assignments if isinstance(start, GangPlacement) else ()
    assert numbers(step, "placed") == by_leaf(gang, [each.pod for each in assignments])
    if "together" in step:
        labels = step.text_map("together")
        where = {each.pod: nodes[each.node] for each in assignments}
        for name, label in labels.items():
            domains = {where[pod.name].labels[label] for pod in pods_below(tree, name)}
            assert 1 == len(domains), (name, domains)


def read_nodes(fields: Fields) -> list[Node]:
    nodes: list[Node] = []
    for name in fields.names():
        node = fields.child(name)
        capacity = Resources(gpus=node.integer("gpus"), pods=100)
        nodes.append(Node(name, capacity, node.text_map("labels")))
    return nodes


def pods_below(tree: GangTree, name: str) -> list[Pod]:
    (node,) = [each for each in tree.nodes if each.name == name]
    return [pod for leaf in tree.leaves[node.first_leaf : node.end_leaf] for pod in leaf.pods]


def by_leaf(gang: Gang, names: list[str]) -> dict[str, int]:
    leaves = {pod.name: pod.subgroup or gang.name for pod in gang.pods}
    counts: dict[str, int] = {}
    for name in names:
        counts[leaves[name]] = counts.get(leaves[name], 0) + 1
    return counts


def numbers(step: Fields, name: str) -> dict[str, int]:
    fields = step.child(name)
    return {key: fields.integer(key) for key in fields.names()}
