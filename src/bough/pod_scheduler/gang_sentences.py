"""The sentence about each gang, from its certificate; computed only when its reason changed."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from bough.core.cycle.memo import Memo
from bough.core.cycle.waits import Waits
from bough.core.explain.certificate import ExplainedCycle
from bough.model.gang import Gang, PodState
from bough.model.plan import Plan, Wait
from bough.model.policy import Policy
from bough.model.snapshot import Snapshot
from bough.pod_scheduler.status_text import Telling, telling

#: How many certificates are made per plan; further gangs get the short reason of the plan until
#: their turn comes.
MOST = 100
_ENDED = (PodState.SUCCEEDED, PodState.FAILED)


class Sentences:
    """The sentences of one plan. Use it in a `with`: it replays the cycle once if it needs to."""

    def __init__(
        self,
        decided: tuple[Snapshot, Plan],
        policy: Policy,
        memo: Memo,
        known: dict[str, tuple[Wait, str]],
    ) -> None:
        """known:  the sentences of the last plan. memo:  the one that this plan was made with."""
        snapshot, plan = decided
        self._waits = Waits(snapshot, policy, plan)
        self._nominated = {each.workload for each in plan.nominations}
        self._bound = {each.workload for each in plan.binds}
        #: The gangs of which the plan says something by itself.
        self.apart = self._waits.apart | self._nominated | self._bound
        self._known = known
        self._cycle = ExplainedCycle(snapshot, policy, memo)
        self._made = 0
        #: For each waiting gang: the reason, and its sentence.
        self.told: dict[str, tuple[Wait, str]] = {}

    def __enter__(self) -> Sentences:
        return self

    def __exit__(self, *error: object) -> None:
        self._cycle.close()

    def of(self, gang: Gang, blocked_for: Callable[[str], str]) -> Telling | None:
        """The state of a gang; `None` if that is changing at this moment."""
        if gang.name in self._bound:
            return None
        if gang.name in self._nominated:
            text = self._sentence(gang, Wait(gang.name, "nominated"))
            blocked = blocked_for(gang.name)
            return telling("nominated", f"{text}; {blocked}" if blocked else text, waits=True)
        wait = self._waits.of(gang)
        runs = any(pod.state is PodState.RUNNING for pod in gang.pods)
        if wait is not None and (not runs or gang.stale_since_ms is not None):
            return telling(wait.reason, self._sentence(gang, wait), waits=True)
        if gang.stale_since_ms is not None:
            return telling("stale", "it runs with less than it needs", waits=True)
        if all(pod.state in _ENDED for pod in gang.pods):
            return telling("ended", "all its pods have ended", waits=False)
        return telling("scheduled", "it has what it needs", waits=False)

    def _sentence(self, gang: Gang, wait: Wait) -> str:
        name = gang.name
        asked = next((pod.unsupported for pod in gang.pods if pod.unsupported), "")
        # The reason stays the same when a pod asks for another thing that we do not support.
        key = msgspec.structs.replace(wait, note=f"{wait.note} {asked}") if asked else wait
        before = self._known.get(name)
        if before is not None and before[0] == key:
            self.told[name] = before
            return before[1]
        if self._made >= MOST:
            return wait.message or "it waits"
        self._made += 1
        found = self._cycle.certificate(name)
        text = wait.message if found is None else found.sentence
        self.told[name] = (key, text)
        return text
