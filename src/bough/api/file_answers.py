"""Answers of the commands that read files and need no server.

`bough gang`, `bough place`, `bough plan` and `bough why` print these types as JSON, and make their
text from them; those of `bough quota` are in `quota_answers`. Amounts are integers in the
resource's own unit (CPU in thousandths of a core).
"""

from __future__ import annotations

import msgspec

from bough.api.why import (
    CertificateAnswer,
    FlavorResourceName,
    MissingChildren,
    NodeCauseCount,
    QuotaRefusal,
    RemedyList,
    ShareLine,
    TogetherConstraint,
    TreeNodeName,
)

# What is wrong with files


class FileProblem(msgspec.Struct, frozen=True):
    """An error, or a warning; what is not known is `null`."""

    severity: str
    file: str | None
    line: int | None
    subject: str | None
    field: str | None
    message: str


class CheckAnswer(msgspec.Struct, frozen=True):
    """Everything that is wrong with files, and how many objects of each kind they have."""

    objects: dict[str, int]
    errors: int
    warnings: int
    problems: list[FileProblem]


# Gangs


class GrowthUnit(msgspec.Struct, frozen=True):
    """What a gang would take next, beyond what it needs."""

    node: str
    pods: int


class ReleaseUnit(msgspec.Struct, frozen=True):
    """What a gang would give back next."""

    kind: str
    node: str
    pods: list[str]


class GangShortage(msgspec.Struct, frozen=True):
    """A node of a gang that cannot get what it needs from the pods that there are."""

    node: str
    available: int
    needed: int


class GangConstraint(msgspec.Struct, frozen=True):
    """A topology constraint; `leaves` is `null` where all leaves below the node are meant."""

    topology: str | None
    required: str | None
    preferred: str | None
    leaves: list[str] | None


class GangNodeLine(msgspec.Struct, frozen=True):
    """A node of the tree of a gang, with its depth."""

    name: str
    depth: int
    leaf: bool
    minimum: int
    #: Pods that there are (leaf), or children.
    members: int
    reached: int
    satisfied: bool
    can_be: bool
    held: int
    waiting: int
    to_start: int
    surplus: int
    topology: list[GangConstraint]


class GangTreeAnswer(msgspec.Struct, frozen=True):
    """Everything that the rules say about one gang."""

    name: str
    queue: str
    complete: bool
    stale: bool
    can_start: bool
    held: int
    waiting: int
    #: Of a gang that is complete: what it keeps to the last; otherwise what it needs at least.
    not_preemptible: int
    core: list[str]
    surplus: list[str]
    first_choice: list[str]
    growth: list[GrowthUnit]
    next_unit: ReleaseUnit | None
    shortages: list[GangShortage]
    strays: list[str]
    nodes: list[GangNodeLine]
    #: Why its queue takes no gangs.
    queue_obstacle: str | None = None


class GangsAnswer(msgspec.Struct, frozen=True):
    """Each gang as a tree."""

    gangs: list[GangTreeAnswer]
    problems: list[FileProblem]


# Places


class PodPlacement(msgspec.Struct, frozen=True):
    """A pod that gets a node."""

    pod: str
    subgroup: str | None
    node: str
    #: Whether it starts only when others have ended.
    waits: bool
    #: Whether its gang could do without it.
    optional: bool


class TooFewPods(msgspec.Struct, frozen=True):
    """A subgroup that lacks pods."""

    subgroup: str
    available: int
    needed: int


class UnresolvedTopology(msgspec.Struct, frozen=True):
    """A subgroup that names a topology, or a level, that there is not."""

    subgroup: str
    topology: str | None
    unknown: str | None
    known: list[str]


class UnplacedPods(msgspec.Struct, frozen=True):
    """Pods of a subgroup for which there are no nodes."""

    subgroup: str
    needed: int
    found: int
    missing: int
    requests: dict[str, int]
    together: TogetherConstraint | None
    absent: list[str]
    unsupported: str | None
    nodes: list[NodeCauseCount]


class PlaceRefusal(msgspec.Struct, frozen=True):
    """Why a gang has no place; exactly one of the lists says it."""

    lacks_pods: list[TooFewPods]
    unresolved: list[UnresolvedTopology]
    short: list[MissingChildren]
    lacks: list[UnplacedPods]
    gave_up: bool


