"""All sets of victims that may be taken for a gang, found by taking one thing after the other.

Slow, plain and independent: every state is a set of pods that have ended, and what may end next is
written from the words of docs/scheduling.md. One gang waits; all others run, whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from bough.model.gang import Gang, Pod
from bough.model.plan import Plan
from bough.model.quota import NodeKind, TreeNode
from bough.model.snapshot import Snapshot
from tests.oracles.cycle import (
    all_gangs,
    declarations,
    guaranteed,
    path,
    resources_of,
    runs,
    sharing,
)
from tests.oracles.place import can_start
from tests.simulation import replace

#: Names of gangs and pods.
Ended = frozenset[tuple[str, str]]


class Price(NamedTuple):
    """What a set of victims costs; the order in which sets are compared is that of the fields."""

    #: Priorities of the gangs that are broken, the highest first: longer is worse, higher is worse.
    broken: tuple[int, ...]
    #: How many of these are in the preemptor's queue.
    own: int
    #: GPUs that end at each priority, the highest first.
    gpus: tuple[tuple[int, int], ...]

    @property
    def total(self) -> int:
        """All GPUs that end."""
        return sum(amount for _, amount in self.gpus)


class Victims:
    """Every set that may be taken for one gang that waits."""

    def __init__(self, snapshot: Snapshot, preemptor: Gang) -> None:
        self.snapshot = snapshot
        self.preemptor = preemptor
        self.gangs = {
            name: gang for name, gang in all_gangs(snapshot).items() if name != preemptor.name
        }
        self._pods = {
            (gang.name, pod.name): pod for gang in self.gangs.values() for pod in gang.pods
        }
        self._balances: dict[tuple[int, ...], dict[TreeNode, int]] = {}
        self._answers: dict[tuple[tuple[int, ...], tuple[int, ...]], bool] = {}

    @cached_property
    def is_entitled(self) -> bool:
        """Whether it has a right to take victims: what is guaranteed leaves it quota."""
        shared = declarations(sharing(self.snapshot), guaranteed(self.snapshot))
        return shared.tree().admits(self.preemptor.queue, self._request)

    @cached_property
    def legal(self) -> set[Ended]:
        """Every set that may be taken; of pods that are alike, the last ones stand for all."""
        found: set[Ended] = {frozenset()}
        waiting: list[Ended] = [frozenset()]
        while waiting:
            ended = waiting.pop()
            for more in self._steps(ended):
                if more not in found:
                    found.add(more)
                    waiting.append(more)
        return found

    @cached_property
    def enough(self) -> list[Ended]:
        """Those of them that let the gang start."""
        return [ended for ended in self.legal if self.fits(ended)]

    def fits(self, ended: Ended) -> bool:
        """Whether the gang would have quota and a place without these pods."""
        key = self._usage(ended), self._free(ended)
        if key not in self._answers:
            self._answers[key] = self._find_fits(ended)
        return self._answers[key]

    def price(self, ended: Ended) -> Price:
        """What a set costs."""
        broken = [gang for gang in self.gangs.values() if self._left(gang, ended) == []]
        gpus: dict[int, int] = {}
        for key in ended:
            priority = self.gangs[key[0]].priority
            gpus[priority] = gpus.get(priority, 0) + self._pods[key].requests.gpus
        return Price(
            tuple(sorted((gang.priority for gang in broken), reverse=True)),
            sum(gang.queue == self.preemptor.queue for gang in broken),
            tuple(sorted(((at, amount) for at, amount in gpus.items() if amount), reverse=True)),
        )

    def taken(self, decided: Plan) -> Ended:
        """What a plan ends, with the last of alike pods standing for all."""
        names = set[tuple[str, str]]()
        for eviction in decided.evictions:
            gang = self.gangs[eviction.workload]
            pods = eviction.pods or [pod.name for pod in gang.pods]
            names |= {(gang.name, pod) for pod in pods}
        return self._canonical(frozenset(names))

    # What may end next

    def _steps(self, ended: Ended) -> Iterator[Ended]:
        for gang in self.gangs.values():
            left = self._left(gang, ended)
            if left and self._is_above(gang, self._usage(ended)):
                for pods in self._surplus(gang, left):
                    yield self._canonical(ended | {(gang.name, pod.name) for pod in pods})
            if left and self._may_break(gang, ended):
                yield ended | {(gang.name, pod.name) for pod in left}

    def _surplus(self, gang: Gang, left: list[Pod]) -> Iterator[list[Pod]]:
        """Any pod that its subgroup does not need, any subgroup that the gang does not need."""
        if not gang.subgroups:
            if len(left) > (gang.minimum or 0):
                yield from ([pod] for pod in left)
            return
        members = {
            group: [pod for pod in left if pod.subgroup == group.name] for group in gang.subgroups
        }
        whole = [group for group, pods in members.items() if len(pods) >= (group.minimum or 0)]
        for group, pods in members.items():
            if len(pods) > (group.minimum or 0):
                yield from ([pod] for pod in pods)
            if group in whole and len(whole) > (gang.minimum or 0):
                yield pods

    def _may_break(self, gang: Gang, ended: Ended) -> bool:
        if not gang.preemptible:
            return False
        if gang.queue == self.preemptor.queue:
            return gang.priority < self.preemptor.priority
        # Even if it had given back all that it could, its queue would be above its quota.
        rest = {(gang.name, pod.name) for pod in gang.pods} - self._core(gang)
        return self._is_above(gang, self._usage((ended - self._core(gang)) | rest))

    def _core(self, gang: Gang) -> set[tuple[str, str]]:
        """The first that it needs: of its pods, or of its subgroups of each the first pods."""
        pods = gang.pods[: gang.minimum]
        if gang.subgroups:
            groups = gang.subgroups[: gang.minimum]
            pods = tuple(
                pod
                for group in groups
                for pod in [pod for pod in gang.pods if pod.subgroup == group.name][: group.minimum]
            )
        return {(gang.name, pod.name) for pod in pods}

    def _is_above(self, gang: Gang, usage: tuple[int, ...]) -> bool:
        """Whether all nodes between a queue and the preemptor's are above their quota."""
        if usage not in self._balances:
            tree = declarations(self.snapshot, [])
            (what,) = resources_of(self.snapshot)
            for queue, amount in zip(self.snapshot.queues, usage, strict=True):
                tree.add_usage(queue.name, {what: amount})
            self._balances[usage] = {node: tree.balance(node, what) for node in tree.nodes()}
        balances = self._balances[usage]
        mine = self._paths[self.preemptor.queue]
        theirs = self._paths[gang.queue]
        between = theirs[: next((at for at, node in enumerate(theirs) if node in mine), None)]
        common = len(between) < len(theirs)
        return common and all(balances[node] < 0 for node in between)

    @cached_property
    def _paths(self) -> dict[str, list[TreeNode]]:
        tree = declarations(self.snapshot, [])
        return {
            queue.name: list(path(tree, TreeNode(NodeKind.QUEUE, queue.name)))
            for queue in self.snapshot.queues
        }

    # Small things

    @cached_property
    def _request(self):
        (what,) = resources_of(self.snapshot)
        pods = self.preemptor.pods[: self.preemptor.minimum]
        return {what: sum(pod.requests.gpus for pod in pods)}

    def _find_fits(self, ended: Ended) -> bool:
        others = [
            replace(gang, pods=tuple(self._left(gang, ended))) for gang in self.gangs.values()
        ]
        placed = [(gang, pod, pod.node or "") for gang in others for pod in gang.pods]
        tree = declarations(self.snapshot, placed).tree()
        if not tree.admits(self.preemptor.queue, self._request):
            return False
        nodes, topology = list(self.snapshot.nodes), self.snapshot.topologies[0]
        return can_start(self.preemptor, others, nodes, topology)

    def _left(self, gang: Gang, ended: Ended) -> list[Pod]:
        return [pod for pod in gang.pods if runs(pod) and (gang.name, pod.name) not in ended]

    def _usage(self, ended: Ended) -> tuple[int, ...]:
        return tuple(
            sum(
                pod.requests.gpus
                for gang in self.snapshot.gangs[queue.name]
                if gang.name in self.gangs
                for pod in self._left(gang, ended)
            )
            for queue in self.snapshot.queues
        )

    def _free(self, ended: Ended) -> tuple[int, ...]:
        used = dict.fromkeys((node.name for node in self.snapshot.nodes), 0)
        for gang in self.gangs.values():
            for pod in self._left(gang, ended):
                used[pod.node or ""] += pod.requests.gpus
        return tuple(node.capacity.gpus - used[node.name] for node in self.snapshot.nodes)

    def _canonical(self, ended: Ended) -> Ended:
        """The same with the last of alike pods."""
        found = set[tuple[str, str]]()
        for name in {name for name, _ in ended}:
            rows: dict[object, list[Pod]] = {}
            for pod in self.gangs[name].pods:
                rows.setdefault((pod.subgroup, pod.node, pod.requests.gpus), []).append(pod)
            for row in rows.values():
                count = sum((name, pod.name) in ended for pod in row)
                found |= {(name, pod.name) for pod in row[len(row) - count :]}
        return frozenset(found)
