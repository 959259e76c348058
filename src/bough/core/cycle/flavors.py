"""The choice of flavors: one for each resource group of each pod set, in the queue's own order.

A flavor can be had at once, by reclaiming, by preempting, perhaps later, or not at all; what the
queue says about fungibility decides where the search stops and which flavor is the best of those
seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from itertools import chain
from typing import NamedTuple

from bough.core.cycle.forest import Leaf, Slot, reach_of
from bough.core.cycle.needs import Ask, Need, Scan, needs_of
from bough.core.quota.account import Charge, available, potential
from bough.model.admission_rules import (
    FlavorFungibility,
    FlavorPreference,
    FlavorSearch,
)
from bough.model.gang import Gang
from bough.model.quota import FlavorResource
from bough.model.reason import Refusal, RefusalKind, WaitReason
from bough.model.workload import Admission, Flavor

#: Reasons for which a flavor cannot be had, the worst last.
_SEVERITY = (
    WaitReason.LIMIT,
    WaitReason.TOO_LARGE,
    WaitReason.FLAVOR,
)


class Mode(IntEnum):
    """How a flavor could be had; the larger, the better."""

    NO_FIT = 0
    #: Quota would allow it after preemption, but nothing can be preempted now.
    NO_CANDIDATES = 1
    #: After preemption in the own queue.
    PREEMPT = 2
    #: After reclaiming from other queues only.
    RECLAIM = 3
    FIT = 4


class Choice(NamedTuple):
    """The flavor of one resource."""

    flavor: str
    mode: Mode
    #: From how far up the tree the queue borrows; 0: not at all.
    height: int


class Obstacle(NamedTuple):
    """Why a flavor cannot be had at once: in words, or the violated inequality."""

    reason: WaitReason
    text: str
    refusal: Refusal | None = None

    @property
    def sentence(self) -> str:
        """The same in words."""
        return self.text if self.refusal is None else self.refusal.sentence


class PodSetFlavors(NamedTuple):
    """What a pod set gets."""

    ask: Ask
    choices: dict[str, Choice]
    #: By resource: the position of the last flavor that was tried, where others are left to try.
    tried: dict[str, int]


class FlavorAssignment:
    """What a workload gets, as far as the search got."""

    __slots__ = (
        "admission",
        "charges",
        "description",
        "height",
        "mode",
        "obstacles",
        "pod_sets",
        "reason",
        "usage",
    )

    def __init__(self, height: int = 0) -> None:
        self.pod_sets: list[PodSetFlavors] = []
        self.usage: dict[FlavorResource, int] = {}
        #: The worst of all choices.
        self.mode = Mode.FIT
        self.height = height
        self.obstacles: list[Obstacle] = []
        #: Why not, where it fits nowhere.
        self.reason = WaitReason.LIMIT
        #: Why not, in words; where the usage would be counted; and the same as a plan says it. Each
        #: is set when it is first asked for; see `decide_pod_sets`.
        self.description: str | None = None
        self.charges: tuple[Charge, ...] | None = None
        self.admission: Admission | None = None

    @property
    def tried(self) -> dict[str, dict[str, int]]:
        """By pod set and resource, where the next search goes on."""
        return {each.ask.pod_set.name: each.tried for each in self.pod_sets if each.tried}

    @property
    def flavors(self) -> dict[str, dict[str, str]]:
        """By pod set and resource."""
        return {
            each.ask.pod_set.name: {name: choice.flavor for name, choice in each.choices.items()}
            for each in self.pod_sets
        }

    @property
    def scarce(self) -> tuple[FlavorResource, ...]:
        """What can be had only after a preemption, in order."""
        found = {
            FlavorResource(choice.flavor, resource)
            for each in self.pod_sets
            for resource, choice in each.choices.items()
            if choice.mode is not Mode.FIT
        }
        return tuple(sorted(found))

    def give(self, need: Need, choices: dict[str, Choice], tried: dict[str, int]) -> None:
        """Give pod sets their flavors."""
        if len(need.asks) == 1:
            self._give(need.asks[0], choices, tried)
            return
        for ask in need.asks:
            own = {name: choice for name, choice in choices.items() if name in ask.requests}
            self._give(ask, own, {name: tried[name] for name in own if name in tried})

    def _give(self, ask: Ask, choices: dict[str, Choice], tried: dict[str, int]) -> None:
        self.pod_sets.append(PodSetFlavors(ask, choices, tried))
        for resource, choice in choices.items():
            what = FlavorResource(choice.flavor, resource)
            self.usage[what] = self.usage.get(what, 0) + ask.requests.get(resource, 0)
            self.mode = min(self.mode, choice.mode)
            self.height = max(self.height, choice.height)


class FlavorQuestion(NamedTuple):
    """Which gang asks for flavors, and what is known."""

    leaf: Leaf
    gang: Gang
    flavors: Mapping[str, Flavor]
    #: How a flavor could be had for an amount that does not fit, and from how far up the tree.
    simulate: Callable[[Slot, int], tuple[Mode, int]]
    #: By pod set and resource: the position after which to go on.
    tried: Mapping[str, Mapping[str, int]] = {}
    #: By pod set and resource: only this flavor will do.
    pinned: Mapping[str, Mapping[str, str]] | None = None
    #: What the gang needs for all of its pods, where that is known already.
    needs: Sequence[Need] | None = None


def assign_flavors(
    question: FlavorQuestion, counts: Sequence[int] | None = None
) -> FlavorAssignment:
    """Choose flavors for every pod set, or for so many pods of each."""
    assignment = FlavorAssignment()
    needs = question.needs if counts is None else None
    if needs is None:
        needs = needs_of(question.leaf, question.gang, counts)
    for need in needs:
        choices: dict[str, Choice] = {}
        tried: dict[str, int] = {}
        for scan in need.scans:
            found = _Search(question, need, scan, assignment).run()
            if found is None:
                assignment.mode = Mode.NO_FIT
                return assignment
            choices.update(found[0])
            tried.update(found[1])
        assignment.give(need, choices, tried)
    return assignment


class _Search:
    """The search through the flavors of one resource group."""

    __slots__ = ("_assignment", "_fungibility", "_need", "_obstacles", "_question", "_scan")

    def __init__(
        self,
        question: FlavorQuestion,
        need: Need,
        scan: Scan,
        assignment: FlavorAssignment,
    ) -> None:
        self._question = question
        self._need = need
        self._scan = scan
        self._assignment = assignment
        self._fungibility = question.leaf.queue.rules.fungibility
        #: For each flavor that was looked at.
        self._obstacles: list[list[Obstacle]] = []

    def run(self) -> tuple[dict[str, Choice], dict[str, int]] | None:
        """The best flavor's choices and where to go on next time; `None` if no flavor will do."""
        group = self._scan.group
        if group is None:
            text = f"queue {self._question.leaf.queue.name} does not list {self._scan.resource}"
            self._assignment.obstacles.append(Obstacle(WaitReason.FLAVOR, text))
            self._assignment.reason = WaitReason.FLAVOR
            return None
        best: dict[str, Choice] = {}
        best_rank = _rank(Mode.NO_FIT, 0, self._fungibility)
        position = first = self._first_position(len(group.flavors))
        for position in range(first, len(group.flavors)):
            flavor, slots = group.flavors[position]
            self._obstacles.append([])
            if not self._suits(flavor):
                continue
            choices, mode, height = self._try(flavor, slots)
            if _is_good_enough(mode, height, self._fungibility):
                best = choices
                break
            rank = _rank(mode, height, self._fungibility)
            if rank > best_rank:
                best, best_rank = choices, rank
        if not best or any(choice.mode is not Mode.FIT for choice in best.values()):
            self._assignment.obstacles += chain.from_iterable(self._obstacles)
        if not best:
            self._assignment.reason = _reason_of(self._obstacles)
            return None
        if position == len(group.flavors) - 1:
            return best, {}
        return best, dict.fromkeys(best, position)

    def _first_position(self, count: int) -> int:
        if not self._question.tried:
            return 0
        tried = self._question.tried.get(self._need.asks[0].pod_set.name)
        position = -1 if tried is None else tried.get(self._scan.resource, -1)
        return position + 1 if position + 1 < count else 0

    def _suits(self, name: str) -> bool:
        """Whether all the pod sets may use the flavor."""
        pinned = self._question.pinned
        if pinned is not None:
            names = {ask.pod_set.name for ask in self._need.asks}
            if all(pinned.get(each, {}).get(self._scan.resource) != name for each in names):
                return False
        fault = self._need.fault_of(name, self._question.flavors)
        if fault is not None:
            self._obstacles[-1].append(Obstacle(WaitReason.FLAVOR, fault))
        return fault is None

    def _try(self, flavor: str, slots: dict[str, Slot]) -> tuple[dict[str, Choice], Mode, int]:
        """Every resource on one flavor; the flavor is as good as the worst of them."""
        choices: dict[str, Choice] = {}
        worst = Mode.FIT, 0
        for resource in self._scan.wanted:
            slot = slots.get(resource)
            if slot is None:
                text = f"flavor {flavor} does not provide {resource}"
                self._obstacles[-1].append(Obstacle(WaitReason.FLAVOR, text))
                return {}, Mode.NO_FIT, 0
            mode, height = self._measure(slot)
            if mode is Mode.NO_FIT:
                return {}, mode, height
            if _rank(mode, height, self._fungibility) < _rank(*worst, self._fungibility):
                worst = mode, height
            choices[resource] = Choice(flavor, mode, height)
        return choices, worst[0], worst[1]

    def _measure(self, slot: Slot) -> tuple[Mode, int]:
        """How one resource on one flavor could be had, on top of what earlier pod sets got."""
        leaf, account = self._question.leaf, slot.account
        amount = self._need.requests[slot.what.resource]
        if self._assignment.usage:
            amount += self._assignment.usage.get(slot.what, 0)
        if amount <= max(0, available(account)[0]):
            return Mode.FIT, reach_of(leaf, account, amount).height
        most = potential(account)
        self._refuse(slot, amount, most)
        if amount > most:
            return Mode.NO_FIT, 0
        reach = reach_of(leaf, account, amount)
        if amount <= account.nominal or reach.partial or leaf.preempts_while_borrowing:
            return self._question.simulate(slot, amount)
        return Mode.NO_FIT, reach.height

    def _refuse(self, slot: Slot, amount: int, most: int) -> None:
        leaf = self._question.leaf
        refusal = leaf.tree.refusal(leaf.queue.name, {slot.what: amount})
        if refusal is not None:
            never = refusal.kind is RefusalKind.NOT_LISTED or amount > most
            reason = WaitReason.TOO_LARGE if never else WaitReason.LIMIT
            self._obstacles[-1].append(Obstacle(reason, "", refusal))


