"""What bars a gang however much quota and room there is: its queue, its namespace, its state.

Also how many GPUs its owner may hold, and which gangs of its line it must not pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from bough.core.cycle.claim import Claim
from bough.core.cycle.cycle import Cycle
from bough.core.cycle.flavor_eligibility import satisfies
from bough.core.cycle.forest import Leaf
from bough.core.cycle.offers import Offer
from bough.core.cycle.queue_order import Standing
from bough.core.cycle.reasons import wait_behind, wait_for_queue
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.gang.demand import first_choice
from bough.core.gang.release import core_pods
from bough.model.admission_rules import QueueingStrategy, StopPolicy
from bough.model.gang import Gang
from bough.model.gang_rules import LineOrder
from bough.model.plan import Wait
from bough.model.policy import Judging
from bough.model.quota import NodeKind, Queue, TreeNode
from bough.model.reason import WaitReason
from bough.model.words import counted
from bough.model.workload import LocalQueue

#: By namespace and name.
Doors = Mapping[tuple[str, str], LocalQueue]
#: Labels by namespace; `None`: namespaces do not matter.
Namespaces = Mapping[str, Mapping[str, str]] | None

_FAILED_CHECKS = ("Retry", "Rejected")


def bar(copy: WorkingCopy, claim: Claim) -> Wait | None:
    """What bars a gang before its wants are looked at."""
    leaf = claim.leaf
    if leaf is None:
        return wait_for_queue(copy, claim)
    text = why_unchecked(claim.gang) if claim.gang.checks else None
    if text is not None:
        return _wait(leaf, claim.name, WaitReason.CHECK, text)
    rules = leaf.queue.rules
    missing = leaf.missing_flavor(copy.flavors) if claim.counted else None
    is_open = missing is None and rules.stop is StopPolicy.NONE
    stopped = None if is_open else wait_for_stop(claim.name, leaf.queue, missing)
    if stopped is not None:
        strict = is_strict(leaf)
        alike = not strict and copy.policy.park_alike
        return msgspec.structs.replace(stopped, parked=not strict, alike=alike)
    if leaf.cycle:
        tangled = wait_for_queue(copy, claim)
        return msgspec.structs.replace(tangled, parked=not is_strict(leaf))
    namespaces = copy.snapshot.namespaces
    return None if namespaces is None else wait_for_namespace(claim.gang, leaf.queue, namespaces)


def why_unchecked(gang: Gang) -> str | None:
    """Which admission check has failed."""
    failed = next((each for each in gang.checks if each.state in _FAILED_CHECKS), None)
    return None if failed is None else f"the admission check {failed.name} says {failed.state}"


def wait_for_stop(name: str, queue: Queue, missing: str | None = None) -> Wait | None:
    """Why a queue takes nothing new at all, whatever stands first in its line.

    missing:  a flavor that the queue lists and that does not exist.
    """
    if queue.rules.stop is not StopPolicy.NONE:
        text = f"{{}} is stopped: its stopPolicy is {queue.rules.stop}"
    elif missing is not None:
        text = f"{{}} is stopped: there is no flavor {missing}"
    else:
        return None
    return Wait(name, WaitReason.STOPPED, text, about=TreeNode(NodeKind.QUEUE, queue.name))


def wait_for_namespace(gang: Gang, queue: Queue, namespaces: Namespaces) -> Wait | None:
    """Why a queue does not let the namespace of a gang in.

    The caller that keeps the lines notices a change of labels, so this blocks nothing.
    """
    matches = queue.rules.namespaces
    if namespaces is None or matches == ():
        return None
    labels = namespaces.get(gang.namespace)
    if labels is None:
        text = f"there is no namespace {gang.namespace}"
        return Wait(gang.name, WaitReason.NAMESPACE, text, parked=True)
    if matches is None or not satisfies(labels, matches):
        text = f"{{}} does not let the namespace {gang.namespace} in"
        about = TreeNode(NodeKind.QUEUE, queue.name)
        return Wait(gang.name, WaitReason.NAMESPACE, text, parked=True, about=about)
    return None


def bar_line(cycle: Cycle, claim: Claim) -> Wait | None:
    """Make a gang behind the first of its queue wait for it, where the queue says so.

    A gang that runs and only has to be completed passes no other: it is there already.
    """
    first = cycle.first_in_line.get(claim.queue)
    if first is None or claim.running or _turn(cycle.copy, claim) <= _turn(cycle.copy, first):
        return None
    return wait_behind(claim.name, claim.queue)


def hold_up(cycle: Cycle, claim: Claim) -> None:
    """Let nothing pass a gang that waits in a queue in which everything waits for the first.

    A gang that lacks pods, or was set aside, is not in line yet.
    """
    leaf, wait = claim.leaf, cycle.outcome.waits.get(claim.name)
    if leaf is None or wait is None or not is_strict(leaf):
        return
    if wait.parked or wait.reason in {WaitReason.PODS, WaitReason.BEHIND}:
        return
    cycle.outcome.wait(msgspec.structs.replace(wait, blocks=True))
    stand_first(cycle, claim)


def stand_first(cycle: Cycle, claim: Claim) -> None:
    """Make the gangs behind this one wait for it."""
    first = cycle.first_in_line.get(claim.queue)
    if first is None or _turn(cycle.copy, claim) < _turn(cycle.copy, first):
        cycle.first_in_line[claim.queue] = claim


def _turn(copy: WorkingCopy, claim: Claim) -> tuple[bool, Standing]:
    """Where a gang stands in the line of its queue; guaranteed gangs may have a line before it."""
    in_turn = copy.policy.judging is Judging.IN_TURN
    second = in_turn and copy.rules.line is LineOrder.GUARANTEED_FIRST and claim.preemptible
    return second, claim.standing


def may_grow(cycle: Cycle, claim: Claim) -> bool:
    """Whether a gang may grow: whatever would keep it from starting keeps it from growing."""
    copy = cycle.copy
    if claim.leaf is None or claim.queue in cycle.first_in_line:
        return False
    return is_ready(copy, claim) and bar(copy, claim) is None


def hold_back(copy: WorkingCopy, claim: Claim) -> Wait | None:
    """Why a gang is not in line at all."""
    gang = claim.gang
    now_ms = 0 if gang.requeue_at_ms is None else copy.now_ms
    return why_not_in_line(gang, copy.local_queues, now_ms)


def why_not_in_line(gang: Gang, doors: Doors, now_ms: int) -> Wait | None:
    """Inactive, held back, or its local queue is stopped."""
    if not gang.active:
        return Wait(gang.name, WaitReason.INACTIVE, "it is not active")
    retry = gang.requeue_at_ms
    if retry is not None and retry > now_ms:
        seconds = -(-(retry - now_ms) // 1000)
        text = f"it is held back after an eviction, for {seconds} s more"
        return Wait(gang.name, WaitReason.INACTIVE, text)
    if gang.conditions and gang.lacks("Requeued"):
        text = "it was evicted and is not in line again yet"
        return Wait(gang.name, WaitReason.INACTIVE, text)
    door = doors.get((gang.namespace, gang.local_queue or "")) if doors else None
    if door is not None and door.stop is not StopPolicy.NONE:
        text = f"local queue {door.name} is stopped: its stopPolicy is {door.stop}"
        return Wait(gang.name, WaitReason.STOPPED, text)
    return None


def is_ready(copy: WorkingCopy, claim: Claim) -> bool:
    """Whether a gang is in line: `hold_back` without the reason."""
    gang = claim.gang
    if not gang.active or gang.requeue_at_ms is not None or gang.conditions or copy.local_queues:
        return hold_back(copy, claim) is None
    return True


def bar_offer(cycle: Cycle, claim: Claim, offer: Offer) -> Wait | None:
    """What bars a gang from what it wants most: its owner's limit, or another before it in line."""
    limited = _bar_owner(cycle, claim, offer)
    if limited is not None:
        return limited
    # A gang that runs and only has to be completed passes no other: it is there already.
    may_pass = not cycle.blockers or bool(claim.running)
    if may_pass or cycle.blocker_of(claim, frozenset(offer.request)) is None:
        return None
    return wait_behind(claim.name, claim.queue)


