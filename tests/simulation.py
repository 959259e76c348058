"""A cluster in virtual time: what a plan says happens, and what a test says happens in between.

The smallest adapter there can be. Pods that are evicted end when the test says so, and wait again;
a gang for which room is being freed is remembered as nominated. Tuples of queues in which nothing
happened stay the same objects, as a memo wants them. Knows no rule of the cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from bough.core.cycle.gave_way import GaveWay
from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan
from bough.core.gang.sufficiency import is_stale
from bough.core.gang.tree import GangTree
from bough.model.gang import Gang, Pod, PodState
from bough.model.plan import Plan
from bough.model.policy import OSMO, Policy
from bough.model.quota import Cohort, Queue
from bough.model.snapshot import Progress, Snapshot

replace = msgspec.structs.replace


class Simulation:
    """A snapshot that changes."""

    def __init__(self, snapshot: Snapshot, policy: Policy = OSMO, memo: Memo | None = None) -> None:
        self.snapshot = snapshot
        self.policy = policy
        self.memo = memo
        self._gave_way = GaveWay()

    # What is

    @property
    def gangs(self) -> dict[str, Gang]:
        """Every gang by name."""
        return {gang.name: gang for gangs in self.snapshot.gangs.values() for gang in gangs}

    @property
    def running(self) -> list[str]:
        """The gangs that have a pod that holds its place, by name."""
        return sorted(name for name, gang in self.gangs.items() if pods_in(gang, PodState.RUNNING))

    @property
    def ending(self) -> list[str]:
        """The gangs that have a pod that is ending, by name."""
        return sorted(
            name for name, gang in self.gangs.items() if pods_in(gang, PodState.RELEASING)
        )

    # What the plan makes happen

    def plan(self) -> Plan:
        """Decide, and do nothing."""
        return plan(self.snapshot, self.policy, self.memo)

    def step(self) -> Plan:
        """Decide, and do it; what is evicted is still ending."""
        decided = self.plan()
        self.apply(decided)
        return decided

    def settle(self, most: int = 50) -> list[Plan]:
        """Cycle after cycle until nothing happens any more; all that is evicted ends at once."""
        plans = [self.step()]
        while changes(plans[-1]) or self.ending:
            assert len(plans) < most, "no fixpoint"
            self.end_evicted()
            self.tick()
            plans.append(self.step())
        return plans

    def apply(self, decided: Plan) -> None:
        """Bind, evict, and remember what is nominated."""
        bound: dict[str, dict[str, str]] = {}
        for bind in decided.binds:
            bound.setdefault(bind.workload, {})[bind.pod] = bind.node
        for name, places in bound.items():
            self._change_pods(
                name, lambda pod, places=places: _bound(pod, places) if pod.name in places else pod
            )
        for eviction in decided.evictions:
            self._change_pods(
                eviction.workload,
                lambda pod, going=eviction.pods: (
                    replace(pod, state=PodState.RELEASING)
                    if pod.state is PodState.RUNNING and (not going or pod.name in going)
                    else pod
                ),
            )
        self.snapshot = replace(
            self.snapshot,
            version=self.snapshot.version + 1,
            progress=self._progress(decided),
        )

    def _progress(self, decided: Plan) -> dict[str, Progress]:
        """What a plan leaves to the next one."""
        found = {wait.workload: Progress(tried=wait.tried) for wait in decided.waits if wait.tried}
        for each in decided.nominations:
            before = found.get(each.workload, Progress())
            found[each.workload] = replace(
                before, nominated=True, places=each.pods, promised=each.promised
            )
        if self.policy.gives_way_once:
            self._gave_way.note(decided)
            for name in self._gave_way:
                before = found.get(name, Progress())
                found[name] = replace(before, gave_way_to=self._gave_way.to(name))
        return found

    # What else happens

    def tick(self, milliseconds: int = 1) -> None:
        """Let time pass."""
        self.snapshot = replace(self.snapshot, now_ms=self.snapshot.now_ms + milliseconds)

    def end_evicted(self, names: Iterable[str] | None = None) -> None:
        """Pods that were told to end are gone, and wait again."""
        for name in self.ending if names is None else names:
            self._change_pods(
                name,
                lambda pod: (
                    replace(pod, state=PodState.PENDING, node=None)
                    if pod.state is PodState.RELEASING
                    else pod
                ),
            )

    def submit(self, gang: Gang) -> None:
        """A gang comes; it waits since now unless it says otherwise."""
        self._put(gang.queue, (*self.snapshot.gangs.get(gang.queue, ()), gang))

    def end(self, name: str) -> None:
        """A gang has ended and is gone."""
        queue = self.gangs[name].queue
        self._put(queue, tuple(g for g in self.snapshot.gangs[queue] if g.name != name))
        self._gave_way.forget(name)

    def fail(self, name: str, pod_name: str) -> None:
        """One pod of a gang has failed and does not come back."""
        self._change_pods(
            name,
            lambda pod: (
                replace(pod, state=PodState.FAILED, node=None) if pod.name == pod_name else pod
            ),
        )

    def declare(self, *declared: Cohort | Queue) -> None:
        """Nodes of the quota tree get other declarations."""
        queues = {each.name: each for each in declared if isinstance(each, Queue)}
        cohorts = {each.name: each for each in declared if isinstance(each, Cohort)}
        self.snapshot = replace(
            self.snapshot,
            queues=tuple(queues.get(each.name, each) for each in self.snapshot.queues),
            cohorts=tuple(cohorts.get(each.name, each) for each in self.snapshot.cohorts),
        )

    def _change_pods(self, name: str, change: Callable[[Pod], Pod]) -> None:
        gang = self.gangs[name]
        pods = tuple(map(change, gang.pods))
        if pods == gang.pods:
            return
        now = self.snapshot.now_ms
        runs = any(pod.state is PodState.RUNNING for pod in pods)
        started = (now if gang.started_ms is None else gang.started_ms) if runs else None
        changed = replace(gang, pods=pods, started_ms=started)
        since = gang.stale_since_ms if gang.stale_since_ms is not None else now
        stale = since if is_stale(GangTree.of(changed)) else None
        changed = replace(changed, stale_since_ms=stale)
        self._put(
            gang.queue,
            tuple(changed if g.name == name else g for g in self.snapshot.gangs[gang.queue]),
        )

    def _put(self, queue: str, gangs: tuple[Gang, ...]) -> None:
        self.snapshot = replace(self.snapshot, gangs={**self.snapshot.gangs, queue: gangs})


def pods_in(gang: Gang, state: PodState) -> list[Pod]:
    """The pods of a gang that are in a state."""
    return [pod for pod in gang.pods if pod.state is state]


def changes(decided: Plan) -> bool:
    """Whether a plan makes anything happen."""
    return bool(decided.binds or decided.evictions or decided.admits)


def started(decided: Plan) -> list[str]:
    """The gangs of which pods start that they need, in the order of the plan."""
    return list(dict.fromkeys(bind.workload for bind in decided.binds if not bind.growth))


def _bound(pod: Pod, places: dict[str, str]) -> Pod:
    assert pod.state is PodState.PENDING, f"{pod.name} is bound, and is {pod.state}"
    return replace(pod, state=PodState.RUNNING, node=places[pod.name])