def _rank(mode: Mode, height: int, fungibility: FlavorFungibility) -> tuple[int, ...]:
    """What flavors are compared by; the larger, the better. All that do not fit are equal."""
    if mode is Mode.NO_FIT:
        return (0,)
    viable = 1 if mode is Mode.NO_CANDIDATES else 2
    if fungibility.preference is FlavorPreference.PREEMPTION_OVER_BORROWING:
        return viable, -height, mode
    return viable, mode, -height


def _is_good_enough(mode: Mode, height: int, fungibility: FlavorFungibility) -> bool:
    """Whether the flavors behind this one need not be tried."""
    if mode is Mode.NO_FIT or mode is Mode.NO_CANDIDATES:
        return False
    next_flavor = FlavorSearch.TRY_NEXT_FLAVOR
    if mode is not Mode.FIT and fungibility.when_can_preempt is next_flavor:
        return False
    return not (height > 0 and fungibility.when_can_borrow is next_flavor)


def _reason_of(obstacles: list[list[Obstacle]]) -> WaitReason:
    """Why a group cannot be had: the mildest of its flavors, each as bad as its worst obstacle."""
    worst = [
        max((each.reason for each in flavor), key=_SEVERITY.index) for flavor in obstacles if flavor
    ]
    return min(worst, key=_SEVERITY.index, default=WaitReason.FLAVOR)
