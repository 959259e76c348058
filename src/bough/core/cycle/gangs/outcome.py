"""What a cycle over gangs has decided so far, in the words of a plan.

Must not know why.
"""

from __future__ import annotations

from collections.abc import Iterable

from bough.core.cycle.gangs.claim import Claim
from bough.core.cycle.gangs.reclaim import Victim
from bough.core.cycle.gangs.world import World
from bough.core.place.result import Placement
from bough.model.plan import Bind, Eviction, EvictionRule, Nomination, Plan, Wait


class Outcome:
    """Decisions in the order in which they were made."""

    def __init__(self) -> None:
        self.binds: list[Bind] = []
        self.evictions: list[Eviction] = []
        self.nominations: dict[str, Nomination] = {}
        self.waits: dict[str, Wait] = {}
        #: Workloads of which something is evicted, and workloads of which something starts: nobody
        #: is told both.
        self.evicted: set[str] = set()
        self.served: set[str] = set()

    def bind(self, world: World, claim: Claim, placement: Placement, *, growth: bool) -> None:
        """Pods start where they were placed; or, if room must be freed first, are nominated."""
        self.served.add(claim.name)
        if placement.waits:
            before = self.nominations.get(claim.name, Nomination(claim.name))
            pods = {each.pod: each.node for each in placement.assignments}
            ends = world.ends_before(claim, placement, self.evicted)
            self.nominations[claim.name] = Nomination(
                claim.name, {**before.pods, **pods}, tuple(sorted({*before.waits_for, *ends}))
            )
            return
        self.binds += [
            Bind(claim.name, each.pod, each.node, growth) for each in placement.assignments
        ]

    def evict(self, preemptor: Claim, victims: Iterable[Victim]) -> None:
        """Pods end for somebody, who waits for that."""
        merged: dict[str, tuple[Victim, list[str]]] = {}
        for victim in victims:
            _, pods = merged.setdefault(victim.claim.name, (victim, []))
            pods += [pod.name for pod in victim.pods if pod.name not in pods]
        for name, (victim, pods) in merged.items():
            everything = {pod.name for pod in victim.claim.running} <= {*pods}
            self.evictions.append(
                Eviction(
                    name,
                    victim.source.rule,
                    () if everything else tuple(pods),
                    preemptor.name,
                    victim.source.level,
                )
            )
        self.evicted.update(merged)
        nominated = self.nominations[preemptor.name]
        self.nominations[preemptor.name] = Nomination(
            preemptor.name, nominated.pods, tuple(sorted({*nominated.waits_for, *merged}))
        )

    def evict_stale(self, claim: Claim) -> None:
        """A gang ends that runs with less than it needs."""
        self.evictions.append(Eviction(claim.name, EvictionRule.STALE))
        self.evicted.add(claim.name)

    def wait(self, wait: Wait) -> None:
        """A gang stays where it is."""
        self.waits[wait.workload] = wait

    def plan(self, version: int) -> Plan:
        """The decisions as a plan."""
        return Plan(
            version=version,
            binds=tuple(self.binds),
            evictions=tuple(self.evictions),
            nominations=tuple(self.nominations.values()),
            waits=tuple(self.waits.values()),
        )
