"""How a cycle serves gangs: every choice is a field. The defaults are the osmo preset's."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from bough.model.place_policy import PlacePolicy


class LineOrder(StrEnum):
    """In which order gangs are served."""

    #: What is guaranteed by priority and submit time; then what may borrow, by weight.
    GUARANTEED_FIRST = "guaranteed_first"
    #: All by weight, between the queues; within a queue by priority and submit time.
    BY_WEIGHT = "by_weight"
    #: All by how far the queues are from their fair shares; within a queue as before.
    BY_FAIR_SHARE = "by_fair_share"


class IdleShare(StrEnum):
    """By what queues that borrow are compared while idle capacity is shared."""

    #: What they would have beyond their quota of what is asked for, for their weight.
    WEIGHT = "weight"
    #: The largest of what they would have beyond their own part of GPUs, CPU and memory, for their
    #: weight.
    DOMINANT_SHARE = "dominant_share"


class GrowthTurn(StrEnum):
    """When optional units of elastic gangs are started."""

    #: After everything that is needed.
    LAST = "last"
    #: A gang keeps its turn in the line until it has grown.
    IN_LINE = "in_line"


class VictimAge(StrEnum):
    """Of victims of one priority the newest goes first: the one that came, or got quota, last."""

    SUBMITTED = "submitted"
    HELD = "held"


class VictimSearch(StrEnum):
    """Which of several sets of victims is taken."""

    #: The one that breaks the fewest gangs, then the one that ends the fewest GPUs.
    FEWEST = "fewest"
    #: In order until it is enough; then those that are not needed are put back, the last first.
    IN_ORDER = "in_order"


class RuntimeOf(StrEnum):
    """Whose minimum runtime keeps a gang safe from another queue."""

    #: That of the node below the lowest one that both queues are below.
    BELOW_COMMON = "below_common"
    #: That of its own queue.
    QUEUE = "queue"


class GangRules(msgspec.Struct, frozen=True):
    """Every choice that a cycle leaves open about gangs."""

    #: How nodes are chosen.
    placement: PlacePolicy = PlacePolicy()
    line: LineOrder = LineOrder.GUARANTEED_FIRST
    #: By what idle capacity is shared in the first two lines, and to growth in all that comes last.
    share_idle_by: IdleShare = IdleShare.WEIGHT
    growth: GrowthTurn = GrowthTurn.LAST
    #: What a gang has beyond its minimum is borrowed, whatever the gang's own rank: it may exceed
    #: the quota, and is given back for anything that is needed. Otherwise it has the gang's rank:
    #: it is kept as the gang is, and takes victims, one unit in a cycle, as the gang may.
    growth_borrows: bool = True
    #: Ties between subgroups are broken by name; otherwise by position in the spec.
    subgroups_by_name: bool = False
    #: Whether room that is free, or being freed, is given away; otherwise only that starts for
    #: which victims are taken.
    allocate: bool = True
    #: Free room is given to all in line before anything ends or moves for one of them; otherwise
    #: each gang in its turn has both.
    free_first: bool = False
    #: Whether victims are looked for in other queues that are above their quota.
    reclaim: bool = True
    #: Whether victims are looked for among lower priorities of the same queue.
    preempt: bool = True
    victim_age: VictimAge = VictimAge.SUBMITTED
    victim_search: VictimSearch = VictimSearch.FEWEST
    #: What is itself preemptible may take victims, too: of lower priority in its own queue and, as
    #: long as its queue stays within its quota, from others. Otherwise only what is guaranteed may.
    preemptible_takes_victims: bool = False
    #: What is preemptible takes from others only while every node that its queue is below, and the
    #: victim is not, stays within its quota; otherwise while one of them could hold it.
    reclaim_within_quota: bool = False
    #: How many running gangs may be moved, at most, so that a preemptible one fits that has quota.
    consolidation: int = 0
    #: What has to end for another, and has a place elsewhere, is moved.
    move_victims: bool = False
    #: No gang of the same queue and rank passes an earlier one that waits for quota.
    strict_within_rank: bool = True
    #: What would not fit even if nothing ran has no turn where idle capacity is shared by weight:
    #: its queue is weighed by the next in line; otherwise by what it asks for.
    hopeless_aside: bool = True
    #: A whole gang that has run for less than this is no victim, unless its queue says otherwise.
    minimum_runtime_ms: int = 0
    #: Whose minimum runtime keeps a gang safe from other queues.
    runtime_of: RuntimeOf = RuntimeOf.BELOW_COMMON
    #: How long a victim is given to end by itself after it was told.
    grace_ms: int = 30_000
    #: Workloads that one cycle evicts at most; `None`: as many as it takes.
    eviction_limit: int | None = None
    #: How long a gang may run with less than its minimum; `None`: for ever.
    staleness_grace_ms: int | None = 60_000
    #: For how many gangs that wait for a place room is kept from what could not be evicted again.
    reservations: int = 4
