"""Whom a cycle looks at: the first in line of every queue, and what bars it before quota does.

Must not know quota.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from bough.core.cycle.applicant import Applicant
from bough.core.cycle.eligibility import satisfies
from bough.core.cycle.forest import Leaf
from bough.core.cycle.work import Work
from bough.model.admission import QueueingStrategy, StopPolicy
from bough.model.plan import Wait, WaitReason
from bough.model.policy import Heads
from bough.model.reason import cycle_text
from bough.model.snapshot import Parked
from bough.model.workload import Workload

_FAILED_CHECKS = ("Retry", "Rejected")
_NOBODY = Parked()


class Head(NamedTuple):
    """Somebody whom the cycle looks at."""

    leaf: Leaf
    applicant: Applicant


def heads(work: Work) -> Iterator[Head]:
    """Whom to look at, queue by queue, by name."""
    nominated = _nominated(work)
    for queue in sorted(work.memo.lines):
        leaf = work.forest.leaves.get(queue)
        if leaf is None:
            work.waits += _orphans(work, queue)
        else:
            favored = nominated.get(queue, ())
            yield from (Head(leaf, each) for each in _in_line(work, queue, favored))


def bar(work: Work, head: Head) -> Wait | None:
    """What bars a workload whatever quota there is."""
    key, leaf = head.applicant.key, head.leaf
    checks = head.applicant.workload.checks
    failed = next((each for each in checks if each.state in _FAILED_CHECKS), None)
    if failed is not None:
        text = f"the admission check {failed.name} says {failed.state}"
        return _wait(leaf, key, WaitReason.PENDING_EVALUATION, text)
    text = _why_stopped(work, leaf)
    if text is not None:
        wait = _wait(leaf, key, WaitReason.SUSPENDED, f"queue {leaf.queue.name} {text}")
        return msgspec.structs.replace(wait, alike=wait.parked and work.policy.park_alike)
    return _bar_namespace(work, head)


def _nominated(work: Work) -> dict[str, list[str]]:
    """By queue, for whom room is being freed; they go first, unless all wait for the first anyway.

    A queue in which everyone waits for the first has none.
    """
    found: dict[str, list[str]] = {}
    for key, known in work.snapshot.progress.items():
        queue = work.memo.places.get(key) if known.nominated else None
        leaf = None if queue is None else work.forest.leaves.get(queue)
        if leaf is not None and leaf.queue.rules.queueing is QueueingStrategy.BEST_EFFORT_FIFO:
            found.setdefault(leaf.queue.name, []).append(key)
    return found


def _in_line(work: Work, queue: str, favored: Sequence[str]) -> list[Applicant]:
    """Those in line whom the policy lets the cycle look at, in order."""
    line = work.memo.lines[queue]
    parked = work.snapshot.parked.get(queue, _NOBODY)
    ready = partial(_is_ready, work)
    if work.policy.heads is Heads.ALL:
        return line.everyone(parked, ready, favored)
    first = line.first(parked, ready, favored)
    return [] if first is None else [first]


def _bar_namespace(work: Work, head: Head) -> Wait | None:
    namespaces, namespace = work.snapshot.namespaces, head.applicant.workload.namespace
    if namespaces is None:
        return None
    labels = namespaces.get(namespace)
    if labels is None:
        text = f"there is no namespace {namespace}"
        return _wait(head.leaf, head.applicant.key, WaitReason.MISCONFIGURED, text)
    matches = head.leaf.queue.rules.namespaces
    if matches is None or not satisfies(labels, matches):
        text = f"queue {head.leaf.queue.name} does not let the namespace {namespace} in"
        # A change of labels is seen by whoever keeps the lines, so that this blocks nobody.
        return Wait(head.applicant.key, WaitReason.MISCONFIGURED, text, parked=True)
    return None


def _wait(leaf: Leaf, key: str, reason: WaitReason, text: str) -> Wait:
    """Others may pass, unless the queue says that everyone waits for the first."""
    strict = leaf.queue.rules.queueing is QueueingStrategy.STRICT_FIFO
    return Wait(key, reason, text, parked=not strict)


def _why_stopped(work: Work, leaf: Leaf) -> str | None:
    """Why a queue takes nothing new at all."""
    if leaf.queue.rules.stop is not StopPolicy.NONE:
        return f"is held: its stop policy is {leaf.queue.rules.stop}"
    if leaf.cycle:
        return f"is stopped: {cycle_text(leaf.cycle)}"
    known = work.memo.flavors
    for group in leaf.queue.resource_groups:
        for flavor in group.flavors:
            if flavor.name not in known:
                return f"is stopped: there is no flavor {flavor.name}"
    return None


def _is_ready(work: Work, workload: Workload) -> bool:
    """Whether the workload is in line at all: active, not held back, its door open."""
    retry = workload.requeue_at_ms
    if not workload.active or (retry is not None and retry > work.snapshot.now_ms):
        return False
    if workload.conditions and (workload.has("Finished") or workload.lacks("Requeued")):
        return False
    if not work.memo.local_queues:
        return True
    door = work.memo.local_queues.get((workload.namespace, workload.local_queue or ""))
    return door is None or door.stop is StopPolicy.NONE


def _orphans(work: Work, queue: str) -> Iterator[Wait]:
    text = f"there is no queue {queue}"
    for workload in work.snapshot.waiting[queue]:
        yield Wait(workload.key, WaitReason.MISCONFIGURED, text, parked=True)