def count_owner(cycle: Cycle, claim: Claim, pods: Iterable[str]) -> None:
    """Count the GPUs that an owner gets."""
    if cycle.owned is None or claim.preemptible:
        return
    placed = {*pods}
    gpus = sum(pod.requests.gpus for pod in claim.gang.pods if pod.name in placed)
    for key in _limits_of(cycle.copy, claim):
        cycle.owned[key] = cycle.owned.get(key, 0) + gpus


def _bar_owner(cycle: Cycle, claim: Claim, offer: Offer) -> Wait | None:
    limits = cycle.copy.snapshot.owner_gpu_limits
    if not limits or claim.preemptible or not claim.gang.owner:
        return None
    if cycle.owned is None:
        cycle.owned = _count_owned(cycle.copy)
    asked = sum(pod.requests.gpus for pod in first_choice(offer.demand))
    for key in _limits_of(cycle.copy, claim) if asked else ():
        held, limit = cycle.owned.get(key, 0), limits[key[0]]
        first = cycle.owners_waiting.get(key)
        if held + asked <= limit and first is None:
            continue
        owner = claim.gang.owner
        note = f"{owner} holds {held} of {counted(limit, 'GPU')} that one user may have in {{}}"
        if held + asked <= limit and first is not None:
            note += f", and {first.name} is first in line"
        else:
            cycle.owners_waiting.setdefault(key, claim)
            note += f"; it asks for {asked}"
        about = next(node for node in cycle.copy.path(claim.queue) if node.name == key[0])
        return Wait(claim.name, WaitReason.OWNER_LIMIT, note, alike=True, about=about)
    return None


def _limits_of(copy: WorkingCopy, claim: Claim) -> list[tuple[str, str]]:
    """The nodes above a gang that limit its owner, each with the owner."""
    limits = copy.snapshot.owner_gpu_limits
    nodes = copy.path(claim.queue) if copy.takes_gangs(claim.queue) else ()
    return [(node.name, claim.gang.owner) for node in nodes if node.name in limits]


def _count_owned(copy: WorkingCopy) -> dict[tuple[str, str], int]:
    """The guaranteed GPUs that owners hold."""
    owned: dict[tuple[str, str], int] = {}
    for claims in copy.running.values():
        for claim in claims.values():
            if claim.preemptible or not claim.gang.owner:
                continue
            for key in _limits_of(copy, claim):
                core = core_pods(claim.tree, claim.tree.held)
                gpus = sum(pod.requests.gpus for pod in core)
                owned[key] = owned.get(key, 0) + gpus
    return owned


def _wait(leaf: Leaf, name: str, reason: WaitReason, text: str) -> Wait:
    """Others may pass, unless the queue says that all wait for the first."""
    return Wait(name, reason, text, parked=not is_strict(leaf))


def is_strict(leaf: Leaf) -> bool:
    """Whether everything in a queue waits for the first."""
    return leaf.queue.rules.queueing is QueueingStrategy.STRICT_FIFO
