"""The laws of the cycle over gangs, each as a function of a source of choices and of a length.

The property tests ask them for short histories, the soak for long ones.
"""

from __future__ import annotations

from random import Random
from typing import TypeVar

from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan
from bough.core.cycle.waits import Waits
from bough.core.gang.release import surplus_pods
from bough.core.gang.tree import GangTree
from bough.model.gang import Gang, PodState
from bough.model.plan import Eviction, Plan
from bough.model.policy import OSMO
from bough.model.reason import WaitReason
from bough.model.snapshot import Snapshot
from tests.oracles.cycle import all_gangs, all_pods, check_plan, fits, legal_victims
from tests.simulation import Simulation, changes, pods_in, replace
from tests.strategies_cycle import LOW, NORMAL, Generator

Thing = TypeVar("Thing")

#: How long it may take until nothing happens any more.
MOST_CYCLES = 60


class History(Simulation):
    """A simulation to which things happen."""

    def __init__(
        self, random: Random, *, flavors: int = 1, plain: bool = False, memo: Memo | None = None
    ) -> None:
        self.random = random
        self.generator = Generator(random, flavors=flavors, plain=plain)
        super().__init__(self.generator.world(), memo=memo)

    def live(self, priority: int | None = None) -> None:
        for _ in range(self.random.randint(0, 4)):
            self.generator.happen(self, priority)

    def end_some(self) -> None:
        """Some of what was told to end has ended."""
        if self.ending:
            some = [self.random.choice(self.ending)]
            self.end_evicted(self.ending if self.random.random() < 0.5 else some)


def check_every_plan(random: Random, cycles: int, *, flavors: int = 1) -> None:
    """No plan breaks a law that it can be asked about alone."""
    history = History(random, flavors=flavors)
    for _ in range(cycles):
        history.live()
        before = history.snapshot
        check_plan(before, history.step())


def check_fixpoint(random: Random, cycles: int, *, forgets: bool) -> None:
    """Once nothing else happens, plans come to an end, in whatever order the victims end.

    A gang that was promised room evicts nothing more, unless the promise is forgotten.
    """
    history = History(random)
    for _ in range(cycles):
        history.live()
        history.step()
    promised: set[str | None] = set()
    for _ in range(MOST_CYCLES):
        if forgets:
            history.snapshot = replace(history.snapshot, progress={})
        before = history.snapshot
        decided = history.step()
        check_plan(before, decided)
        again = {each.preemptor for each in decided.evictions} & promised
        assert forgets or not again, f"{again} was promised room, and evicts once more"
        promised |= {each.workload for each in decided.nominations}
        if not changes(decided) and not history.ending:
            break
        history.end_some()
        history.tick()
    assert not changes(decided), "no fixpoint"
    assert replace(decided, version=history.snapshot.version).digest == history.plan().digest


def check_victims_needed(random: Random, cycles: int) -> int:
    """Spare any one victim, and the preemptor does not fit. How many plans could be asked."""
    history = History(random, plain=True)
    asked = 0
    for _ in range(cycles):
        history.live(LOW)
        history.step()
        history.submit(history.generator.gang(history.snapshot, NORMAL))
        before = history.snapshot
        asked += _check_victims_needed(before, history.step())
        history.end_some()
    return asked


def _check_victims_needed(before: Snapshot, decided: Plan) -> bool:
    """Whether it could be asked: one gang with a guarantee is served, and it has victims."""
    gangs = all_gangs(before)
    served = {bind.workload for bind in decided.binds if not bind.growth}
    served |= {each.workload for each in decided.nominations}
    guaranteed = {name for name in served if not gangs[name].preemptible}
    preemptors = {each.preemptor for each in decided.evictions} - {None}
    keeps_nodes = any(
        wait.reason in {WaitReason.PLACE, WaitReason.LIMIT} and not gangs[wait.workload].preemptible
        for wait in decided.waits
    )
    if keeps_nodes or len(preemptors) != 1 or guaranteed != preemptors:
        return False
    preemptor = gangs[guaranteed.pop()]
    if pods_in(preemptor, PodState.RUNNING):
        return False
    parts = [
        part
        for each in decided.evictions
        if each.preemptor == preemptor.name
        for part in _parts_of(before, each)
    ]
    everything = set().union(*parts)
    assert fits(before, preemptor, everything), "it would not start"
    for part in parts:
        assert not fits(before, preemptor, everything - part), f"{part} is superfluous"
    return True


