"""KAI's recorded answers about fair shares: division, order of queues, reclaim, minimum runtimes.

Translates the inputs to the core's types and back; every rule is the core's.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from bough.core.quota.account import Account, credit
from bough.core.quota.division import Amount, Taker, divide
from bough.core.quota.fair_tree import ANY_FLAVOR, CPU, GPU, MEMORY, capacity_of, fair_tree
from bough.core.quota.fairness import (
    Entitlement,
    Entitlements,
    Fixed,
    Requests,
    entitlement,
    is_within_deserved,
    rank,
)
from bough.core.quota.minimum_runtimes import preempt_runtime_ms, reclaim_runtime_ms
from bough.core.quota.reclaim import Reclaim
from bough.core.quota.tree import QuotaTree
from bough.model.fair_queue import FairQueue
from bough.model.gang_rules import RuntimeOf
from bough.model.policy import ShareRule
from bough.model.quota import FlavorResource, NodeKind, TreeNode

Case = dict[str, Any]
RESOURCES = {each: FlavorResource(ANY_FLAVOR, each) for each in (GPU, CPU, MEMORY)}
#: How requests are written, in some cases with their unit.
UNITS = {"cpu_millis": CPU, "memory_bytes": MEMORY}
#: What stands above the queues at the top.
TOP = TreeNode(NodeKind.COHORT, "(cluster)")


def fair_share(case: Case) -> Case:
    """The fair share of each queue, and what is left."""
    given = case["in"]
    takers = [
        Taker(
            name=queue["id"],
            deserved=_bound(queue["deserved"]),
            limit=_bound(queue["limit"]),
            asked=_number(queue["request"]),
            weight=Fraction(_number(queue["over_quota_weight"])),
            priority=queue["priority"],
            created_ms=queue["created"],
            used=Fraction(_number(queue["usage"])),
        )
        for queue in given["queues"]
    ]
    shares, left = divide(_number(given["total"]), takers, Fraction(_number(given["k_value"])))
    return _out(
        {
            "fair_share": {name: float(share) for name, share in shares.items()},
            "remaining": float(left),
        }
    )


def queue_order(case: Case) -> Case:
    """Which of two queues goes first with its next job."""
    total = case["in"]["total"] or {}

    def ranked(queue: Case) -> Any:
        node = [_entitlement(name, queue[name], total.get(name, 0)) for name in RESOURCES]
        gone: dict[FlavorResource, Amount] = {}
        for victim in queue["victims_allocated"]:
            for what, amount in _request(victim).items():
                gone[what] = gone.get(what, 0) + amount
        return rank(
            node,
            _request(queue["next_job_required"]),
            gone,
            priority=queue["priority"],
            created_ms=queue["created"],
        )

    left, right = ranked(case["in"]["left"]), ranked(case["in"]["right"])
    return _out(-1 if left < right else 1)


def can_reclaim(case: Case) -> Case:
    """Whether a job may reclaim at all."""
    world = _World(case["in"]["queues"])
    reclaimer = case["in"]["reclaimer"]
    within = world.reclaim(reclaimer).is_within_share
    return _out(within and world.is_guaranteed(reclaimer, world.path(reclaimer["queue"])[:1]))


def reclaimable(case: Case) -> Case:
    """Whether a job may reclaim these victims."""
    given = case["in"]
    world = _World(given["queues"])
    reclaimer = given["reclaimer"]
    reclaim = world.reclaim(reclaimer, given["saturation_multiplier"])
    path = world.path(reclaimer["queue"])
    # The nearest first: they change what the nodes above the job's queue have.
    queues = sorted(given["victims_by_queue"], key=lambda queue: world.distance(path, queue))
    for queue in queues:
        for victim in given["victims_by_queue"][queue]:
            charges = world.charges(queue, victim)
            if not reclaim.lets(world.path(queue), charges):
                return _out(value=False)
            credit(charges)
    return _out(world.is_guaranteed(reclaimer, path))


def reclaim_strategy(case: Case) -> Case:
    """Whether one of two queues beside each other may reclaim from the other."""
    given = case["in"]
    own, other = given["reclaimer_queue"], given["victim_queue"]
    remaining = _request(given["victim_remaining"])
    for name, what in RESOURCES.items():
        other[name]["allocated"] = remaining[what]
    world = _World([{**own, "id": "own"}, {**other, "id": "other"}])
    reclaim = world.reclaim({"queue": "own", "required": given["reclaimer_required"]})
    return _out(reclaim.may_ask(world.path("other")))


def min_runtime(case: Case) -> Case:
    """How long a job of a queue is safe."""
    given = case["in"]
    queues = [
        FairQueue(
            queue["id"],
            queue["parent"] or None,
            preempt_min_runtime_s=queue.get("preempt_min_runtime_seconds"),
            reclaim_min_runtime_s=queue.get("reclaim_min_runtime_seconds"),
        )
        for queue in given["queues"]
    ]
    parts = fair_tree(queues, capacity_of(()))
    tree = QuotaTree.of(parts.cohorts, parts.queues)

    def path(name: str) -> list[TreeNode]:
        nodes = (TreeNode(kind, name) for kind in NodeKind)
        return next((tree.path(node) for node in nodes if node in tree), [])

    victim = path(given["victim_queue"])
    found: int | None = None
    if victim and given["kind"] == "preempt":
        found = preempt_runtime_ms(tree, victim[0])
    elif victim:
        rule = RuntimeOf.QUEUE if given["method"] == "queue" else RuntimeOf.BELOW_COMMON
        found = reclaim_runtime_ms(tree, victim, path(given["reclaimer_queue"]), rule)
    return _out(given["default_seconds"] if found is None else found // 1000)


class _World:
    """Queues with what they use, as accounts, and their fair shares as they are given."""

    def __init__(self, queues: list[Case]) -> None:
        self._parents = {queue["id"]: queue.get("parent") for queue in queues}
        self._accounts = {
            (queue["id"], name): self._account(queue, name)
            for queue in queues
            for name in RESOURCES
        }
        for (queue, name), account in self._accounts.items():
            account.parent = self._accounts.get((self._parents[queue], name))
        self._nodes = {queue["id"]: self._entitlements(queue, "allocated") for queue in queues}
        self._guaranteed = {
            queue["id"]: self._entitlements(queue, "allocated_non_preemptible") for queue in queues
        }

    def path(self, queue: str | None) -> list[TreeNode]:
        """A queue and the nodes above it."""
        found: list[TreeNode] = []
        while queue is not None and queue in self._parents:
            found.append(TreeNode(NodeKind.QUEUE, queue))
            queue = self._parents[queue]
        return [*found, TOP]

    def distance(self, path: list[TreeNode], queue: str) -> int:
        """How far up from a queue the first common node is."""
        other = self.path(queue)
        return next(at for at, node in enumerate(path) if node in other)

    def reclaim(self, reclaimer: Case, factor: float = 1) -> Reclaim:
        """What a job may reclaim."""
        return Reclaim(
            lambda node: self._nodes.get(node.name, ()),
            self.path(reclaimer["queue"]),
            _request(reclaimer["required"]),
            (ShareRule.FAIR_SHARE, ShareRule.DESERVED),
            Fraction(_number(factor)),
        )

    def is_guaranteed(self, reclaimer: Case, path: list[TreeNode]) -> bool:
        """Whether what is not preemptible stays within what these nodes deserve."""
        return reclaimer["preemptible"] or all(
            is_within_deserved(self._guaranteed.get(node.name, ()), _request(reclaimer["required"]))
            for node in path
        )

    def charges(self, queue: str, amounts: Case) -> list[tuple[Account, Any]]:
        """What is given back, with its accounts."""
        given = _request(amounts)
        return [(self._accounts[queue, name], given[what]) for name, what in RESOURCES.items()]

    def _account(self, queue: Case, name: str) -> Account:
        account = Account(TreeNode(NodeKind.QUEUE, queue["id"]))
        account.usage = _number(queue[name]["allocated"])  # pyright: ignore[reportAttributeAccessIssue]
        return account

    def _entitlements(self, queue: Case, usage: str) -> Entitlements:
        counted = {} if usage != "allocated" else self._accounts
        return [
            _entitlement(name, queue[name], 0, usage, counted.get((queue["id"], name)))
            for name in RESOURCES
        ]


def _entitlement(
    name: str,
    given: Case,
    total: float,
    usage: str = "allocated",
    account: Account | None = None,
) -> Entitlement:
    return entitlement(
        RESOURCES[name],
        account or Fixed(_number(given[usage])),
        _bound(given["deserved"]),
        _bound(given["limit"]),
        _number(given["fair_share"]),
        _number(total),
    )


def _request(amounts: Case) -> Requests:
    return {RESOURCES[UNITS.get(name, name)]: _number(amount) for name, amount in amounts.items()}


def _bound(value: float) -> Amount | None:
    return None if value < 0 else _number(value)


def _number(value: float | Amount) -> Amount:
    exact = Fraction(str(value))
    return exact.numerator if exact.denominator == 1 else exact


def _out(value: Any) -> Case:
    return {"actual": {"out": value}}


#: From the name of a file of cases to what answers them.
ANSWERS: dict[str, Callable[[Case], Case]] = {
    "unit_fair_share": fair_share,
    "unit_queue_order": queue_order,
    "unit_can_reclaim": can_reclaim,
    "unit_reclaimable": reclaimable,
    "unit_reclaim_strategy": reclaim_strategy,
    "unit_min_runtime": min_runtime,
}
