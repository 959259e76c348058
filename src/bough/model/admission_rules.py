"""How a queue admits: the order of its workloads, the choice of flavors, preemption, namespaces.

The words are those of Kueue's ClusterQueue; the defaults are its defaults. core.cycle carries it
out.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from bough.model.cluster import Match


class QueueingStrategy(StrEnum):
    """What happens behind a workload that does not fit."""

    #: Others may pass it.
    BEST_EFFORT_FIFO = "BestEffortFIFO"
    #: All others wait for it.
    STRICT_FIFO = "StrictFIFO"


class StopPolicy(StrEnum):
    """Whether a queue is held."""

    NONE = "None"
    #: Nothing new is admitted.
    HOLD = "Hold"
    #: And what runs is evicted.
    HOLD_AND_DRAIN = "HoldAndDrain"


class FlavorSearch(StrEnum):
    """What to do about the next flavors once this one would do by borrowing or preempting."""

    MAY_STOP_SEARCH = "MayStopSearch"
    TRY_NEXT_FLAVOR = "TryNextFlavor"


class FlavorPreference(StrEnum):
    """Which of two flavors is better where neither fits as it is."""

    BORROWING_OVER_PREEMPTION = "BorrowingOverPreemption"
    PREEMPTION_OVER_BORROWING = "PreemptionOverBorrowing"


class FlavorFungibility(msgspec.Struct, frozen=True):
    """How the flavors of a resource group are searched."""

    when_can_borrow: FlavorSearch = FlavorSearch.MAY_STOP_SEARCH
    when_can_preempt: FlavorSearch = FlavorSearch.TRY_NEXT_FLAVOR
    #: `None`: as if borrowing were preferred.
    preference: FlavorPreference | None = None


class PreemptionWithinQueue(StrEnum):
    """What a workload may preempt in its own queue."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    LOWER_OR_NEWER_EQUAL_PRIORITY = "LowerOrNewerEqualPriority"


class ReclaimWithinCohort(StrEnum):
    """What a workload may reclaim in other queues that borrow."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    ANY = "Any"


class BorrowWithinCohort(StrEnum):
    """Whether a workload that itself borrows may reclaim from other queues."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"


class Preemption(msgspec.Struct, frozen=True):
    """What a queue's workloads may take from others."""

    within_queue: PreemptionWithinQueue = PreemptionWithinQueue.NEVER
    reclaim_within_cohort: ReclaimWithinCohort = ReclaimWithinCohort.NEVER
    borrow_within_cohort: BorrowWithinCohort = BorrowWithinCohort.NEVER
    #: While borrowing, only workloads up to this priority are taken; `None`: any lower one.
    borrow_priority_threshold: int | None = None


class AdmissionCheck(msgspec.Struct, frozen=True):
    """A check that must pass after quota is reserved."""

    name: str
    #: Only for these flavors; empty: for all.
    on_flavors: tuple[str, ...] = ()


class AdmissionMode(StrEnum):
    """Whether past usage of local queues orders a queue's workloads."""

    USAGE_BASED = "UsageBasedAdmissionFairSharing"
    NONE = "NoAdmissionFairSharing"


class MigrationMode(StrEnum):
    """What happens after a workload that was tried on several flavors got one."""

    TRY_PREFERRED_FLAVORS = "TryPreferredFlavors"
    RETAIN_FIRST_ADMISSION = "RetainFirstAdmission"


class ConcurrentAdmission(msgspec.Struct, frozen=True):
    """A workload is tried on several flavors at once."""

    mode: MigrationMode | None = None
    #: Flavors after this one are not good enough; `None`: all are.
    last_acceptable_flavor: str | None = None


class AdmissionRules(msgspec.Struct, frozen=True):
    """Everything that a queue says about admission beyond its quota."""

    queueing: QueueingStrategy = QueueingStrategy.BEST_EFFORT_FIFO
    #: Conditions on the labels of a namespace; `None` lets no namespace in, `()` every one.
    namespaces: tuple[Match, ...] | None = None
    fungibility: FlavorFungibility = FlavorFungibility()
    #: `None`: the policy says it.
    preemption: Preemption | None = None
    checks: tuple[AdmissionCheck, ...] = ()
    stop: StopPolicy = StopPolicy.NONE
    mode: AdmissionMode | None = None
    concurrent: ConcurrentAdmission | None = None
