"""How a cycle decides, as a value: every choice is a field, a preset is a value, nothing is a fork.

No decision asks for a preset's name.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from bough.model.admission_rules import (
    Preemption,
    PreemptionWithinQueue,
    ReclaimWithinCohort,
)
from bough.model.gang import Gang
from bough.model.gang_rules import (
    GangRules,
    GrowthTurn,
    IdleShare,
    LineOrder,
    VictimAge,
    VictimSearch,
)
from bough.model.place_policy import KAI_PLACEMENT


class Judging(StrEnum):
    """Against which state those that a cycle looks at are judged."""

    #: Each when its turn comes, with all that was decided before it.
    IN_TURN = "in_turn"
    #: All against the state at the beginning; then they are put in order and decided.
    TOGETHER = "together"


class Heads(StrEnum):
    """Which gangs of each queue a cycle looks at."""

    #: Only the first in line; those behind it wait for their turn.
    FIRST = "first"
    #: All in line.
    ALL = "all"


class OrderKey(StrEnum):
    """One criterion by which those that a cycle looks at are put in order."""

    #: What already holds quota and is looked at a second time.
    HOLDS_QUOTA = "holds_quota"
    #: What waits for room that is being freed for it.
    NOMINATED = "nominated"
    #: What needs the smaller part of the tree to borrow from; not borrowing comes first.
    BORROWING_HEIGHT = "borrowing_height"
    #: At each level of the tree: what leaves the child that it is below within its quota of what is
    #: asked for.
    WITHIN_QUOTA = "within_quota"
    #: At each level of the tree: the child whose share would then be the smallest for its weight.
    SHARE = "share"
    #: The higher priority.
    PRIORITY = "priority"
    #: What has waited longer.
    TIMESTAMP = "timestamp"


class ShareRule(StrEnum):
    """By which rule a gang may take from a queue that has more of the common pot.

    Compared are the two nodes below the lowest one that both queues are below, with what the gang
    asks for counted on its side.
    """

    #: The gang's own queue stays within its quota of what is scarce: shares are not asked for.
    WITHIN_QUOTA = "within_quota"
    #: Its side has no larger share than the other one has after the victim has ended.
    FINAL_SHARE = "final_share"
    #: Its side has a smaller share than the other one has as long as the victim runs.
    INITIAL_SHARE = "initial_share"
    #: The other side has more than its fair share of what all ask for, and more than its quota.
    FAIR_SHARE = "fair_share"
    #: The gang's side stays within its quota, and the other one has more than that.
    DESERVED = "deserved"


#: The rules that compare what nodes have with what they have a right to, not with each other.
DIVIDING = (ShareRule.FAIR_SHARE, ShareRule.DESERVED)


class RequeuingTimestamp(StrEnum):
    """Since when a workload counts as waiting whose pods did not become ready in time."""

    CREATION = "Creation"
    EVICTION = "Eviction"


class Policy(msgspec.Struct, frozen=True):
    """Every choice that a cycle leaves open. The defaults are those of Kueue's classical rules."""

    #: For people; no decision depends on it.
    name: str = ""
    judging: Judging = Judging.TOGETHER
    #: Only for those that are judged together: in turn, all in line are looked at.
    heads: Heads = Heads.FIRST
    #: What the gangs of a queue may take from others, where the queue itself does not say.
    preemption: Preemption = Preemption()
    #: What was told to end counts until it has ended, and is the first to be taken; otherwise it
    #: counts no more, and what starts in its place waits for its end.
    ending_counts: bool = True
    #: The criteria in order; what they leave equal is decided by uid and name.
    order: tuple[OrderKey, ...] = (
        OrderKey.HOLDS_QUOTA,
        OrderKey.BORROWING_HEIGHT,
        OrderKey.PRIORITY,
        OrderKey.TIMESTAMP,
    )
    #: The rules, in order, by which a gang takes from other queues; the queue that has most gives
    #: first. `final_share` and `initial_share` are tried one after the other. None of them: quota
    #: alone decides, and shares are not asked for.
    take_by_share: tuple[ShareRule, ...] = ()
    #: What was evicted for another gang takes nothing from that one, nor from those for which that
    #: one was evicted in turn: no gangs evict each other in circles.
    gives_way_once: bool = False
    #: By `fair_share` and `deserved`, a side that would have more than its fair share takes only as
    #: long as what it has of that, times this in percent, is less than what the other has of its.
    saturation_percent: int = 100
    requeuing_timestamp: RequeuingTimestamp = RequeuingTimestamp.EVICTION
    #: What lost borrowed quota to a gang that borrows counts as waiting since then, not since its
    #: creation. Only needed where priority is no criterion: else the loser would go first again.
    reclaimed_waits_anew: bool = False
    #: The priority is raised, or lowered, by what an annotation of the workload says.
    priority_boost: bool = False
    #: Fewer pods are admitted, down to each pod set's minimum, where not all of them fit.
    partial_admission: bool = True
    #: What wants the victims of a gang before it in the cycle gets another chance without them;
    #: otherwise it is passed over.
    recompute_overlap: bool = True
    #: What is passed over goes on, next time, behind the flavors that it has tried.
    keep_scan_progress: bool = True
    #: What cannot be admitted stands for everything of its shape in its queue.
    park_alike: bool = True

    #: How gangs are served.
    gangs: GangRules = GangRules()

    @property
    def orders_by_level(self) -> bool:
        """Whether those that are judged together are compared level by level of the tree."""
        return OrderKey.SHARE in self.order or OrderKey.WITHIN_QUOTA in self.order

    @property
    def shares_by_weight(self) -> bool:
        """Whether the weights of nodes can decide about anything that waits to start."""
        in_turn = self.judging is Judging.IN_TURN
        return in_turn or bool(self.take_by_share) or OrderKey.SHARE in self.order

    def weighs(self, gang: Gang) -> bool:
        """Whether the weights of nodes can decide about a gang."""
        if self.judging is Judging.TOGETHER:
            return bool(self.take_by_share) or self.orders_by_level
        return gang.preemptible or self.gangs.line is not LineOrder.GUARANTEED_FIRST

    @property
    def divides(self) -> bool:
        """Whether it is asked what is fair of what all ask for."""
        by_share = self.gangs.line is LineOrder.BY_FAIR_SHARE
        return by_share or any(rule in DIVIDING for rule in self.take_by_share)

    @property
    def compares_dominant(self) -> bool:
        """Whether the largest share of GPUs, CPU and memory decides who gets what is idle."""
        by_fair_share = self.gangs.line is LineOrder.BY_FAIR_SHARE
        return self.gangs.share_idle_by is IdleShare.DOMINANT_SHARE and not by_fair_share

    @property
    def works_out_shares(self) -> bool:
        """Whether a cycle has shares of its own, which the quotas of nodes alone do not tell."""
        return self.divides or self.compares_dominant

    @property
    def nominated_first(self) -> bool:
        """Whether those go first for which room is being freed; they also keep what is free."""
        return OrderKey.NOMINATED in self.order


