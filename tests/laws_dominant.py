"""What holds where the largest share of GPUs, CPU and memory decides who gets what is idle.

Each law is a function of a source of choices.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from random import Random

from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import run
from bough.core.cycle.working_copy import WorkingCopy
from bough.model.cluster import Node, Resources
from bough.model.gang import Gang, Pod, PodState
from bough.model.gang_rules import IdleShare
from bough.model.policy import KAI, OSMO, Policy
from bough.model.quota import Cohort, Queue
from bough.model.snapshot import Snapshot
from tests.cycle_gangs import LOW, cohort, queue
from tests.laws_cycle import History
from tests.oracles.cycle import check_plan
from tests.simulation import Simulation, changes, pods_in, replace
from tests.strategies_cycle import Generator

BY_DOMINANT_SHARE = replace(OSMO, gangs=replace(OSMO.gangs, share_idle_by=IdleShare.DOMINANT_SHARE))
#: All in one line, where what is preemptible takes victims, too.
IN_ONE_LINE = replace(KAI, gangs=replace(KAI.gangs, share_idle_by=IdleShare.DOMINANT_SHARE))
MOST_CYCLES = 60
ROOT = "root"


class _Hungry(Generator):
    """Gangs that want much CPU or memory, and some that want nothing else."""

    def gang(self, snapshot: Snapshot, priority: int | None = None) -> Gang:
        made = super().gang(snapshot, priority)
        return replace(made, pods=tuple(map(self._hungry, made.pods)))

    def _hungry(self, pod: Pod) -> Pod:
        cpu, memory = self.random.randint(0, 4000), self.random.randint(0, 1 << 39)
        return replace(pod, requests=replace(pod.requests, cpu_milli=cpu, memory_bytes=memory))


class _HungryHistory(History):
    def __init__(self, random: Random, policy: Policy) -> None:
        super().__init__(random, memo=Memo(), flavors=random.choice((1, 2)))
        self.generator = _Hungry(random, flavors=len(self.generator.flavors))
        self.snapshot = self.generator.world()
        self.policy = policy


def check_shares_from_scratch(random: Random, cycles: int, policy: Policy) -> None:
    """The shares of a working copy that was kept in step are those of a new one.

    What every queue uses is what its pods ask for.
    """
    history = _HungryHistory(random, policy)
    for _ in range(cycles):
        history.live()
        history.step()
        history.end_some()
        kept = (history.memo or Memo()).refresh(history.snapshot, policy)
        fresh = Memo().refresh(history.snapshot, policy)
        assert _told(fresh) == _told(kept)
        used = {name: _used(kept, name) for name in history.snapshot.gangs}
        assert {name: _sum(each) for name, each in history.snapshot.gangs.items()} == used


def check_in_step_with_quota(random: Random, cycles: int, policy: Policy) -> None:
    """At the end of a cycle, before it is undone, GPUs are counted as quota counts them.

    Where nothing grows: quota counts what the first candidate for growth asks for, shares what was
    placed.
    """
    history = _HungryHistory(random, policy)
    for _ in range(cycles):
        history.live()
        copy = Memo().refresh(history.snapshot, policy)
        grows = any(bind.growth for bind in run(copy).outcome.plan(0).binds)
        quota, dominant = copy.ledgers.total, copy.dominant
        assert dominant is not None
        for node in () if grows else quota:
            for what in quota.flavor_resources(node):
                assert quota.usage(node, what) == dominant.tree.usage(node, what)
        history.step()
        history.end_some()


def check_rest(random: Random, cycles: int, policy: Policy) -> None:
    """Every plan keeps the laws, and all comes to rest."""
    history = _HungryHistory(random, policy)
    for _ in range(cycles):
        history.live()
        history.step()
    for _ in range(MOST_CYCLES):
        before = history.snapshot
        decided = history.step()
        if policy is BY_DOMINANT_SHARE:
            check_plan(before, decided)
        if not changes(decided) and not history.ending:
            return
        history.end_some()
        history.tick()
    raise AssertionError("no end of it")


def check_none_is_passed(random: Random) -> None:
    """None has more for its weight than another would have with the next that it waits for.

    Unless that one would not fit even without the last that the first got. Reckoned here from what
    runs, without a tree.
    """
    world = _Market(random)
    world.step()
    for one in world.queues:
        for other in world.queues:
            waits = world.waiting(other)
            if one is other or not waits or not world.running_in(one):
                continue
            own, beside = world.share(one.name), world.share(other.name, waits)
            assert own <= beside or not world.would_fit(waits, instead_of=one.name)


class _Market(Simulation):
    """One node; queues with a part of it and a weight, and many gangs of one pod in each."""

    def __init__(self, random: Random) -> None:
        gpus = random.randint(8, 24)
        # Whole parts, so that nothing is rounded.
        self.capacity = Resources(gpus, gpus * random.randint(1, 3), gpus * 2, 1000)
        own = [random.randint(0, 3) for _ in range(random.randint(2, 4))]
        self.queues = [
            queue(f"q{at}", gpus, weight=random.randint(1, 3)) for at, gpus in enumerate(own)
        ]
        self.own = {f"q{at}": gpus for at, gpus in enumerate(own)}
        self.wants = {each.name: _wanted(random) for each in self.queues}
        root = cohort(ROOT, None, self.capacity.gpus - sum(own))
        super().__init__(_empty(root, self.queues, self.capacity), BY_DOMINANT_SHARE)
        for at in range(20):
            for each in self.queues:
                self.submit(self._gang(each.name, at))

    def share(self, name: str, more: Resources | None = None) -> Fraction:
        """What a queue has beyond its own part, of the resource of which that is most."""
        used = [*_sum([gang for gang in self.gangs.values() if gang.queue == name])]
        if more is not None:
            used = [one + other for one, other in zip(used, _amounts(more), strict=True)]
        there = _amounts(self.capacity)
        own = [amount * self.own[name] // self.capacity.gpus for amount in there]
        weight = next(each.weight for each in self.queues if each.name == name)
        parts = zip(used, own, there, strict=True)
        return max(Fraction(max(0, has - its), all_) for has, its, all_ in parts) / weight

    def would_fit(self, wanted: Resources, instead_of: str) -> bool:
        """Whether there would be room without one gang of a queue."""
        free = [all_ - used for all_, used in zip(_amounts(self.capacity), self._used, strict=True)]
        back = _amounts(self.wants[instead_of])
        return all(
            need <= left + given
            for need, left, given in zip(_amounts(wanted), free, back, strict=True)
        )

    def waiting(self, each: Queue) -> Resources | None:
        gangs = self.snapshot.gangs[each.name]
        waits = any(pods_in(gang, PodState.PENDING) for gang in gangs)
        return self.wants[each.name] if waits else None

    def running_in(self, each: Queue) -> bool:
        return any(pods_in(gang, PodState.RUNNING) for gang in self.snapshot.gangs[each.name])

    @property
    def _used(self) -> list[int]:
        return [*_sum(self.gangs.values())]

    def _gang(self, name: str, at: int) -> Gang:
        pod = Pod(f"{name}-{at}-0", requests=self.wants[name])
        return Gang(
            f"{name}-{at:02}",
            name,
            (pod,),
            minimum=1,
            priority=LOW,
            preemptible=True,
            submitted_ms=at,
        )


def _wanted(random: Random) -> Resources:
    return Resources(random.randint(0, 4), random.randint(0, 4), random.randint(1, 6), 1)


def _empty(root: Cohort, queues: list[Queue], capacity: Resources) -> Snapshot:
    return Snapshot(
        now_ms=1000,
        cohorts=(root,),
        queues=tuple(queues),
        nodes=(Node("node", capacity),),
        gangs={each.name: () for each in queues},
    )


def _told(copy: WorkingCopy) -> dict[object, object]:
    dominant = copy.dominant
    assert dominant is not None
    return {node: dominant.of(node) for node in dominant.tree}


def _used(copy: WorkingCopy, name: str) -> tuple[int, ...]:
    """What is counted at a queue, over all flavors."""
    assert copy.dominant is not None
    leaf = next(node for node in copy.dominant.tree if node.name == name)
    accounts = copy.dominant.tree.accounts(leaf)
    return tuple(
        sum(account.usage for what, account in accounts.items() if what.resource == resource)
        for resource in ("gpu", "cpu", "memory")
    )


def _sum(gangs: Iterable[Gang]) -> tuple[int, ...]:
    total = (0, 0, 0)
    for gang in gangs:
        for pod in pods_in(gang, PodState.RUNNING):
            total = tuple(map(sum, zip(total, _amounts(pod.requests), strict=True)))
    return total


def _amounts(resources: Resources) -> tuple[int, int, int]:
    return resources.gpus, resources.cpu_milli, resources.memory_bytes
