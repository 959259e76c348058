"""How long the loop pauses between two looks at what it has heard.

What is heard at once is planned at once: a pause costs a moment, and saves plans.
"""

from __future__ import annotations

from bough.model.plan import Plan, PodShortage
from bough.model.reason import WaitReason

#: The loop sleeps for the CPU time that it used, within these bounds.
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.005, 0.5
#: The shortest pause while pods are being bound: most events then only confirm the binds. The more
#: pods wait for their bind, the longer, as what is decided now is bound after them.
BINDING_PAUSE_S, LONGEST_BINDING_PAUSE_S, PAUSE_FOR_EACH_S = 0.05, 0.25, 0.0005
#: The shortest pause while the pods of a gang are being created, which comes one by one: a plan for
#: each of them would only say again that others are missing.
ARRIVING_PAUSE_S = 0.05


class Pace:
    """Sees from the plans how soon the next one is worth its time."""

    def __init__(self) -> None:
        #: The gangs that lack pods, and which.
        self._lacking: dict[str, tuple[PodShortage, ...]] = {}
        self._arrives = False

    def planned(self, decided: Plan) -> None:
        """Notice whether a gang lacks pods that did not lack the same before: more will come."""
        before = self._lacking
        self._lacking = {
            each.workload: each.shortages
            for each in decided.waits
            if each.reason == WaitReason.PODS
        }
        self._arrives = any(before.get(name) != each for name, each in self._lacking.items())

    def pause_s(self, used_s: float, waiting: int) -> float:
        """How long to pause now.

        used_s:  the CPU time since the last pause.
        waiting:  how many pods are being bound.
        """
        return min(max(used_s, self._least_s(waiting)), LONGEST_PAUSE_S)

    def _least_s(self, waiting: int) -> float:
        if waiting:
            return min(max(BINDING_PAUSE_S, PAUSE_FOR_EACH_S * waiting), LONGEST_BINDING_PAUSE_S)
        return ARRIVING_PAUSE_S if self._arrives else SHORTEST_PAUSE_S
