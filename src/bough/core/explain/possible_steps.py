"""What could be changed to help a workload that waits, before anything is tried.

What is held or tangled up, which weights and minimums there are, which nodes could be added.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import msgspec

from bough.core.explain.changed_snapshot import HOSTNAME, most_of
from bough.core.explain.remedy_trials import Patient
from bough.core.gang.tree import GangTree
from bough.core.quota.tree import QuotaTree
from bough.model.admission_rules import StopPolicy
from bough.model.cluster import Node, Resources
from bough.model.gang import Gang, PodState
from bough.model.quota import NodeKind, TreeNode
from bough.model.remedy import AddNodes, HeldPart, Resume, Tolerate, Uncordon, Untangle

replace = msgspec.structs.replace

#: How many nodes of one kind are tried.
MOST_NODES = 64


def held_parts(patient: Patient) -> list[Resume]:
    """What is held and keeps the workload out of the line."""
    snapshot, gang = patient.snapshot, patient.gang
    found = [
        Resume(HeldPart.QUEUE, queue.name)
        for queue in snapshot.queues
        if queue.name == patient.queue and queue.rules.stop is not StopPolicy.NONE
    ]
    if gang is not None:
        found += [
            Resume(HeldPart.LOCAL_QUEUE, f"{door.namespace}/{door.name}")
            for door in snapshot.local_queues
            if (door.namespace, door.name) == (gang.namespace, gang.local_queue)
            and door.stop is not StopPolicy.NONE
        ]
        if not gang.active:
            found.append(Resume(HeldPart.WORKLOAD, gang.name))
    return found


def tangled_cohorts(patient: Patient) -> list[Untangle]:
    """The cohorts of the cycle that stops the queue, by name."""
    tree = QuotaTree.of(patient.snapshot.cohorts, patient.snapshot.queues)
    # A queue that is on the cycle itself has others below it, as a cohort has.
    named = (TreeNode(kind, patient.queue) for kind in (NodeKind.QUEUE, NodeKind.COHORT))
    known = [node for node in named if node in tree]
    return [Untangle(name) for node in known for name in sorted(tree.cycle(node))]


def weights(patient: Patient) -> Iterator[tuple[TreeNode, Fraction]]:
    """The nodes from the queue up whose weight could be raised, where weights decide about it."""
    policy, gang = patient.policy, patient.gang
    tree = QuotaTree.of(patient.snapshot.cohorts, patient.snapshot.queues)
    queue = TreeNode(NodeKind.QUEUE, patient.queue)
    if gang is None or queue not in tree or tree.cycle(queue) or not policy.weighs(gang):
        return
    for node in tree.path(queue)[:-1]:
        weight = patient.source.weight_of(node)
        if weight is not None:
            yield node, weight


def minimums(patient: Patient) -> Iterator[tuple[str | None, int]]:
    """What could be lower: the part (`None`: the whole), and what it needs now."""
    if patient.gang is not None and not patient.counted:
        for node in GangTree.of(patient.gang).nodes:
            if node.minimum > 1:
                yield (node.name if node.position else None), node.minimum
    elif patient.gang is not None and patient.policy.partial_admission:
        for pod_set in patient.gang.pod_sets:
            least = pod_set.count if pod_set.min_count is None else pod_set.min_count
            if least > 1:
                yield pod_set.name, least


def is_choosy(patient: Patient) -> bool:
    """Whether its pods say something about their nodes."""
    gang = patient.gang
    if gang is None:
        return False
    templates = (*gang.pods, *(each.template for each in gang.pod_sets))
    return any(each.node_selector or each.affinity for each in templates)


def taints(patient: Patient) -> list[Tolerate]:
    """The taints that nodes, or flavors, keep pods away with."""
    snapshot = patient.snapshot
    found = (taint for node in snapshot.nodes for taint in node.taints)
    more = (taint for flavor in snapshot.flavors for taint in flavor.taints)
    return [Tolerate(key) for key in sorted({taint.key for taint in (*found, *more)})]


def cordoned(patient: Patient) -> list[Uncordon]:
    """The nodes that could be told to take pods again."""
    nodes = patient.snapshot.nodes
    return [Uncordon(each.name) for each in nodes if patient.source.can_uncordon(each.name)]


def node_models(patient: Patient) -> list[AddNodes]:
    """Many nodes of each kind that there is, the largest first; then larger ones, if needed."""
    kinds: dict[object, Node] = {}
    for node in sorted(patient.snapshot.nodes, key=lambda node: (-node.capacity.gpus, node.name)):
        labels = tuple(sorted(item for item in node.labels.items() if item[0] != HOSTNAME))
        kinds.setdefault((node.capacity, labels, node.taints, node.flavor), node)
    asked = [] if patient.gang is None else _asked(patient.gang)
    most = max(MOST_NODES, len(asked))
    large = [node for node in kinds.values() if any(_fits(each, node) for each in asked)]
    found = [AddNodes(node.name, most) for node in large]
    if asked and not any(all(_fits(each, node) for each in asked) for node in large):
        found += [AddNodes(node.name, most, most_of(asked)) for node in kinds.values()]
    bare = _flavors_without_nodes(patient)
    return found + [replace(each, flavor=flavor) for flavor in bare for each in found[:1]]


def _flavors_without_nodes(patient: Patient) -> list[str]:
    """The flavors of its queue that no node is of, though labels could make it so."""
    snapshot = patient.snapshot
    wanted = {
        each.name
        for queue in snapshot.queues
        if queue.name == patient.queue
        for group in queue.resource_groups
        for each in group.flavors
    }
    there = {node.flavor for node in snapshot.nodes}
    named = (each.name for each in snapshot.flavors if each.node_labels)
    return [name for name in named if name in wanted - there]


def _asked(gang: Gang) -> list[Resources]:
    """What each waiting pod asks for."""
    return [pod.requests for pod in gang.pods if pod.state is PodState.PENDING]


def _fits(asked: Resources, node: Node) -> bool:
    """Whether a pod would fit on an empty node."""
    return most_of((asked, node.capacity)) == most_of((Resources(), node.capacity))
