"""Queues of KAI as `bough quota show` tells of them: what each deserves, asks for and could have.

What would be fair now is what the preset `kai-fair` divides when a cycle begins.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from bough.core.cycle.memo import Memo
from bough.core.quota.fair_now import Portion
from bough.core.quota.fairtree import CLUSTER
from bough.model.policy import KAI_FAIR
from bough.model.quota import NodeKind, TreeNode
from bough.tools.load_organisation import read_texts
from bough.tools.load_snapshot import load_scene

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bough.core.cycle.working_copy import WorkingCopy
    from bough.core.quota.fairness import Entitlement
    from bough.core.quota.tree import QuotaTree
    from bough.formats.yaml.documents import Document
    from bough.model.problem import Problem

_GROUP = "scheduling.run.ai"
_ROOT = TreeNode(NodeKind.COHORT, CLUSTER)


class Part(NamedTuple):
    """Which part of what it may have a node uses, of the resource of which that is most."""

    text: str
    resource: str


class FairQueues(NamedTuple):
    """The tree of the queues, with what counts where fair shares decide."""

    tree: QuotaTree
    #: The node above all queues.
    root: TreeNode
    portions: dict[TreeNode, list[Portion]]
    parts: dict[TreeNode, Part]
    problems: list[Problem]


def load_fair_queues(paths: Iterable[str], *, lenient: bool = False) -> FairQueues | None:
    """Read files and folders that must have no errors; `None` where there is no queue of KAI."""
    chosen = list(paths)
    if not any(map(_is_queue, read_texts(chosen).documents)):
        return None
    scene = load_scene(chosen, lenient=lenient)
    copy = Memo().refresh(scene.snapshot, KAI_FAIR)
    copy.fair.begin()
    nodes = [_ROOT]
    tree = copy.ledgers.total
    for node in nodes:
        nodes += tree.children(node)
    return FairQueues(
        tree,
        _ROOT,
        _portions(copy, nodes),
        {node: _part(copy.fair.of(node)) for node in nodes},
        scene.problems,
    )


def _portions(copy: WorkingCopy, nodes: list[TreeNode]) -> dict[TreeNode, list[Portion]]:
    asked = copy.fair.asked(_ROOT)
    return {
        node: [
            Portion(
                each.what.resource,
                int(each.deserved or 0),
                int(each.counted.usage),
                asked[node][each.what],
                Fraction(each.fair),
            )
            for each in copy.fair.of(node)
        ]
        for node in nodes
    }


def _part(node: Iterable[Entitlement]) -> Part:
    most, resource = Fraction(0), ""
    for each in node:
        used = Fraction(each.counted.usage)
        part = used / Fraction(each.most) if each.most else used * 1000
        if part > most:
            most, resource = part, each.what.resource
    whole, rest = divmod(ceil(most * 1000), 1000)
    return Part(f"{whole}.{rest:03}".rstrip("0").rstrip("."), resource)


def _is_queue(document: Document) -> bool:
    value = document.value
    if not isinstance(value, dict) or value.get("kind") != "Queue":
        return False
    return str(value.get("apiVersion", "")).rpartition("/")[0] == _GROUP
