"""What a cycle has decided so far, in the words of a plan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from bough.core.cycle.claim import Claim
from bough.core.cycle.victim import Victim
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.place.result import Placement
from bough.model.gang import Pod
from bough.model.plan import Admit, Bind, Eviction, EvictionRule, Nomination, Plan, Wait
from bough.model.quota import TreeNode
from bough.model.workload import Admission, Assignment


class Move(NamedTuple):
    """Pods of a running gang that go to other nodes."""

    claim: Claim
    #: Pod to node; without those that stay where they are.
    places: dict[str, str]
    #: All that were lifted.
    pods: tuple[Pod, ...]


class Outcome:
    """Decisions in the order in which they were made."""

    def __init__(self) -> None:
        self.admits: list[Admit] = []
        self.binds: list[Bind] = []
        self.evictions: list[Eviction] = []
        self.nominations: dict[str, Nomination] = {}
        self.waits: dict[str, Wait] = {}
        #: Gangs of which something is evicted, and gangs of which something starts: no gang is
        #: both.
        self.evicted: set[str] = set()
        self.served: set[str] = set()
        #: Of the latter, those of which pods start.
        self.bound: dict[str, Claim] = {}
        #: Gangs whose end another one relies on, including those that were told to end before.
        self.taken: dict[str, Claim] = {}
        #: Where pods of gangs that are moved go, by gang.
        self.moved: dict[str, dict[str, str]] = {}
        #: How often anything was told to end; what is told to stay after all counts as well.
        self.endings = 0

    def admit(self, claim: Claim, admission: Admission) -> None:
        """A gang gets quota for its pod sets."""
        self.served.add(claim.name)
        self.admits.append(Admit(claim.name, admission))

    def bind(self, copy: WorkingCopy, claim: Claim, placement: Placement, *, growth: bool) -> None:
        """Pods start where they were placed; or, if room must be freed first, are nominated."""
        self.served.add(claim.name)
        self.bound[claim.name] = claim
        self.waits.pop(claim.name, None)
        if placement.waits:
            pods = {each.pod: each.node for each in placement.assignments}
            self.nominate(claim, pods, copy.ends_before(claim, placement, self.evicted))
            return
        self.binds += [
            Bind(claim.name, each.pod, each.node, growth) for each in placement.assignments
        ]

    def nominate(
        self,
        claim: Claim,
        pods: dict[str, str],
        ends: Iterable[str],
        promised: tuple[Assignment, ...] = (),
    ) -> None:
        """A gang starts when others have ended."""
        before = self.nominations.get(claim.name, Nomination(claim.name))
        self.nominations[claim.name] = Nomination(
            claim.name, {**before.pods, **pods}, tuple(sorted({*before.waits_for, *ends})), promised
        )

    def evict(self, preemptor: Claim, victims: Iterable[Victim]) -> None:
        """Gangs end, in part or whole, for another; what was told before is not told again."""
        merged: dict[str, tuple[Victim, list[str]]] = {}
        for victim in victims:
            _, pods = merged.setdefault(victim.claim.name, (victim, []))
            pods += [pod.name for pod in victim.pods if pod.name not in pods]
        for name, (victim, pods) in merged.items():
            claim = victim.claim
            self.taken[name] = claim
            if claim.evicted or (claim.counted and name in self.evicted):
                continue
            everything = {pod.name for pod in claim.running} <= {*pods}
            self._end(name, victim.rule, () if everything else tuple(pods), preemptor, victim.level)

    def move(self, copy: WorkingCopy, preemptor: Claim, moves: Iterable[Move]) -> None:
        """Gangs end where they are and start again elsewhere, for another.

        What was moved before may go to yet another node, or stay where it is after all.
        """
        above = copy.path(preemptor.queue)
        for claim, places, lifted in moves:
            before = self.moved.get(claim.name, {})
            names = {pod.name for pod in lifted}
            after = {pod: node for pod, node in before.items() if pod not in names} | places
            if before:
                self._stay(claim)
            if not after:
                if claim.name not in self.evicted and not claim.ending:
                    self._wait_no_more(claim.name)
                continue
            level = next((node for node in copy.path(claim.queue) if node in above), above[-1])
            everything = {pod.name for pod in claim.running} <= after.keys()
            pods = () if everything else tuple(after)
            self._end(claim.name, EvictionRule.MOVE, pods, preemptor, level)
            self.moved[claim.name] = after
            self.served.add(claim.name)
            self.nominate(claim, after, (claim.name,))

    def _stay(self, claim: Claim) -> None:
        """Take back that a gang moves; other pods of it may end all the same."""
        name = claim.name
        del self.moved[name], self.nominations[name]
        self.evictions = [
            each
            for each in self.evictions
            if each.workload != name or each.rule is not EvictionRule.MOVE
        ]
        if all(each.workload != name for each in self.evictions):
            self.evicted.discard(name)
        self.served.discard(name)
        self.endings += 1

    def _wait_no_more(self, name: str) -> None:
        """Let no other gang wait for the end of one that stays."""
        for each in list(self.nominations.values()):
            if name in each.waits_for:
                rest = tuple(other for other in each.waits_for if other != name)
                self.nominations[each.workload] = msgspec.structs.replace(each, waits_for=rest)

    def _end(
        self,
        name: str,
        rule: EvictionRule,
        pods: tuple[str, ...],
        preemptor: Claim,
        level: TreeNode,
    ) -> None:
        self.evictions.append(Eviction(name, rule, pods, preemptor.name, level))
        self.evicted.add(name)
        self.endings += 1

    def end(self, claim: Claim, rule: EvictionRule, level: TreeNode | None = None) -> None:
        """A gang ends for no other: it is stale, or its queue is drained."""
        if claim.name not in self.evicted:
            self.evictions.append(Eviction(claim.name, rule, level=level))
            self.evicted.add(claim.name)
            self.endings += 1

    def wait(self, wait: Wait) -> None:
        """A gang stays where it is."""
        self.waits[wait.workload] = wait

    def plan(self, version: int) -> Plan:
        """The decisions as a plan."""
        return Plan(
            version=version,
            admits=tuple(self.admits),
            binds=tuple(self.binds),
            evictions=tuple(self.evictions),
            nominations=tuple(self.nominations.values()),
            waits=tuple(self.waits.values()),
        )
