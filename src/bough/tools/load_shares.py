"""What nodes take and could have, as a working copy has it: by a policy, or for queues of KAI.

Where no policy is named, what would be fair now of the queues of KAI is what the preset `kai-fair`
divides when a cycle begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from bough.api.quota_answers import Compares
from bough.core.cycle.memo import Memo
from bough.core.explain.node_shares import Standing, standings
from bough.core.quota.fair_now import fair_now
from bough.core.quota.fair_tree import CLUSTER
from bough.model.policy import KAI_FAIR
from bough.model.quota import NodeKind, TreeNode
from bough.tools.load_organisation import read_texts
from bough.tools.load_snapshot import load_scene

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bough.core.quota.fair_now import Portion
    from bough.core.quota.tree import QuotaTree
    from bough.formats.yaml.documents import Document
    from bough.model.problem import Problem
    from bough.model.snapshot import Snapshot

_GROUP = "scheduling.run.ai"
_ROOT = TreeNode(NodeKind.COHORT, CLUSTER)


class FairQueues(NamedTuple):
    """The tree of the queues, with what counts where fair shares decide."""

    tree: QuotaTree
    standings: dict[TreeNode, Standing]
    problems: list[Problem]


class ComparedShares(NamedTuple):
    """The tree of everything, with what a policy compares its nodes by."""

    tree: QuotaTree
    standings: dict[TreeNode, Standing]
    problems: list[Problem]
    compares: Compares


def load_fair_queues(paths: Iterable[str], *, lenient: bool = False) -> FairQueues | None:
    """Read files and folders that must have no errors; `None` where there is no queue of KAI."""
    chosen = list(paths)
    if not any(map(_is_queue, read_texts(chosen).documents)):
        return None
    scene = load_scene(chosen, lenient=lenient)
    return fair_queues_of(scene.snapshot, scene.problems)


def fair_queues_of(snapshot: Snapshot, problems: list[Problem]) -> FairQueues:
    """The queues of KAI of a snapshot that has any."""
    copy = Memo().refresh(snapshot, KAI_FAIR)
    tree = copy.ledgers.total
    below = set(tree.subtree(_ROOT))
    found = {node: each for node, each in standings(copy).items() if node in below}
    return FairQueues(tree, found, problems)


def load_compared(paths: Iterable[str], policy: str, *, lenient: bool = False) -> ComparedShares:
    """Read files and folders that must have no errors, and the policy to compare them by."""
    scene = load_scene(paths, policy=policy, lenient=lenient)
    copy = Memo().refresh(scene.snapshot, scene.policy)
    tree = copy.ledgers.total
    found = standings(copy)
    if not scene.policy.divides:
        portions = fair_now(tree, _waiting(scene.snapshot))
        if scene.policy.compares_dominant:
            portions = {node: [_undivided(one) for one in each] for node, each in portions.items()}
        shares = {node: each.share for node, each in found.items()}
        found = {
            node: Standing(shares.get(node) or copy.shares.of(node), tuple(portions.get(node, ())))
            for node in tree
            if not tree.cycle(node)
        }
    compares = Compares.SHARE
    if scene.policy.works_out_shares:
        compares = Compares.FAIR_SHARE if scene.policy.divides else Compares.DOMINANT_SHARE
    return ComparedShares(tree, found, scene.problems, compares)


def _undivided(portion: Portion) -> Portion:
    """The same where nothing is divided beforehand."""
    return msgspec.structs.replace(portion, fair=None)


def _waiting(snapshot: Snapshot) -> dict[str, dict[str, int]]:
    """By queue and resource, what everything that waits asks for."""
    copy = Memo().refresh(snapshot, KAI_FAIR)
    tree = copy.ledgers.total
    found: dict[str, dict[str, int]] = {}
    for root in tree.roots():
        for node, asked in copy.fair.asked(root).items():
            if node.kind is NodeKind.QUEUE:
                line = found.setdefault(node.name, {})
                for what, amount in asked.items():
                    waits = amount - tree.usage(node, what)
                    line[what.resource] = line.get(what.resource, 0) + waits
    return found


def _is_queue(document: Document) -> bool:
    value = document.value
    if not isinstance(value, dict) or value.get("kind") != "Queue":
        return False
    return str(value.get("apiVersion", "")).rpartition("/")[0] == _GROUP
