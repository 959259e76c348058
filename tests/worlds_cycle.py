"""Random worlds in the form of Kueue, and their histories, for the property tests of a cycle."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import TypeVar

import msgspec

from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan
from bough.core.cycle.waiting_lines import Lines
from bough.core.gang.from_workload import gang_of_workload
from bough.core.quota.tree import QuotaTree
from bough.core.quota.usage import usage_of
from bough.model.admission_rules import (
    AdmissionRules,
    BorrowWithinCohort,
    FlavorFungibility,
    FlavorPreference,
    FlavorSearch,
    Preemption,
    PreemptionWithinQueue,
    QueueingStrategy,
    ReclaimWithinCohort,
)
from bough.model.gang import Gang
from bough.model.plan import Plan
from bough.model.policy import KUEUE, Heads, OrderKey, Policy
from bough.model.quota import (
    Cohort,
    FlavorQuotas,
    FlavorResource,
    NodeKind,
    Queue,
    Quota,
    ResourceGroup,
    TreeNode,
)
from bough.model.snapshot import Snapshot
from bough.model.workload import (
    Admission,
    Assignment,
    Flavor,
    PodSet,
    PodTemplate,
    Workload,
    WorkloadCondition,
)

COHORTS = ("team", "unit", "root")
FLAVORS = (Flavor("big"), Flavor("small"))
RESOURCES = ("cpu", "gpu")
WEIGHTS = (Fraction(0), Fraction(1, 2), Fraction(1), Fraction(1), Fraction(2), Fraction(3))
Declared = TypeVar("Declared", Cohort, Queue)


def policy(random: Random) -> Policy:
    """A policy with some choices made otherwise."""
    orders = (
        KUEUE.order,
        (OrderKey.BORROWING_HEIGHT, OrderKey.TIMESTAMP),
        (OrderKey.NOMINATED, OrderKey.PRIORITY, OrderKey.BORROWING_HEIGHT),
    )
    return msgspec.structs.replace(
        KUEUE,
        heads=random.choice((Heads.FIRST, Heads.FIRST, Heads.ALL)),
        order=random.choice(orders),
        recompute_overlap=random.random() < 0.7,
        partial_admission=random.random() < 0.7,
        keep_scan_progress=random.random() < 0.5,
        park_alike=random.random() < 0.7,
    )


def cohorts(random: Random) -> tuple[Cohort, ...]:
    """A chain or a fork of cohorts, each perhaps with quota of its own."""
    found = []
    for index, name in enumerate(COHORTS):
        above = random.choice(COHORTS[index + 1 :]) if index < len(COHORTS) - 1 else None
        groups = (_group(random, inner=True),) if random.random() < 0.4 else ()
        found.append(Cohort(name, above, groups))
    return tuple(found)


def queues(random: Random) -> tuple[Queue, ...]:
    return tuple(
        Queue(name, random.choice(COHORTS), (_group(random),), rules=_rules(random))
        for name in "abcd"[: random.randint(2, 4)]
    )


def _weighed(random: Random, declared: Declared) -> Declared:
    return msgspec.structs.replace(declared, weight=random.choice(WEIGHTS))


def _group(random: Random, *, inner: bool = False) -> ResourceGroup:
    names = random.sample([flavor.name for flavor in FLAVORS], random.randint(1, 2))
    return ResourceGroup(
        RESOURCES,
        tuple(
            FlavorQuotas(name, {each: _quota(random, inner=inner) for each in RESOURCES})
            for name in names
        ),
    )


def _quota(random: Random, *, inner: bool) -> Quota:
    nominal = random.randint(0, 3 if inner else 6)
    borrowing = random.choice((None, None, None, 1, 4))
    lending = random.choice((None, None, None, 1, 3))
    return Quota(nominal, borrowing, lending)


def _rules(random: Random) -> AdmissionRules:
    return AdmissionRules(
        queueing=random.choice((*[QueueingStrategy.BEST_EFFORT_FIFO] * 3, *QueueingStrategy)),
        namespaces=(),
        fungibility=FlavorFungibility(
            random.choice(list(FlavorSearch)),
            random.choice(list(FlavorSearch)),
            random.choice((None, *FlavorPreference)),
        ),
        preemption=Preemption(
            random.choice(list(PreemptionWithinQueue)),
            random.choice(list(ReclaimWithinCohort)),
            random.choice(list(BorrowWithinCohort)),
            random.choice((None, 0, 1)),
        ),
    )


def workload(random: Random, number: int, now_ms: int) -> Workload:
    """A workload of one or two pod sets that has just come."""
    sets = []
    for index in range(random.choice((1, 1, 2))):
        count = random.randint(1, 2)
        minimum = random.randint(1, count) if random.random() < 0.3 else None
        requests = {name: random.randint(0, 2) for name in random.sample(RESOURCES, 2)}
        sets.append(PodSet(f"set-{index}", count, PodTemplate(requests), minimum))
    return Workload(
        f"w{number:04}",
        "ns",
        tuple(sets),
        priority=random.randint(0, 2),
        uid=f"{number:04}",
        created_ms=now_ms,
    )


class History:
    """A world over time: workloads come, are admitted by plans, evicted, and end."""

    def __init__(self, random: Random, chosen: Policy = KUEUE, *, weights: bool = False) -> None:
        self.random = random
        self.policy = chosen
        self.cohorts = cohorts(random)
        self.queues = queues(random)
        if weights:
            self.cohorts = tuple(_weighed(random, each) for each in self.cohorts)
            self.queues = tuple(_weighed(random, each) for each in self.queues)
        self.lines = Lines(chosen, self.cohorts, self.queues)
        self.now_ms = 0
        self.running: dict[str, dict[str, Gang]] = {each.name: {} for each in self.queues}
        self._number = 0
        self._fresh: dict[str, tuple[Gang, ...]] = {}

    def happen(self) -> None:
        """Some things happen before the next cycle."""
        self.now_ms += 1
        for _ in range(self.random.randint(0, 4)):
            self._number += 1
            queue = self.random.choice(self.queues).name
            made = workload(self.random, self._number, self.now_ms)
            self.lines.add(queue, gang_of_workload(made, queue))
        for queue, held in self.running.items():
            for key in [key for key in held if self.random.random() < 0.2]:
                self.stop(queue, key)
        if self.random.random() < 0.1:
            self.queues = tuple(
                msgspec.structs.replace(each, resource_groups=(_group(self.random),))
                for each in self.queues
            )
            self.lines.declare(self.cohorts, self.queues)

    def snapshot(self) -> Snapshot:
        """Tuples of queues in which nothing happened are the same as before."""
        waiting = self.lines.waiting
        for queue in {**self.running, **waiting}:
            now = (*self.running.get(queue, {}).values(), *waiting.get(queue, ()))
            if self._fresh.get(queue, ()) != now:
                self._fresh[queue] = now
        return Snapshot(
            now_ms=self.now_ms,
            version=self.now_ms,
            cohorts=self.cohorts,
            queues=self.queues,
            flavors=FLAVORS,
            gangs=dict(self._fresh),
            parked=self.lines.parked,
            progress=self.lines.progress,
        )

    def plan(self, memo: Memo | None = None) -> Plan:
        return plan(self.snapshot(), self.policy, memo)

    def apply(self, decided: Plan) -> None:
        """Carry a plan out; victims end at once and wait again."""
        places = {each.name: each for line in self.lines.waiting.values() for each in line}
        self.lines.settle(decided)
        for admit in decided.admits:
            self.start(places[admit.workload], admit.admission)
        for eviction in decided.evictions:
            for queue, held in self.running.items():
                victim = held.get(eviction.workload)
                if victim is not None:
                    self.stop(queue, eviction.workload)
                    again = msgspec.structs.replace(victim, admission=None, conditions=())
                    self.lines.add(queue, again)
                    break

    def start(self, admitted: Gang, admission: Admission) -> None:
        since = WorkloadCondition("QuotaReserved", True, since_ms=self.now_ms)
        held = msgspec.structs.replace(admitted, admission=admission, conditions=(since,))
        self.running[admission.queue][held.name] = held

    def stop(self, queue: str, key: str) -> None:
        del self.running[queue][key]
        self.lines.wake(queue)

    def tree(self) -> QuotaTree:
        """The tree with what runs."""
        tree = QuotaTree.of(self.cohorts, self.queues)
        for queue, held in self.running.items():
            for each in held.values():
                tree.add_usage(queue, usage_of(each))
        return tree


def fill(history: History, attempts: int) -> None:
    """Let workloads run wherever the tree takes them, so that it is full but owes nothing."""
    tree = history.tree()
    for number in range(attempts):
        queue = history.random.choice(history.queues)
        group = queue.resource_groups[0]
        flavor = history.random.choice(group.flavors).name
        usage = {name: history.random.randint(0, 3) for name in RESOURCES}
        amounts = {FlavorResource(flavor, name): amount for name, amount in usage.items()}
        if tree.refusal(queue.name, amounts) is None:
            tree.add_usage(queue.name, amounts)
            held = Assignment("main", dict.fromkeys(usage, flavor), usage, 1)
            runs = Workload(
                f"r{number:04}",
                "ns",
                (PodSet("main", 1, PodTemplate(usage)),),
                priority=history.random.randint(0, 2),
                uid=f"r{number:04}",
                created_ms=history.random.randint(0, 9),
            )
            history.now_ms = history.random.randint(0, 9)
            waits = gang_of_workload(runs, queue.name)
            history.start(waits, Admission(queue.name, (held,)))


def debts(tree: QuotaTree) -> dict[tuple[TreeNode, FlavorResource], int]:
    """Every node that uses more than it may, by how much."""
    return {
        (node, what): tree.debt(node, what)
        for node in tree
        for what in tree.flavor_resources(node)
        if tree.debt(node, what)
    }


def queue_node(name: str) -> TreeNode:
    return TreeNode(NodeKind.QUEUE, name)
