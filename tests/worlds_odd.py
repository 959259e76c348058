"""Worlds as a careless or a hostile user would declare them, in both forms, for every preset.

Quotas of zero and, above the queues, below it; gangs without pods, or larger than any machine; ties
in everything but the name; nodes that are cordoned while queues drain.
"""

from __future__ import annotations

from random import Random

import msgspec

from bough.core.cycle.memo import Memo
from bough.model.admission_rules import StopPolicy
from bough.model.cluster import Resources
from bough.model.gang import Gang, Pod, SubGroup
from bough.model.policy import Policy
from bough.model.quota import FlavorQuotas, Quota, ResourceGroup
from bough.model.snapshot import Snapshot
from bough.model.workload import PodSet, PodTemplate
from tests.strategies_cycle import LOW
from tests.worlds_mixed import MixedGenerator, MixedHistory

replace = msgspec.structs.replace
#: What no machine has; the last two are more than 64 bits can count.
HUGE = (10**6, 2**31, 2**63 - 1, 2**63, 2**70)
#: No constant of the program: more than it would like to walk through one by one.
MANY_SUBGROUPS = 60


class OddGenerator(MixedGenerator):
    """Makes up what is allowed, and what hardly anyone would write."""

    def gang(self, snapshot: Snapshot, priority: int | None = None) -> Gang:
        made = super().gang(snapshot, priority)
        random = self.random
        # Ties in priority and time, so that names decide.
        made = replace(made, priority=LOW, submitted_ms=1000) if random.random() < 0.5 else made
        match random.choice("-----ehmz"):
            case "e":
                return replace(made, pods=(), subgroups=(), minimum=random.choice((None, 1)))
            case "h":
                amount = random.choice(HUGE)
                return _asking(made, Resources(gpus=amount, cpu_milli=amount))
            case "m":
                return _many(made, random)
            case "z":
                return _asking(made, Resources())
            case _:
                return made

    def workload(self, snapshot: Snapshot) -> Gang:
        made = super().workload(snapshot)
        if self.random.random() < 0.7:
            return made
        count = self.random.choice((0, 0, *HUGE))
        least = self.random.choice((None, 1 if count else None))
        return replace(made, pod_sets=(PodSet("odd", count, PodTemplate({"gpu": 1}), least),))

    def _quotas(self, *, leaf: bool) -> tuple[ResourceGroup, ...]:
        random = self.random
        if random.random() < 0.6:
            return super()._quotas(leaf=leaf)

        def quota() -> Quota:
            nominal = random.choice((0, 0, *HUGE[:3])) if leaf else random.randint(-6, 2)
            return Quota(nominal, random.choice((None, 0, HUGE[0])), random.choice((None, 0, 1)))

        quotas = tuple(FlavorQuotas(name, {"gpu": quota()}) for name in self.flavors)
        return (ResourceGroup(("gpu",), quotas),)


def _asking(gang: Gang, requests: Resources) -> Gang:
    return replace(gang, pods=tuple(replace(pod, requests=requests) for pod in gang.pods))


def _many(gang: Gang, random: Random) -> Gang:
    """The gang with very many subgroups, most of which are optional, and some without pods."""
    names = [f"s{at:04}" for at in range(MANY_SUBGROUPS)]
    one = Resources(gpus=1, cpu_milli=1, memory_bytes=1)
    return replace(
        gang,
        subgroups=tuple(SubGroup(name, None, 1) for name in names),
        pods=tuple(Pod(f"{name}-0", name, one) for name in names if random.random() < 0.9),
        minimum=random.choice((1, 2, MANY_SUBGROUPS)),
        constraint=None,
        sets=(),
    )


class OddHistory(MixedHistory):
    """Such a world over time."""

    def __init__(self, random: Random, policy: Policy, memo: Memo | None = None) -> None:
        super().__init__(random, policy, memo)
        self.generator = OddGenerator(random, flavors=len(self.generator.flavors))
        self.snapshot = self.generator.world()

    def happen(self) -> None:
        """As ever; or a queue drains at the moment when a node is cordoned."""
        if self.random.random() < 0.85:
            super().happen()
            return
        queue = self.random.choice(self.snapshot.queues)
        stop = self.random.choice((StopPolicy.HOLD_AND_DRAIN, StopPolicy.NONE))
        self.declare(replace(queue, rules=replace(queue.rules, stop=stop)))
        self._cordon(self.random.choice(self.snapshot.nodes).name)
