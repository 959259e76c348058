"""Random worlds with gangs of pods and gangs of pod sets in the same queues, and histories."""

from __future__ import annotations

from random import Random

from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan
from bough.core.gang.from_workload import gang_of_workload
from bough.model.admission_rules import (
    AdmissionRules,
    BorrowWithinCohort,
    FlavorFungibility,
    FlavorSearch,
    Preemption,
    PreemptionWithinQueue,
    QueueingStrategy,
    ReclaimWithinCohort,
    StopPolicy,
)
from bough.model.gang import Gang
from bough.model.plan import Plan
from bough.model.policy import Policy
from bough.model.quota import Queue
from bough.model.snapshot import Parked, Snapshot
from bough.model.workload import Flavor, PodSet, PodTemplate, Workload, WorkloadCondition
from tests.simulation import Simulation, replace
from tests.strategies_cycle import LOW, NORMAL, Generator


class MixedGenerator(Generator):
    """Makes up worlds of both forms; queues may say something of their own."""

    def world(self) -> Snapshot:
        found = super().world()
        queues = tuple(replace(each, rules=self._rules()) for each in found.queues)
        return replace(found, queues=queues, flavors=tuple(map(Flavor, self.flavors)))

    def workload(self, snapshot: Snapshot) -> Gang:
        """A gang of pod sets that waits in some queue."""
        random = self.random
        self._count += 1
        sets = []
        for index in range(random.choice((1, 1, 2))):
            count = random.randint(1, 3)
            least = random.randint(1, count) if random.random() < 0.3 else None
            template = PodTemplate({"gpu": random.choice((0, 1, 1, 2))})
            sets.append(PodSet(f"set-{index}", count, template, least))
        made = Workload(
            f"w{self._count:02}",
            "ns",
            tuple(sets),
            priority=random.choice((LOW, LOW, NORMAL)),
            uid=f"{self._count:02}",
            created_ms=snapshot.now_ms,
        )
        return gang_of_workload(made, random.choice(snapshot.queues).name)

    def ruled(self, queue: Queue) -> Queue:
        """The queue with another quota, or other rules."""
        if self.random.random() < 0.5:
            return replace(queue, resource_groups=self._quotas(leaf=True))
        return replace(queue, rules=self._rules())

    def _rules(self) -> AdmissionRules:
        random = self.random
        preemption = None
        if random.random() < 0.6:
            preemption = Preemption(
                random.choice(list(PreemptionWithinQueue)),
                random.choice(list(ReclaimWithinCohort)),
                random.choice(list(BorrowWithinCohort)),
                random.choice((None, LOW, NORMAL)),
            )
        return AdmissionRules(
            queueing=random.choice((*[QueueingStrategy.BEST_EFFORT_FIFO] * 3, *QueueingStrategy)),
            namespaces=(),
            fungibility=FlavorFungibility(
                random.choice(list(FlavorSearch)), random.choice(list(FlavorSearch))
            ),
            preemption=preemption,
            stop=random.choice((*[StopPolicy.NONE] * 18, *StopPolicy)),
        )


class MixedHistory(Simulation):
    """A cluster in which both forms come, run, are evicted and end."""

    def __init__(self, random: Random, policy: Policy, memo: Memo | None = None) -> None:
        self.random = random
        self.generator = MixedGenerator(random, flavors=random.randint(1, 2))
        super().__init__(self.generator.world(), policy, memo)
        # What borrows comes first, so that others have something to take back.
        for _ in range(random.randint(0, 6)):
            self.submit(self.generator.gang(self.snapshot, LOW))
            self.submit(self.generator.workload(self.snapshot))

    @property
    def ending(self) -> list[str]:
        told = (name for name, gang in self.gangs.items() if is_told(gang))
        return sorted({*super().ending, *told})

    def happen(self) -> None:
        """One thing happens, after which all that was set aside is looked at again."""
        random = self.random
        self.snapshot = replace(self.snapshot, parked={})
        match random.choice("sssswwwweeppcqqt"):
            case "s":
                self.submit(self.generator.gang(self.snapshot))
            case "w":
                self.submit(self.generator.workload(self.snapshot))
            case "e" if self.gangs:
                self.end(random.choice(sorted(self.gangs)))
            case "p" if self.ending:
                self.end_evicted([random.choice(self.ending)])
            case "c":
                self._cordon(random.choice(self.snapshot.nodes).name)
            case "q":
                self.declare(self.generator.ruled(random.choice(self.snapshot.queues)))
            case _:
                self.tick(random.choice((1, 100, 100_000)))

    def apply(self, decided: Plan) -> None:
        super().apply(decided)
        for admit in decided.admits:
            since = WorkloadCondition("QuotaReserved", True, since_ms=self.snapshot.now_ms)
            self._change(admit.workload, admission=admit.admission, conditions=(since,))
        for eviction in decided.evictions:
            gang = self.gangs[eviction.workload]
            if gang.holds_quota:
                told = WorkloadCondition("Evicted", True, "Preempted")
                self._change(gang.name, conditions=(*gang.conditions, told))
        parked = {queue: {*each.workloads} for queue, each in self.snapshot.parked.items()}
        for wait in decided.waits:
            if wait.parked:
                parked.setdefault(self.gangs[wait.workload].queue, set()).add(wait.workload)
        self.snapshot = replace(
            self.snapshot,
            parked={queue: Parked((), tuple(sorted(each))) for queue, each in parked.items()},
        )

    def end_evicted(self, names: list[str] | None = None) -> None:
        told = self.ending if names is None else names
        super().end_evicted(told)
        for name in told:
            if is_told(self.gangs[name]):
                self._change(name, admission=None, conditions=())
        self.snapshot = replace(self.snapshot, parked={})

    def cold(self) -> Plan:
        """The plan without a memo."""
        return plan(self.snapshot, self.policy)

    def _cordon(self, name: str) -> None:
        nodes = self.snapshot.nodes
        changed = (
            replace(each, cordoned=not each.cordoned) if each.name == name else each
            for each in nodes
        )
        self.snapshot = replace(self.snapshot, nodes=tuple(changed))

    def _change(self, name: str, **fields: object) -> None:
        gang = self.gangs[name]
        changed = replace(gang, **fields)
        row = self.snapshot.gangs[gang.queue]
        self._put(gang.queue, tuple(changed if each.name == name else each for each in row))


def is_told(gang: Gang) -> bool:
    """Whether the pod sets of a gang were told to end."""
    return gang.holds_quota and gang.has("Evicted")
