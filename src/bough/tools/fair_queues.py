"""Queues of KAI as `bough quota show` tells of them: what each deserves, asks for and could have.

What would be fair now is what the preset `kai-fair` divides when a cycle begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bough.core.cycle.memo import Memo
from bough.core.explain.standings import Standing, standings
from bough.core.quota.fairtree import CLUSTER
from bough.model.policy import KAI_FAIR
from bough.model.quota import NodeKind, TreeNode
from bough.tools.load_organisation import read_texts
from bough.tools.load_snapshot import load_scene

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bough.core.quota.tree import QuotaTree
    from bough.formats.yaml.documents import Document
    from bough.model.problem import Problem

_GROUP = "scheduling.run.ai"
_ROOT = TreeNode(NodeKind.COHORT, CLUSTER)


class FairQueues(NamedTuple):
    """The tree of the queues, with what counts where fair shares decide."""

    tree: QuotaTree
    standings: dict[TreeNode, Standing]
    problems: list[Problem]


def load_fair_queues(paths: Iterable[str], *, lenient: bool = False) -> FairQueues | None:
    """Read files and folders that must have no errors; `None` where there is no queue of KAI."""
    chosen = list(paths)
    if not any(map(_is_queue, read_texts(chosen).documents)):
        return None
    scene = load_scene(chosen, lenient=lenient)
    copy = Memo().refresh(scene.snapshot, KAI_FAIR)
    tree = copy.ledgers.total
    below = set(tree.subtree(_ROOT))
    found = {node: each for node, each in standings(copy).items() if node in below}
    return FairQueues(tree, found, scene.problems)


def _is_queue(document: Document) -> bool:
    value = document.value
    if not isinstance(value, dict) or value.get("kind") != "Queue":
        return False
    return str(value.get("apiVersion", "")).rpartition("/")[0] == _GROUP
