"""`bough gang`: check PodGroups and their pods; show what each needs, holds and can give back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.core.gang.demand import first_choice, growth, needed
from bough.core.gang.predicate import (
    can_start,
    is_complete,
    is_stale,
    minimum_pods,
    obtainable,
    shortages,
    stand,
)
from bough.core.gang.release import core_pods, next_unit, surplus_counts, surplus_pods
from bough.core.gang.tree import GangNode, GangTree, counts_of
from bough.model.problem import Severity
from bough.tools.answer import Answer, problem_answers
from bough.tools.load_gangs import load_gangs, load_valid_gangs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bough.model.gang import Gang, Pod, TopologyConstraint


def check(paths: Iterable[str], *, lenient: bool = False) -> Answer:
    """Everything that is wrong with what was written, and how much there was."""
    found = load_gangs(paths, lenient=lenient)
    objects = {
        "pod_groups": len(found.objects.pod_groups),
        "pods": len(found.objects.pods),
        "queues": len(found.objects.queues),
        "topologies": len(found.objects.topologies),
    }
    errors = sum(problem.severity is Severity.ERROR for problem in found.problems)
    return {
        "objects": objects,
        "errors": errors,
        "warnings": len(found.problems) - errors,
        "problems": problem_answers(found.problems),
    }


def show(paths: Iterable[str], *, lenient: bool = False) -> Answer:
    """Each gang as a tree: its minimums, what is held, needed and surplus."""
    found = load_valid_gangs(paths, lenient=lenient)
    gangs: list[Answer] = []
    for gang in found.gangs:
        obstacle = found.obstacles.get(gang.name)
        answer = describe(gang)
        answer["queue_obstacle"] = None if obstacle is None else obstacle.sentence
        gangs.append(answer)
    return {"gangs": gangs, "problems": problem_answers(found.problems)}


def describe(gang: Gang) -> Answer:
    """Everything that the rules say about one gang."""
    tree = GangTree.of(gang)
    complete = is_complete(tree)
    core = core_pods(tree, tree.held)
    unit = next_unit(tree, tree.held)
    demand = needed(tree, tree.held)
    starting = () if demand is None else tuple(first_choice(demand))
    return {
        "name": gang.name,
        "queue": gang.queue,
        "complete": complete,
        "stale": is_stale(tree),
        "can_start": can_start(tree),
        "held": sum(counts_of(tree.held)),
        "waiting": sum(counts_of(tree.pending)),
        #: Of a gang that is complete: what it keeps to the last; otherwise what it needs at least.
        "not_preemptible": len(core) if complete else minimum_pods(tree),
        "core": _names(core),
        "surplus": _names(surplus_pods(tree, tree.held)),
        "first_choice": _names(starting),
        "growth": [
            {"node": each.node.name, "pods": each.demand.smallest}
            for each in growth(tree, tree.held)
        ],
        "next_unit": unit
        and {"kind": unit.kind.value, "node": unit.node.name, "pods": _names(unit.pods)},
        "shortages": [
            {"node": each.node.name, "available": each.available, "needed": each.needed}
            for each in shortages(tree)
        ],
        "strays": _names(tree.strays),
        "nodes": _nodes(tree, starting),
    }


def _nodes(tree: GangTree, starting: Iterable[Pod]) -> list[Answer]:
    """Every node before those below it, with its depth."""
    now = stand(tree, counts_of(tree.held))
    possible = stand(tree, obtainable(tree))
    waiting = counts_of(tree.pending)
    surplus = surplus_counts(tree, counts_of(tree.held))
    start = counts_of(tree.with_pods((0,) * len(tree.leaves), _names(starting)))
    answers: list[Answer] = []
    open_nodes = [(tree.root, 0)]
    while open_nodes:
        node, depth = open_nodes.pop()
        row = slice(node.first_leaf, node.end_leaf)
        answers.append(
            {
                "name": node.name,
                "depth": depth,
                "leaf": node.is_leaf,
                "minimum": node.minimum,
                #: Pods that there are (leaf), or children.
                "members": len(node.pods) if node.is_leaf else len(node.children),
                "reached": now.reached[node.position],
                "satisfied": now.satisfied(node),
                "can_be": possible.satisfied(node),
                "held": now.pods[node.position],
                "waiting": sum(waiting[row]),
                "to_start": sum(start[row]),
                "surplus": sum(surplus[row]),
                "topology": [
                    *(
                        []
                        if node.constraint is None
                        else [_constraint(node.constraint, tree, node)]
                    ),
                    *(_constraint(each.constraint, tree, node, each.leaves) for each in node.sets),
                ],
            }
        )
        open_nodes.extend((child, depth + 1) for child in reversed(node.children))
    return answers


def _constraint(
    constraint: TopologyConstraint,
    tree: GangTree,
    node: GangNode,
    leaves: Iterable[int] | None = None,
) -> Answer:
    """A constraint; `leaves` names those of a set, and is null where all below are meant."""
    everything = list(range(node.first_leaf, node.end_leaf))
    some = leaves is not None and list(leaves) != everything
    return {
        "topology": constraint.topology,
        "required": constraint.required,
        "preferred": constraint.preferred,
        "leaves": [tree.leaves[leaf].name for leaf in leaves or ()] if some else None,
    }


def _names(pods: Iterable[Pod]) -> list[str]:
    return [pod.name for pod in pods]