class PlacedGang(msgspec.Struct, frozen=True):
    """Where the pods of a gang go."""

    name: str
    queue: str
    running: list[str]
    started: list[PodPlacement]
    left: list[str]
    refusal: PlaceRefusal | None


class PodOnNode(msgspec.Struct, frozen=True):
    """A pod on a node: it `runs`, `ends`, `starts` or `waits`."""

    gang: str
    pod: str
    gpus: int
    state: str


class PlaceNode(msgspec.Struct, frozen=True):
    """A node, with its topology domains from the widest on."""

    name: str
    domain: list[str]
    gpus: int
    #: Once everything that is ending has ended.
    free_gpus: int
    cordoned: bool
    pods: list[PodOnNode]


class PlaceTopology(msgspec.Struct, frozen=True):
    """The topology that the nodes are listed by."""

    name: str
    levels: list[str]


class PlacementAnswer(msgspec.Struct, frozen=True):
    """Where the pods of gangs go on some nodes."""

    placed: bool
    gangs: list[PlacedGang]
    topology: PlaceTopology | None
    nodes: list[PlaceNode]
    problems: list[FileProblem]


# Plans


class PodNode(msgspec.Struct, frozen=True):
    """The node of a pod of a gang for which room is being freed."""

    pod: str
    node: str


class StartedPod(msgspec.Struct, frozen=True):
    """The node of a pod that starts."""

    pod: str
    node: str
    optional: bool


class AssignedPodSet(msgspec.Struct, frozen=True):
    """The flavors that a pod set gets, by resource."""

    pod_set: str
    count: int | None
    flavors: dict[str, str]
    usage: dict[str, int]


class PlannedStart(msgspec.Struct, frozen=True):
    """A workload that starts: pods on nodes, or pod sets that get quota."""

    workload: str
    queue: str
    pods: list[StartedPod]
    assignments: list[AssignedPodSet]


class PlannedEviction(msgspec.Struct, frozen=True):
    """A workload that must end, and why."""

    workload: str
    queue: str
    rule: str
    pods: list[str]
    preemptor: str | None
    level: TreeNodeName | None
    sentence: str


class PlannedNomination(msgspec.Struct, frozen=True):
    """A workload that starts when others have ended."""

    workload: str
    queue: str
    pods: list[PodNode]
    waits_for: list[str]


class PlannedWait(msgspec.Struct, frozen=True):
    """A workload that waits, and why."""

    workload: str
    queue: str
    reason: str
    sentence: str


class PlanAnswer(msgspec.Struct, frozen=True):
    """What one cycle decides."""

    policy: str
    starts: list[PlannedStart]
    evictions: list[PlannedEviction]
    nominations: list[PlannedNomination]
    waits: list[PlannedWait]
    digest: str
    problems: list[FileProblem]


# Why


class QuotaExcess(msgspec.Struct, frozen=True):
    """A node of the quota tree that uses more than its quota."""

    node: TreeNodeName
    flavor_resource: FlavorResourceName
    quota: int
    used: int
    withdrawn: int
    balance: int


class EvictionAnswer(msgspec.Struct, frozen=True):
    """Why a workload, or some of its pods, must end."""

    workload: str
    queue: str
    rule: str
    sentence: str
    owner: str
    pods: list[str]
    preemptor: str | None
    preemptor_queue: str | None
    preemptor_owner: str
    priority: int
    preemptor_priority: int | None
    level: TreeNodeName | None
    excesses: list[QuotaExcess]
    need: QuotaRefusal | None
    #: Where shares decided: those of the two sides, the victim's first.
    shares: list[ShareLine] = []


class GrowthAnswer(msgspec.Struct, frozen=True):
    """What a gang that runs still wants, and why it cannot have it."""

    workload: str
    has: int
    wants: int
    reason: str
    sentence: str
    certificate: CertificateAnswer | None


class FileWhyAnswer(msgspec.Struct, frozen=True):
    """Why a workload is where it is; on request, what would help."""

    certificate: CertificateAnswer
    eviction: EvictionAnswer | None
    growth: GrowthAnswer | None
    remedies: RemedyList | None
    problems: list[FileProblem]
