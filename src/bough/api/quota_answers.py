"""Answers of `bough quota`, which reads files and needs no server: the quota tree, and admission.

Amounts are integers in the resource's own unit (CPU in thousandths of a core).
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from bough.api.file_answers import FileProblem
from bough.api.why import TreeNodeName


class QuotaCondition(msgspec.Struct, frozen=True):
    """A lasting fact about a node of the quota tree."""

    type: str
    status: bool
    reason: str
    message: str


class QuotaRow(msgspec.Struct, frozen=True):
    """One flavor and resource at a node."""

    flavor: str
    resource: str
    nominal: int | None
    borrowing_limit: int | None
    lending_limit: int | None
    subtree_quota: int
    used: int
    balance: int
    #: `null`: a root has no one to lend to, and a tangled tree has no balances.
    lends: int | None
    borrows: int
    available: int
    debt: int


class QuotaPortion(msgspec.Struct, frozen=True):
    """One resource at a node, over all flavors; at a cohort of everything below it."""

    resource: str
    #: Its own quota.
    deserved: int
    used: int
    #: What it uses, and what waits in it asks for.
    asked: int
    #: What it could have now, if idle capacity were divided by weight, or as a policy divides;
    #: `null`: the policy divides nothing beforehand.
    fair: int | float | None


class QuotaShare(msgspec.Struct, frozen=True):
    """How much a node takes of what its parent could lend, for its weight."""

    #: `0.334`, rounded up; `infinite` where it has no weight and takes anything.
    share: str
    #: The resource that counts; empty where the share is 0.
    resource: str
    portions: list[QuotaPortion]


class QuotaNode(msgspec.Struct, frozen=True):
    """A cohort or a queue, with how deep it is in the drawing."""

    kind: str
    name: str
    parent: str | None
    depth: int
    implicit: bool
    weight: str
    cycle: list[str]
    conditions: list[QuotaCondition]
    resources: list[QuotaRow]
    #: `null`: a tangled tree has no shares.
    share: QuotaShare | None = None


class Compares(StrEnum):
    """What a policy compares nodes by."""

    #: What they use beyond their own quota, of all that their parent could lend.
    SHARE = "share"
    #: What they use of what they may have, which is divided when a cycle begins.
    FAIR_SHARE = "fair_share"
    #: The largest of what they use beyond their own part of GPUs, CPU and memory.
    DOMINANT_SHARE = "dominant_share"


class QuotaTreeAnswer(msgspec.Struct, frozen=True):
    """The tree, each node before those below it."""

    nodes: list[QuotaNode]
    problems: list[FileProblem]
    #: What all shares are, by the policy that was named; `null`: of queues of KAI fair shares, of
    #: all others shares.
    compares: Compares | None = None


class HoldingWorkload(msgspec.Struct, frozen=True):
    """A workload that uses some of what was asked for."""

    name: str
    amount: int
    priority: int


class HoldingQueue(msgspec.Struct, frozen=True):
    """A queue that uses some of what was asked for."""

    queue: str
    used: int
    nominal: int
    borrows: int
    workloads: list[HoldingWorkload]


class AdmitRefusal(msgspec.Struct, frozen=True):
    """Why a flavor cannot be had at all."""

    kind: str
    sentence: str
    resource: str | None
    cycle: list[str]


class OverQuotaRefusal(AdmitRefusal, frozen=True):
    """The inequality `balance - passed >= -borrowing_limit` fails at `node`."""

    requested: int
    available: int
    deficit: int
    potential: int
    never: bool
    node: TreeNodeName
    balance: int
    passed: int
    borrowing_limit: int | None
    holders: list[HoldingQueue]


class TriedFlavor(msgspec.Struct, frozen=True):
    """A flavor that was tried; no refusal: it fits."""

    flavor: str | None
    refusal: AdmitRefusal | None


class AdmitGroup(msgspec.Struct, frozen=True):
    """Resources that must get one flavor together; `flavor` is `null` where none fits."""

    requests: dict[str, int]
    flavor: str | None
    tried: list[TriedFlavor]


class AdmitAnswer(msgspec.Struct, frozen=True):
    """Whether a queue can take a request now."""

    queue: str
    requests: dict[str, int]
    #: The stop policy of a queue that takes nothing; left out where it takes workloads.
    held: str | msgspec.UnsetType
    admitted: bool
    groups: list[AdmitGroup]
    problems: list[FileProblem]
