"""Whom a cycle looks at: the first in line of every queue, and what bars it before quota does.

Must not know quota.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bough.core.cycle.applicant import Applicant
from bough.core.cycle.eligibility import satisfies
from bough.core.cycle.forest import Leaf
from bough.core.cycle.standing import Standing
from bough.core.cycle.work import Work
from bough.model.admission import QueueingStrategy, StopPolicy
from bough.model.plan import Wait, WaitReason
from bough.model.policy import Heads
from bough.model.reason import cycle_text
from bough.model.workload import Workload

_FAILED_CHECKS = ("Retry", "Rejected")


class Head(NamedTuple):
    """Somebody whom the cycle looks at."""

    leaf: Leaf
    applicant: Applicant


def heads(work: Work) -> Iterator[Head]:
    """Whom to look at, queue by queue, by name."""
    for queue in sorted(work.snapshot.waiting):
        leaf = work.forest.leaves.get(queue)
        if leaf is None:
            work.waits += _orphans(work, queue)
            continue
        if leaf.queue.rules.stop is not StopPolicy.NONE:
            continue
        line = _line(work, leaf)
        if work.policy.heads is Heads.FIRST:
            line = [min(line)] if line else []
        else:
            line.sort()
        yield from (Head(leaf, applicant) for _, _, applicant in line)


def _line(work: Work, leaf: Leaf) -> list[tuple[bool, Standing, Applicant]]:
    """Who is in line, with what they are sorted by; no two standings are equal.

    Whoever has room being freed for it goes first, unless everyone waits for the first anyway.
    """
    queue = leaf.queue
    best_effort = queue.rules.queueing is QueueingStrategy.BEST_EFFORT_FIFO
    progress = work.snapshot.progress if best_effort else {}
    line: list[tuple[bool, Standing, Applicant]] = []
    for each in work.memo.applicants(queue.name, work.snapshot.waiting[queue.name]):
        if _is_ready(work, each.workload):
            known = progress.get(each.key)
            line.append((known is None or not known.nominated, each.standing, each))
    return line


def bar(work: Work, head: Head) -> Wait | None:
    """What bars a workload whatever quota there is."""
    workload, leaf = head.applicant.workload, head.leaf
    key, queue = head.applicant.key, leaf.queue
    failed = next((each for each in workload.checks if each.state in _FAILED_CHECKS), None)
    if failed is not None:
        text = f"the admission check {failed.name} says {failed.state}"
        return _barred(leaf, key, WaitReason.PENDING_EVALUATION, text)
    if leaf.cycle:
        text = f"queue {queue.name} is stopped: {cycle_text(leaf.cycle)}"
        return _barred(leaf, key, WaitReason.SUSPENDED, text)
    missing = _missing_flavor(work, leaf)
    if missing is not None:
        text = f"queue {queue.name} is stopped: there is no flavor {missing}"
        return _barred(leaf, key, WaitReason.SUSPENDED, text)
    return _bar_namespace(work, head)


def _bar_namespace(work: Work, head: Head) -> Wait | None:
    namespaces, namespace = work.snapshot.namespaces, head.applicant.workload.namespace
    if namespaces is None:
        return None
    labels = namespaces.get(namespace)
    if labels is None:
        text = f"there is no namespace {namespace}"
        return _barred(head.leaf, head.applicant.key, WaitReason.MISCONFIGURED, text)
    matches = head.leaf.queue.rules.namespaces
    if matches is None or not satisfies(labels, matches):
        text = f"queue {head.leaf.queue.name} does not let the namespace {namespace} in"
        # A change of labels is seen by whoever keeps the lines, so that this blocks nobody.
        return Wait(head.applicant.key, WaitReason.MISCONFIGURED, text, parked=True)
    return None


def _barred(leaf: Leaf, key: str, reason: WaitReason, text: str) -> Wait:
    """Others may pass, unless the queue says that everyone waits for the first."""
    strict = leaf.queue.rules.queueing is QueueingStrategy.STRICT_FIFO
    return Wait(key, reason, text, parked=not strict)


def _missing_flavor(work: Work, leaf: Leaf) -> str | None:
    known = work.memo.flavors
    for group in leaf.queue.resource_groups:
        for flavor in group.flavors:
            if flavor.name not in known:
                return flavor.name
    return None


def _is_ready(work: Work, workload: Workload) -> bool:
    """Whether the workload is in line at all: active, not held back, its door open."""
    if not workload.active or workload.has("Finished"):
        return False
    retry = workload.requeue_at_ms
    if workload.lacks("Requeued") or (retry is not None and retry > work.snapshot.now_ms):
        return False
    door = work.memo.local_queues.get((workload.namespace, workload.local_queue or ""))
    return door is None or door.stop is StopPolicy.NONE


def _orphans(work: Work, queue: str) -> Iterator[Wait]:
    text = f"there is no queue {queue}"
    for workload in work.snapshot.waiting[queue]:
        yield Wait(workload.key, WaitReason.MISCONFIGURED, text, parked=True)
