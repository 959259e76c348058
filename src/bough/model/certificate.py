"""Certificates: why a workload waits or is evicted, and which gangs hold what is missing.

Every sentence a person reads is made from these fields, so that machines can read the same.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from bough.model.plan import EvictionRule, PodShortage
from bough.model.quota import FlavorResource, TreeNode
from bough.model.reason import Refusal
from bough.model.shortage import Lack, Short


class Verdict(StrEnum):
    """What a plan makes of a workload."""

    WAITS = "waits"
    #: It starts as soon as others have ended, which are told to.
    NOMINATED = "nominated"
    STARTS = "starts"
    #: It has what it needs.
    RUNS = "runs"
    #: None of its pods waits or runs.
    ENDED = "ended"


class Ledger(StrEnum):
    """Which use a violated inequality counts."""

    #: Only what is guaranteed; it may exceed no quota.
    GUARANTEED = "guaranteed"
    #: Everything.
    TOTAL = "total"


class Missing(msgspec.Struct, frozen=True):
    """What there is not enough of."""

    resource: str
    amount: int
    #: `None`: on the nodes, whatever flavor they are of.
    flavor: str | None = None


class Holder(msgspec.Struct, frozen=True):
    """A workload that has some of what is missing."""

    workload: str
    queue: str
    #: How much it has.
    amount: int
    #: How much of that is guaranteed to it, how much is borrowed, and how much may be evicted for
    #: the workload that waits.
    guaranteed: int = 0
    borrowed: int = 0
    evictable: int = 0
    #: Who submitted it.
    owner: str = ""
    priority: int = 0
    #: Since when it has run; `None`: that is not known.
    since_ms: int | None = None
    #: It gets this only by the plan that leaves the other waiting.
    starting: bool = False


class FlavorOption(msgspec.Struct, frozen=True):
    """Why one flavor of a queue cannot be had."""

    flavor: str
    #: Why its nodes do not suit the pods.
    unsuitable: str | None = None
    #: Why the queue cannot take it there. Neither: this flavor could be had.
    refusal: Refusal | None = None


class NodeShare(msgspec.Struct, frozen=True):
    """How much of what its parent could lend a node of the quota tree took for its weight."""

    node: TreeNode
    #: `0.334`, rounded up; `infinite` where it has no weight and takes anything.
    share: str
    weight: str
    #: The resource that counts; empty where the share is 0.
    resource: str = ""


class Certificate(msgspec.Struct, frozen=True):
    """Why a workload is where it is."""

    workload: str
    queue: str
    verdict: Verdict
    #: The dominant reason in one sentence.
    sentence: str
    #: The same as one word that programs can rely on: `WaitReason`.
    reason: str = ""
    owner: str = ""
    #: The violated inequality, and which use it counts.
    refusal: Refusal | None = None
    ledger: Ledger | None = None
    #: The same for each flavor, where there are several or one does not suit.
    options: tuple[FlavorOption, ...] = ()
    #: What lacks pods, from the gang itself down.
    shortages: tuple[PodShortage, ...] = ()
    #: What lacks nodes, and why they are not there.
    lacks: tuple[Lack, ...] = ()
    short: tuple[Short, ...] = ()
    #: Constraints on topologies, or levels, that there are not, each in one sentence.
    unresolved: tuple[str, ...] = ()
    #: Which gang is first in line.
    head: str | None = None
    #: The gangs for which quota, or free nodes, are kept that it could use.
    kept_for: tuple[str, ...] = ()
    #: The cohorts of the cycle that stops its queue, each the child of the next.
    cycle: tuple[str, ...] = ()
    #: Whose end it waits for, if room is being freed for it.
    waits_for: tuple[str, ...] = ()
    missing: Missing | None = None
    #: The gangs that hold what is missing: what may be evicted for it first, then what has most.
    holders: tuple[Holder, ...] = ()
    #: Where shares decide: what its side of the tree would have, and what the other one has.
    shares: tuple[NodeShare, ...] = ()


class Excess(msgspec.Struct, frozen=True):
    """A node of the quota tree that uses more than its quota: `T = quota - used < 0`."""

    node: TreeNode
    flavor_resource: FlavorResource
    quota: int
    used: int
    #: The part of its quota that others use beyond what is promised to them.
    withdrawn: int = 0

    @property
    def balance(self) -> int:
        """`T(x,r)`."""
        return self.quota - self.withdrawn - self.used


class EvictionCertificate(msgspec.Struct, frozen=True):
    """Why a workload, or some of its pods, must end."""

    workload: str
    queue: str
    rule: EvictionRule
    sentence: str
    owner: str = ""
    #: The pods that go; empty: all of them.
    pods: tuple[str, ...] = ()
    #: The gang for which it ends; `None`: for no other.
    preemptor: str | None = None
    preemptor_queue: str | None = None
    preemptor_owner: str = ""
    #: What is compared where both are in the same queue.
    priority: int = 0
    preemptor_priority: int | None = None
    #: The node of the quota tree at which it was decided: the lowest that both are below.
    level: TreeNode | None = None
    #: From the queue up to that node: what used more than its quota.
    excesses: tuple[Excess, ...] = ()
    #: Where shares decided: those of the two nodes below that one, the victim's side first.
    shares: tuple[NodeShare, ...] = ()
    #: Why the preemptor could not start beside it; `None`: quota was there, but no place.
    need: Refusal | None = None
