"""Small worlds in the form of Kueue: queues, what runs, what waits, and a cycle over them."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import msgspec

from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan
from bough.core.gang.from_workload import gang_of_workload
from bough.model.admission_rules import (
    AdmissionRules,
    BorrowWithinCohort,
    FlavorFungibility,
    Preemption,
    PreemptionWithinQueue,
    QueueingStrategy,
    ReclaimWithinCohort,
)
from bough.model.gang import Gang
from bough.model.plan import Plan, Wait
from bough.model.policy import KUEUE, Policy
from bough.model.quota import Cohort, FlavorQuotas, Queue, Quota, ResourceGroup
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

Amount = int | tuple[int, int | None] | tuple[int, int | None, int | None]


def quota(amount: Amount) -> Quota:
    """Nominal, then perhaps borrowing and lending limits."""
    return Quota(amount) if isinstance(amount, int) else Quota(*amount)


def group(resource: str = "gpu", **flavors: Amount) -> ResourceGroup:
    return ResourceGroup(
        (resource,),
        tuple(FlavorQuotas(name, {resource: quota(each)}) for name, each in flavors.items()),
    )


def cohort(
    name: str, parent: str | None = None, *, weight: Fraction | int = 1, **flavors: Amount
) -> Cohort:
    return Cohort(name, parent, (group(**flavors),) if flavors else (), Fraction(weight))


def queue(
    name: str,
    cohort: str | None = None,
    *,
    within: str = "Never",
    reclaim: str = "Never",
    borrow: str = "Never",
    threshold: int | None = None,
    strict: bool = False,
    fungibility: FlavorFungibility | None = None,
    rules: AdmissionRules | None = None,
    groups: tuple[ResourceGroup, ...] | None = None,
    weight: Fraction | int = 1,
    **flavors: Amount,
) -> Queue:
    """A queue; flavors by name, of the resource gpu."""
    if rules is None:
        rules = AdmissionRules(
            queueing=QueueingStrategy("StrictFIFO" if strict else "BestEffortFIFO"),
            namespaces=(),
            fungibility=fungibility or FlavorFungibility(),
            preemption=Preemption(
                PreemptionWithinQueue(within),
                ReclaimWithinCohort(reclaim),
                BorrowWithinCohort(borrow),
                threshold,
            ),
        )
    return Queue(name, cohort, groups or (group(**flavors),), Fraction(weight), rules)


def pods(count: int = 1, minimum: int | None = None, name: str = "main", **requests: int) -> PodSet:
    return PodSet(name, count, PodTemplate(requests), minimum)


def waiting(name: str, gpu: int = 1, **fields: object) -> Workload:
    """A workload of one pod that asks for so many gpus, unless it has other pod sets."""
    fields = {"pod_sets": (pods(gpu=gpu),), "created_ms": 0, "uid": name, **fields}
    return Workload(name=name, namespace="ns", **fields)  # type: ignore[arg-type]


def running(
    name: str,
    queue: str,
    gpu: int = 1,
    *,
    flavor: str = "f",
    since_ms: int = 0,
    evicted: bool = False,
    **fields: object,
) -> Workload:
    """A workload of one pod that holds so many gpus in a queue."""
    conditions = [WorkloadCondition("QuotaReserved", True, since_ms=since_ms)]
    if evicted:
        conditions.append(WorkloadCondition("Evicted", True, "Preempted"))
    held = Assignment("main", {"gpu": flavor}, {"gpu": gpu}, 1)
    return waiting(
        name,
        gpu,
        admission=Admission(queue, (held,)),
        conditions=tuple(conditions),
        **fields,
    )


def snapshot(
    queues: Iterable[Queue],
    cohorts: Iterable[Cohort] = (),
    *,
    holds: Iterable[Workload] = (),
    waits: dict[str, list[Workload]] | None = None,
    **fields: object,
) -> Snapshot:
    """Everything together; flavors are those that the queues list."""
    declared = tuple(queues)
    names = {
        flavor.name: None
        for each in declared
        for listed in each.resource_groups
        for flavor in listed.flavors
    }
    gangs: dict[str, list[Gang]] = {}
    for workload in holds:
        assert workload.admission is not None
        name = workload.admission.queue
        gangs.setdefault(name, []).append(gang_of_workload(workload, name))
    for name, line in (waits or {}).items():
        gangs.setdefault(name, []).extend(
            msgspec.structs.replace(each, queue=name)
            if isinstance(each, Gang)
            else gang_of_workload(each, name)
            for each in line
        )
    fields = {"flavors": tuple(Flavor(name) for name in names), **fields}
    return Snapshot(
        cohorts=tuple(cohorts),
        queues=declared,
        gangs={name: tuple(each) for name, each in gangs.items()},
        **fields,  # type: ignore[arg-type]
    )


def cycle(
    queues: Iterable[Queue],
    cohorts: Iterable[Cohort] = (),
    *,
    policy: Policy = KUEUE,
    memo: Memo | None = None,
    **fields: object,
) -> Plan:
    """One cycle over a world."""
    return plan(snapshot(queues, cohorts, **fields), policy, memo)  # type: ignore[arg-type]


def admitted(decided: Plan) -> list[str]:
    return [admit.workload.removeprefix("ns/") for admit in decided.admits]


def evicted(decided: Plan) -> dict[str, str]:
    """By which right, for each victim."""
    return {each.workload.removeprefix("ns/"): each.rule.value for each in decided.evictions}


def wait(decided: Plan, name: str) -> Wait:
    (found,) = [each for each in decided.waits if each.workload == f"ns/{name}"]
    return found


def flavors(decided: Plan, name: str) -> dict[str, str]:
    """Which flavors a workload of one pod set got."""
    (found,) = [each for each in decided.admits if each.workload == f"ns/{name}"]
    (held,) = found.admission.assignments
    return held.flavors
