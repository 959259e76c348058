"""`plan()`: one scheduling cycle, as a sequence of passes.

Pure: same snapshot and policy, same plan, byte for byte. A memo makes it faster and never changes
the plan. Must not know who carries the plan out.
"""

from __future__ import annotations

from bough.core.cycle.decision import decide
from bough.core.cycle.drain import drain
from bough.core.cycle.entries import line_up
from bough.core.cycle.gangs.passes import plan_gangs
from bough.core.cycle.memo import Memo
from bough.core.cycle.work import Work
from bough.model.plan import Plan
from bough.model.policy import Policy
from bough.model.snapshot import Snapshot


def plan(snapshot: Snapshot, policy: Policy, memo: Memo | None = None) -> Plan:
    """Decide what starts, what ends and what waits, and why."""
    memo = Memo() if memo is None else memo
    if snapshot.gangs:
        return plan_gangs(snapshot, policy.gangs, memo.gangs)
    with Work(snapshot, policy, memo) as work:
        drain(work)
        for entry in line_up(work):
            decide(work, entry)
        return work.plan()
