"""Planning under the eyes of the laws."""

from __future__ import annotations

from bough.core.cycle.plan import plan
from bough.model.gang_rules import GangRules
from bough.model.plan import Plan
from bough.model.policy import OSMO
from bough.model.snapshot import Snapshot
from tests.oracles.cycle import check_plan
from tests.simulation import replace


def decide(snapshot: Snapshot, **rules: object) -> Plan:
    """A plan of the osmo preset, which keeps all laws."""
    decided = plan(snapshot, replace(OSMO, gangs=replace(GangRules(), **rules)))
    check_plan(snapshot, decided)
    return decided