def _parts_of(before: Snapshot, eviction: Eviction) -> list[set[tuple[str, str]]]:
    """What could have been spared alone: each pod of a surplus; of a gang, what it needs, or all.

    A gang that is broken keeps nothing: its surplus goes with it.
    """
    name = eviction.workload
    if eviction.pods:
        return [{(name, pod)} for pod in eviction.pods]
    gang = all_gangs(before)[name]
    tree = GangTree.of(gang)
    running = {(name, pod.name) for pod in pods_in(gang, PodState.RUNNING)}
    return [running, running - {(name, pod.name) for pod in surplus_pods(tree, tree.held)}]


def check_victims_found(random: Random, cycles: int) -> int:
    """A gang with a right to room waits only where no victims that may be taken would do.

    How many gangs could be asked: all else that has a guarantee runs. No gang is elastic, as one
    that could shrink to its quota is protected.
    """
    history = History(random, plain=True)
    history.generator.rigid = True
    asked = 0
    for _ in range(cycles):
        history.live(LOW)
        history.settle()
        wanted = history.generator.gang(history.snapshot, NORMAL)
        history.submit(wanted)
        before = history.snapshot
        decided = history.step()
        reasons = {wait.workload: wait.reason for wait in decided.waits}
        only = all(name == wanted.name or gang.preemptible for name, gang in waiting(before))
        entitled = reasons.get(wanted.name) in {WaitReason.PLACE, WaitReason.LIMIT}
        if only and entitled:
            asked += 1
            for victims in legal_victims(before, wanted):
                ended = {key for key in all_pods(before) if key[0] in victims}
                assert not fits(before, wanted, ended), f"{victims} would be enough"
        history.end(wanted.name)
    return asked


def waiting(snapshot: Snapshot) -> list[tuple[str, Gang]]:
    """The gangs that have a pod that waits, with their names."""
    gangs = all_gangs(snapshot).items()
    return [(name, gang) for name, gang in gangs if pods_in(gang, PodState.PENDING)]


def check_blocked(random: Random, cycles: int) -> None:
    """HIGH and NORMAL that wait for quota change nothing for others: without them all is equal."""
    history = History(random)
    for _ in range(cycles):
        history.live()
        decided = history.plan()
        blocked = {
            wait.workload
            for wait in Waits(history.snapshot, OSMO, decided).every()
            if wait.reason in {WaitReason.QUOTA, WaitReason.BEHIND, WaitReason.PODS}
            and not history.gangs[wait.workload].preemptible
        }
        blocked -= {*history.running, *history.ending}
        gangs = {
            queue: tuple(gang for gang in gangs if gang.name not in blocked)
            for queue, gangs in history.snapshot.gangs.items()
        }
        without = plan(replace(history.snapshot, gangs=gangs), OSMO)
        assert decided.binds == without.binds
        assert decided.evictions == without.evictions
        assert decided.nominations == without.nominations
        history.apply(decided)


def check_memo(random: Random, cycles: int) -> None:
    """A memo never changes a plan, and a cycle leaves the working copy as it found it."""
    memo = Memo()
    history = History(random, memo=memo)
    for _ in range(cycles):
        history.live()
        decided = history.plan()
        assert plan(history.snapshot, OSMO).digest == decided.digest
        # The same gangs in other tuples are no news, but the plan is made once more.
        copies = {queue: (*gangs,) for queue, gangs in history.snapshot.gangs.items()}
        again = plan(replace(history.snapshot, gangs=copies), OSMO, memo)
        assert decided.digest == again.digest
        history.apply(decided)


def check_order_of_declarations(random: Random, cycles: int) -> None:
    """It means nothing in which order queues, nodes and gangs are listed."""
    history = History(random)
    for _ in range(cycles):
        history.live()
        decided = history.plan()
        assert decided.digest == plan(_shuffled(random, history.snapshot), OSMO).digest
        history.apply(decided)


def _shuffled(random: Random, snapshot: Snapshot) -> Snapshot:
    def mix(things: tuple[Thing, ...]) -> tuple[Thing, ...]:
        return tuple(random.sample(things, len(things)))

    return replace(
        snapshot,
        queues=mix(snapshot.queues),
        cohorts=mix(snapshot.cohorts),
        nodes=mix(snapshot.nodes),
        gangs={queue: mix(snapshot.gangs[queue]) for queue in mix(tuple(snapshot.gangs))},
    )
