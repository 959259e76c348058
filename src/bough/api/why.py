"""Why a workflow waits or runs: certificates, and on request what would help.

`bough why` answers with the same certificates for files. `model.certificate` and `model.remedy`
say what the fields mean; what follows from others (`deficit`, `missing`, ...) is sent beside them.
"""

from __future__ import annotations

import msgspec

from bough.api.common import Json
from bough.api.workflows import PreemptionLine

# Certificates


class TreeNodeName(msgspec.Struct, frozen=True):
    """A node of the quota tree, or the pool it represents."""

    kind: str
    name: str


class FlavorResourceName(msgspec.Struct, frozen=True):
    """One resource on one kind of node."""

    flavor: str
    resource: str


class QuotaRefusal(msgspec.Struct, frozen=True):
    """Why a queue cannot take a request now: `balance - passed < -borrowing_limit` at `node`."""

    kind: str
    queue: str
    flavor_resource: FlavorResourceName | None
    requested: int
    available: int
    potential: int
    node: TreeNodeName | None
    balance: int
    passed: int
    borrowing_limit: int | None
    cycle: list[str]
    promised: int
    deficit: int
    never: bool
    sentence: str


class FlavorChoice(msgspec.Struct, frozen=True):
    """Why a flavor of a queue is not available; if both reasons are absent, it is available."""

    flavor: str
    unsuitable: str | None
    refusal: QuotaRefusal | None


class MissingPods(msgspec.Struct, frozen=True):
    """A node of a gang that has too few pods or too few subgroups."""

    subgroup: str
    needed: int
    available: int
    #: Whether pods are counted, and not subgroups.
    leaf: bool
    missing: int


class PodRequests(msgspec.Struct, frozen=True):
    """The requests of one pod."""

    gpus: int
    cpu_milli: int
    memory_bytes: int
    pods: int
    other: list[tuple[str, int]]


class NodeCauseCount(msgspec.Struct, frozen=True):
    """How many nodes reject a pod for a given cause."""

    cause: str
    nodes: int
    resource: str | None


class TopologyDomainRoom(msgspec.Struct, frozen=True):
    """How many of the pods that must be placed together fit into a topology domain."""

    domain: str
    pods: int


class TogetherConstraint(msgspec.Struct, frozen=True):
    """The topology constraint of the missing pods."""

    topology: str
    level: str
    needed: int
    best: list[TopologyDomainRoom]
    domains: int
    #: Pods that already run allow no other domain.
    pinned: bool


class MissingNodes(msgspec.Struct, frozen=True):
    """A subgroup with too few nodes for its pods."""

    subgroup: str
    needed: int
    found: int
    requests: PodRequests
    nodes: list[NodeCauseCount]
    together: TogetherConstraint | None
    absent: list[str]
    unsupported: str
    missing: int


class MissingChildren(msgspec.Struct, frozen=True):
    """A node of a gang with too few children that can be placed."""

    subgroup: str
    needed: int
    found: int
    candidates: int


class MissingAmount(msgspec.Struct, frozen=True):
    """What is missing, and how much of it."""

    resource: str
    amount: int
    #: `null`: on the nodes, whatever their flavor.
    flavor: str | None


class HolderLine(msgspec.Struct, frozen=True):
    """A workload that holds some of what is missing."""

    workload: str
    queue: str
    amount: int
    guaranteed: int
    borrowed: int
    evictable: int
    owner: str
    priority: int
    since_ms: int | None
    #: It gets this only by the plan that leaves the other waiting.
    starting: bool


class ShareLine(msgspec.Struct, frozen=True):
    """What a node of the quota tree borrows, relative to its weight and its parent's capacity."""

    node: TreeNodeName
    #: `0.334`, rounded up; `infinite` where it has no weight and takes anything.
    share: str
    weight: str
    #: The resource that counts; empty where the share is 0.
    resource: str


class CertificateAnswer(msgspec.Struct, frozen=True):
    """Why a workload waits, starts or runs."""

    workload: str
    queue: str
    #: waits, nominated, starts or runs.
    verdict: str
    sentence: str
    reason: str
    owner: str
    refusal: QuotaRefusal | None
    ledger: str | None
    options: list[FlavorChoice]
    shortages: list[MissingPods]
    lacks: list[MissingNodes]
    short: list[MissingChildren]
    unresolved: list[str]
    head: str | None
    kept_for: list[str]
    cycle: list[str]
    waits_for: list[str]
    missing: MissingAmount | None
    holders: list[HolderLine]
    #: Where shares decide: what its side of the tree would have, and what the other one has.
    shares: list[ShareLine] = []


# Remedies


class RemedyChange(msgspec.Struct, frozen=True):
    """A changed field of an object, in its owner's spelling: before and after."""

    kind: str
    name: str
    field: str
    before: Json
    after: Json
    word: str
    resource: str


class RemedyAnswer(msgspec.Struct, frozen=True):
    """A change after which the workload starts, as a plan has shown."""

    kind: str
    sentence: str
    changes: list[RemedyChange]
    #: Whether the search came to its end; otherwise less may be enough.
    exact: bool


class RemedyList(msgspec.Struct, frozen=True):
    """Remedies, cheapest first."""

    found: list[RemedyAnswer]
    #: How many plans were made.
    plans: int
    #: Kinds whose search took too long: there may be more.
    given_up: list[str]


# Workflows


class WhyGroup(msgspec.Struct, frozen=True):
    """Why a group waits, and the groups that wait for the same reason."""

    group: str
    status: str
    reason: str | None
    message: str | None
    #: The other groups that wait for the same, and how many tasks they all have together.
    alike: list[str]
    tasks: int
    #: `null` where it waits for other groups, or was decided meanwhile.
    certificate: CertificateAnswer | None
    #: `null` unless asked for.
    remedies: RemedyList | None
    #: The latest last.
    preemptions: list[PreemptionLine]


class WhyRunning(msgspec.Struct, frozen=True):
    """Groups that run: since when, where, and whether they can be preempted."""

    groups: list[str]
    status: str
    message: str
    since: str | None
    #: How many of their tasks each node has.
    nodes: dict[str, int]
    #: GPUs that cannot be taken from them, and GPUs that can.
    guaranteed: int
    preemptible: int
    #: Tasks of an elastic group that wait, and what a plan says about them.
    waiting_tasks: int
    certificate: CertificateAnswer | None
    preemptions: list[PreemptionLine]


class WhyAnswer(msgspec.Struct, frozen=True):
    """Why a workflow waits; `groups` is empty if none of them waits."""

    workflow: str
    status: str
    message: str
    groups: list[WhyGroup]
    running: list[WhyRunning]
