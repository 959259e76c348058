"""How long a running gang is safe from others: the minimum runtimes of the nodes of a tree."""

from __future__ import annotations

from collections.abc import Container, Sequence

from bough.core.quota.tree import QuotaTree
from bough.model.gang_rules import RuntimeOf
from bough.model.quota import TreeNode


def preempt_runtime_ms(tree: QuotaTree, queue: TreeNode) -> int | None:
    """How long it is safe from its own queue; `None`: nothing is said."""
    declared = tree.declaration(queue)
    return None if declared is None else declared.preempt_min_runtime_ms


def reclaim_runtime_ms(
    tree: QuotaTree, path: Sequence[TreeNode], other: Container[TreeNode], rule: RuntimeOf
) -> int | None:
    """How long it is safe from another queue; both by the nodes from the queue up to the root."""
    node = path[0]
    if rule is RuntimeOf.BELOW_COMMON:
        for each in path:
            if each in other:
                break
            node = each
    declared = tree.declaration(node)
    return None if declared is None else declared.reclaim_min_runtime_ms