#: What queues may take that lend what they do not use, and get it back from those below in rank.
_RECLAIM_ALL = Preemption(PreemptionWithinQueue.LOWER_PRIORITY, ReclaimWithinCohort.ANY)

#: The default: HIGH and NORMAL within their quota, LOW on whatever is idle, and evicted for them.
OSMO = Policy(
    name="osmo",
    judging=Judging.IN_TURN,
    preemption=_RECLAIM_ALL,
    ending_counts=False,
    gangs=GangRules(),
)
#: The classical rules of Kueue, with its defaults.
KUEUE = Policy(
    name="kueue",
    gangs=GangRules(
        victim_age=VictimAge.HELD,
        victim_search=VictimSearch.IN_ORDER,
        preemptible_takes_victims=True,
        strict_within_rank=False,
        reservations=0,
    ),
)
#: The fair sharing of Kueue, with its defaults: the one with the smallest share goes first, the one
#: with the largest gives back.
KUEUE_FAIR = msgspec.structs.replace(
    KUEUE,
    name="kueue-fair",
    order=(
        OrderKey.NOMINATED,
        OrderKey.WITHIN_QUOTA,
        OrderKey.SHARE,
        OrderKey.PRIORITY,
        OrderKey.TIMESTAMP,
    ),
    take_by_share=(ShareRule.WITHIN_QUOTA, ShareRule.FINAL_SHARE, ShareRule.INITIAL_SHARE),
    gives_way_once=True,
)
#: KAI Scheduler, without its fair shares.
KAI = Policy(
    name="kai",
    judging=Judging.IN_TURN,
    preemption=_RECLAIM_ALL,
    ending_counts=False,
    gives_way_once=True,
    gangs=GangRules(
        placement=KAI_PLACEMENT,
        line=LineOrder.BY_WEIGHT,
        growth=GrowthTurn.IN_LINE,
        growth_borrows=False,
        subgroups_by_name=True,
        victim_search=VictimSearch.IN_ORDER,
        preemptible_takes_victims=True,
        reclaim_within_quota=True,
        strict_within_rank=False,
        hopeless_aside=False,
        reservations=0,
    ),
)
#: The same with fair shares of what all queues ask for, reclaim up to them, and running gangs that
#: are moved so that another one fits.
KAI_FAIR = msgspec.structs.replace(
    KAI,
    name="kai-fair",
    take_by_share=(ShareRule.FAIR_SHARE, ShareRule.DESERVED),
    gangs=msgspec.structs.replace(
        KAI.gangs,
        line=LineOrder.BY_FAIR_SHARE,
        free_first=True,
        reclaim_within_quota=False,
        consolidation=17,
        move_victims=True,
    ),
)
