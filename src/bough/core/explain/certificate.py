"""`certificate()`: why a workload is where it is, in whichever form it was written.

Pure: same snapshot and policy, same certificate. Costs one cycle, or as many as it takes until the
workload has its turn. Must not know what would help: that costs more, and is asked for by itself.
"""

from __future__ import annotations

from bough.core.cycle.memo import Memo
from bough.core.explain.gangs import explain_gang
from bough.core.explain.workloads import explain_workload
from bough.model.certificate import Certificate
from bough.model.policy import Policy
from bough.model.snapshot import Snapshot


def certificate(
    snapshot: Snapshot, policy: Policy, workload: str, memo: Memo | None = None
) -> Certificate | None:
    """Why a workload waits, or that it does not; `None` where there is no such workload.

    A memo makes it faster for gangs, as it does a plan, and never changes what is said.
    """
    if snapshot.gangs:
        return explain_gang(snapshot, policy, workload, memo)
    return explain_workload(snapshot, policy, workload)
