"""Kueue's quota arithmetic, tree edits and shares."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from bough.core.quota.taken_share import Share, is_borrowing, share_of
from bough.core.quota.tree import (
    Change,
    DeleteCohort,
    DeleteQueue,
    PutCohort,
    PutQueue,
    QuotaTree,
)
from bough.model.quota import Cohort, FlavorResource, NodeKind, Queue, TreeNode
from conformance.kueue_objects import (
    UNLIMITED,
    admitted_usage,
    amounts_of,
    cohort_of,
    queue_of,
    tree_of,
    written,
)

#: The two name spaces as the cases call them.
PLURALS = {NodeKind.COHORT: "cohorts", NodeKind.QUEUE: "cluster_queues"}


def answer_quota(case: dict[str, Any]) -> dict[str, Any]:
    """Totals of every node, and what each queue may still and could ever use."""
    data = case["input"]
    tree = tree_of(data)
    for queue, usage in data.get("usage", {}).items():
        tree.add_usage(queue, amounts_of(usage))
    workloads = {workload["key"]: workload for workload in data.get("workloads", ())}
    counted = [key for key, workload in workloads.items() if workload.get("admission")]
    removed = data.get("remove") or ()
    for key in [*(key for key in counted if key not in removed), *(data.get("add") or ())]:
        workload = workloads[key]
        tree.add_usage(workload["admission"]["cluster_queue"], admitted_usage(workload))
    queues = [node for node in tree if node.kind is NodeKind.QUEUE]
    return {
        "actual": {
            "nodes": _totals(tree),
            "available": {
                node.name: _by_flavor(
                    tree, node, lambda what, node=node: max(0, tree.available(node, what))
                )
                for node in queues
            },
            "potential_available": {
                node.name: _by_flavor(
                    tree, node, lambda what, node=node: tree.potential(node, what)
                )
                for node in queues
            },
            "inactive_cluster_queues": [
                node.name
                for node in queues
                if tree.cycle(node) or not _flavors_exist(tree, node, data)
            ],
        }
    }


def answer_tree_edits(case: dict[str, Any]) -> dict[str, Any]:
    """Parents and children after a series of edits."""
    tree = QuotaTree()
    parents: dict[TreeNode, str | None] = {}
    cohorts: dict[str, None] = {}
    for operation in case["input"]["operations"]:
        _edit(tree, parents, operation["op"], operation["name"], operation.get("parent"))
        if "cohort" in operation["op"]:
            cohorts[operation["name"]] = None
    return {
        "actual": {
            "cohorts": [node.name for node in tree if node.kind is NodeKind.COHORT],
            "cluster_queues": [node.name for node in tree if node.kind is NodeKind.QUEUE],
            "cohort_parent": _parents(tree, NodeKind.COHORT),
            "cluster_queue_parent": _parents(tree, NodeKind.QUEUE),
            "in_cycle": {name: _in_cycle(tree, name) for name in cohorts},
        }
    }


def answer_tree_operations(case: dict[str, Any]) -> dict[str, Any]:
    """The whole state after each of a series of changes."""
    tree = QuotaTree()
    steps: list[dict[str, Any]] = []
    for step in case["steps"]:
        tree.apply(_change(step))
        node = _touched(step)
        tangled = node in tree and bool(tree.cycle(node))
        steps.append({"state_after": _state(tree), **({"error": "cycle"} if tangled else {})})
    return {"actual": {"steps": steps}}


def answer_share(case: dict[str, Any]) -> dict[str, Any]:
    """Dominant-resource shares; or whether the queue `cq` borrows."""
    data = case["input"]
    tree = tree_of(data)
    for queue, usage in data["usage"].items():
        tree.add_usage(queue, amounts_of(usage))
    queue = TreeNode(NodeKind.QUEUE, "cq")
    if "requested" in data:
        return {
            "actual": {
                "borrowing": is_borrowing(tree, queue, tree.flavor_resources(queue)),
                "borrowing_on_requested": is_borrowing(tree, queue, amounts_of(data["requested"])),
            }
        }
    tree.add_usage("cq", amounts_of(data.get("extra_request") or {}))
    shares = [(node.name, share_of(tree, node)) for node in tree]
    return {
        "actual": {
            "shares": [
                {"node": name, "weighted_share": _rounded(share), "borrowing": share.borrowing}
                for name, share in shares
            ]
        }
    }


def _rounded(share: Share) -> int:
    weighted = share.weighted
    return UNLIMITED if weighted is None else math.ceil(weighted)


def _totals(tree: QuotaTree) -> dict[str, Any]:
    totals: dict[str, Any] = {plural: {} for plural in PLURALS.values()}
    for node in tree:
        totals[PLURALS[node.kind]][node.name] = {
            "subtree_quota": _by_flavor(
                tree, node, lambda what, node=node: tree.subtree_quota(node, what)
            ),
            "usage": _by_flavor(tree, node, lambda what, node=node: tree.usage(node, what)),
        }
    return totals


def _by_flavor(
    tree: QuotaTree, node: TreeNode, amount: Callable[[FlavorResource], int]
) -> dict[str, dict[str, int | str]]:
    found: dict[str, dict[str, int | str]] = {}
    for what in tree.flavor_resources(node):
        found.setdefault(what.flavor, {})[what.resource] = written(amount(what))
    return found


def _flavors_exist(tree: QuotaTree, node: TreeNode, data: dict[str, Any]) -> bool:
    """A queue that names a flavor without an object takes no workloads."""
    if "resource_flavors" not in data:
        return True
    known = {flavor["name"] for flavor in data["resource_flavors"]}
    declaration = tree.declaration(node)
    groups = declaration.resource_groups if declaration else ()
    return all(flavor.name in known for group in groups for flavor in group.flavors)


def _edit(
    tree: QuotaTree,
    parents: dict[TreeNode, str | None],
    operation: str,
    name: str,
    parent: str | None,
) -> None:
    kind = NodeKind.QUEUE if "cluster_queue" in operation else NodeKind.COHORT
    node = TreeNode(kind, name)
    if operation.startswith("delete"):
        parents.pop(node, None)
        tree.apply(DeleteQueue(name) if kind is NodeKind.QUEUE else DeleteCohort(name))
        return
    if operation.startswith("set"):
        parents[node] = parent or None
    above = parents.setdefault(node, None)
    tree.apply(
        PutQueue(Queue(name, above)) if kind is NodeKind.QUEUE else PutCohort(Cohort(name, above))
    )


def _parents(tree: QuotaTree, kind: NodeKind) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in tree:
        parent = tree.parent(node)
        if node.kind is kind and parent is not None:
            found[node.name] = parent.name
    return found


def _in_cycle(tree: QuotaTree, cohort: str) -> bool:
    node = TreeNode(NodeKind.COHORT, cohort)
    return node in tree and bool(tree.cycle(node))


def _change(step: dict[str, Any]) -> Change:
    match step["op"]:
        case "apply_cohort":
            return PutCohort(cohort_of(step["cohort"]))
        case "delete_cohort":
            return DeleteCohort(step["name"])
        case "delete_cluster_queue":
            return DeleteQueue(step["name"])
        case _:
            return PutQueue(queue_of(step["cluster_queue"]))


def _touched(step: dict[str, Any]) -> TreeNode:
    if "cohort" in step:
        return TreeNode(NodeKind.COHORT, step["cohort"]["name"])
    if "cluster_queue" in step:
        return TreeNode(NodeKind.QUEUE, step["cluster_queue"]["name"])
    kind = NodeKind.COHORT if step["op"] == "delete_cohort" else NodeKind.QUEUE
    return TreeNode(kind, step["name"])


def _state(tree: QuotaTree) -> dict[str, Any]:
    state = _totals(tree)
    for node in tree:
        parent = tree.parent(node)
        state[PLURALS[node.kind]][node.name] |= {
            "parent": "" if parent is None else parent.name,
            "explicit": not tree.is_implicit(node),
            "in_cycle": bool(tree.cycle(node)),
        }
    return state


ANSWERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "quota_available": answer_quota,
    "quota_snapshot": answer_quota,
    "random_quota": answer_quota,
    "hierarchy_tree": answer_tree_edits,
    "hierarchy_ops": answer_tree_operations,
    "fair_share": answer_share,
}
