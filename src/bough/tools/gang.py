"""`bough gang`: check PodGroups and their pods; show what each needs, holds and can give back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from bough.api.file_answers import (
    CheckAnswer,
    GangConstraint,
    GangNodeLine,
    GangsAnswer,
    GangShortage,
    GangTreeAnswer,
    GrowthUnit,
    ReleaseUnit,
)
from bough.core.gang.demand import first_choice, growth, needed
from bough.core.gang.release import core_pods, next_unit, surplus_counts, surplus_pods
from bough.core.gang.sufficiency import (
    can_start,
    is_complete,
    is_stale,
    minimum_pods,
    obtainable,
    shortages,
    stand,
)
from bough.core.gang.tree import GangNode, GangTree, counts_of
from bough.tools.file_problems import check_answer, problem_answers
from bough.tools.load_gangs import load_gangs, load_valid_gangs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bough.model.gang import Gang, Pod, TopologyConstraint


def check(paths: Iterable[str], *, lenient: bool = False) -> CheckAnswer:
    """Everything that is wrong in the files, and how many objects of each kind they have."""
    found = load_gangs(paths, lenient=lenient)
    objects = {
        "pod_groups": len(found.objects.pod_groups),
        "pods": len(found.objects.pods),
        "queues": len(found.objects.queues),
        "topologies": len(found.objects.topologies),
    }
    return check_answer(objects, found.problems)


def show(paths: Iterable[str], *, lenient: bool = False) -> GangsAnswer:
    """Each gang as a tree: its minimums, what is held, needed and surplus."""
    found = load_valid_gangs(paths, lenient=lenient)
    gangs: list[GangTreeAnswer] = []
    for gang in found.gangs:
        obstacle = found.obstacles.get(gang.name)
        text = None if obstacle is None else obstacle.sentence
        gangs.append(msgspec.structs.replace(describe(gang), queue_obstacle=text))
    return GangsAnswer(gangs, problem_answers(found.problems))


def describe(gang: Gang) -> GangTreeAnswer:
    """Everything that the rules say about one gang."""
    tree = GangTree.of(gang)
    complete = is_complete(tree)
    core = core_pods(tree, tree.held)
    unit = next_unit(tree, tree.held)
    demand = needed(tree, tree.held)
    starting = () if demand is None else tuple(first_choice(demand))
    return GangTreeAnswer(
        name=gang.name,
        queue=gang.queue,
        complete=complete,
        stale=is_stale(tree),
        can_start=can_start(tree),
        held=sum(counts_of(tree.held)),
        waiting=sum(counts_of(tree.pending)),
        not_preemptible=len(core) if complete else minimum_pods(tree),
        core=_names(core),
        surplus=_names(surplus_pods(tree, tree.held)),
        first_choice=_names(starting),
        growth=[
            GrowthUnit(each.node.name, each.demand.smallest) for each in growth(tree, tree.held)
        ],
        next_unit=unit and ReleaseUnit(unit.kind.value, unit.node.name, _names(unit.pods)),
        shortages=[
            GangShortage(each.node.name, each.available, each.needed) for each in shortages(tree)
        ],
        strays=_names(tree.strays),
        nodes=_nodes(tree, starting),
    )


def _nodes(tree: GangTree, starting: Iterable[Pod]) -> list[GangNodeLine]:
    """Every node before those below it, with its depth."""
    now = stand(tree, counts_of(tree.held))
    possible = stand(tree, obtainable(tree))
    waiting = counts_of(tree.pending)
    surplus = surplus_counts(tree, counts_of(tree.held))
    start = counts_of(tree.with_pods((0,) * len(tree.leaves), _names(starting)))
    answers: list[GangNodeLine] = []
    open_nodes = [(tree.root, 0)]
    while open_nodes:
        node, depth = open_nodes.pop()
        row = slice(node.first_leaf, node.end_leaf)
        answers.append(
            GangNodeLine(
                name=node.name,
                depth=depth,
                leaf=node.is_leaf,
                minimum=node.minimum,
                members=len(node.pods) if node.is_leaf else len(node.children),
                reached=now.reached[node.position],
                satisfied=now.satisfied(node),
                can_be=possible.satisfied(node),
                held=now.pods[node.position],
                waiting=sum(waiting[row]),
                to_start=sum(start[row]),
                surplus=sum(surplus[row]),
                topology=[
                    *(
                        []
                        if node.constraint is None
                        else [_constraint(node.constraint, tree, node)]
                    ),
                    *(_constraint(each.constraint, tree, node, each.leaves) for each in node.sets),
                ],
            )
        )
        open_nodes.extend((child, depth + 1) for child in reversed(node.children))
    return answers


def _constraint(
    constraint: TopologyConstraint,
    tree: GangTree,
    node: GangNode,
    leaves: Iterable[int] | None = None,
) -> GangConstraint:
    """A constraint; `leaves` names those of a set, and is null where all below are meant."""
    everything = list(range(node.first_leaf, node.end_leaf))
    some = leaves is not None and list(leaves) != everything
    return GangConstraint(
        topology=constraint.topology,
        required=constraint.required,
        preferred=constraint.preferred,
        leaves=[tree.leaves[leaf].name for leaf in leaves or ()] if some else None,
    )


def _names(pods: Iterable[Pod]) -> list[str]:
    return [pod.name for pod in pods]
