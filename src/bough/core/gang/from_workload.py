"""A Workload, as people write it for Kueue, as a gang: its pod sets are the leaves."""

from __future__ import annotations

from bough.model.gang import LONG_AGO, Gang
from bough.model.workload import Workload

#: What follows the name of a Workload, where something else has that name.
OF_WORKLOAD = " (workload)"


def gang_of_workload(workload: Workload, queue: str, *, taken: bool = False) -> Gang:
    """The gang that waits in a queue, or holds its quota; `taken`: another gang has its name.

    It may borrow and be evicted, as everything may that Kueue admits.
    """
    created = workload.created_ms
    return Gang(
        name=f"{workload.key}{OF_WORKLOAD}" if taken else workload.key,
        queue=queue,
        pods=(),
        priority=workload.priority or 0,
        preemptible=True,
        submitted_ms=LONG_AGO if created is None else created,
        started_ms=_reserved_ms(workload),
        owner=workload.namespace,
        pod_sets=workload.pod_sets,
        admission=workload.admission,
        reclaimable_pods=workload.reclaimable_pods,
        namespace=workload.namespace,
        local_queue=workload.local_queue,
        uid=workload.uid or "",
        active=workload.active,
        requeue_at_ms=workload.requeue_at_ms,
        conditions=workload.conditions,
        checks=workload.checks,
        annotations=workload.annotations,
    )


def _reserved_ms(workload: Workload) -> int | None:
    """Since when it holds its quota; its pods may start then, and are counted."""
    if not workload.holds_quota:
        return None
    reserved = (each for each in workload.conditions if each.type == "QuotaReserved")
    return next((each.since_ms for each in reserved if each.status), None)
