"""Which translation answers which file of cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance import (
    kai_fairness,
    kai_gang,
    kai_scenarios,
    kai_topology,
    kueue_flavors,
    kueue_preempt,
    kueue_quota,
    kueue_schedule,
)

#: From the name of a file, without its ending, to what answers its cases.
ANSWERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    **kueue_quota.ANSWERS,
    **kueue_preempt.ANSWERS,
    **kueue_flavors.ANSWERS,
    **kueue_schedule.ANSWERS,
    **kai_fairness.ANSWERS,
    **kai_gang.ANSWERS,
    **kai_scenarios.ANSWERS,
    **kai_topology.ANSWERS,
}
