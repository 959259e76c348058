"""What ends together: a gang, or a part of it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from msgspec.structs import astuple

from bough.core.cycle.claim import Claim
from bough.core.cycle.tiers import Tier
from bough.core.gang.release import Unit, UnitKind
from bough.core.quota.account import Charge
from bough.model.gang import Pod
from bough.model.plan import EvictionRule
from bough.model.quota import TreeNode


class Victim:
    """What ends together: a gang, or a part that it can do without."""

    __slots__ = (
        "_parts",
        "charges",
        "claim",
        "level",
        "pods",
        "reach",
        "rule",
        "surplus",
        "unit",
        "whole",
    )

    def __init__(
        self,
        claim: Claim,
        pods: tuple[Pod, ...],
        reach: Tier | None,
        rule: EvictionRule,
        level: TreeNode,
        charges: Sequence[Charge],
        unit: Unit | None = None,
    ) -> None:
        self.claim = claim
        #: What it counts in the ledger of everything.
        self.charges = charges
        #: All that a gang or replica holds, some of which may be taken already.
        self.pods = pods
        #: `None`: it is in the preemptor's own queue.
        self.reach = reach
        self.rule = rule
        #: The lowest node of the quota tree that both are below.
        self.level = level
        #: The part of its gang that it is; `None`: the gang as a whole.
        self.unit = unit
        self.whole = unit is None
        #: Of a whole gang: what it would give back before it is broken.
        self.surplus: tuple[Pod, ...] = ()
        self._parts: frozenset[str] | None = None

    @property
    def gang(self) -> str:
        """The name of its gang."""
        return self.claim.name

    @property
    def parts(self) -> frozenset[str]:
        """The names of its pods."""
        if self._parts is None:
            self._parts = frozenset(pod.name for pod in self.pods)
        return self._parts

    @property
    def own(self) -> bool:
        """Whether it is of the preemptor's own queue."""
        return self.reach is None

    @property
    def priority(self) -> int:
        """The priority of its gang."""
        return self.claim.standing.priority

    @property
    def gpus(self) -> int:
        """The GPUs of its pods, or of its pod sets."""
        if self.claim.counted:
            usage = self.claim.usage.items()
            return sum(amount for what, amount in usage if what.resource.endswith("gpu"))
        return sum(pod.requests.gpus for pod in self.pods)

    @property
    def core(self) -> int:
        """The GPUs that its gang cannot give back without being broken; of a part all."""
        return self.gpus - sum(pod.requests.gpus for pod in self.surplus)

    @property
    def alike(self) -> Hashable:
        """What makes it as good a victim as another: its pods' requests and nodes."""
        pods = sorted((pod.node or "", astuple(pod.requests)) for pod in self.pods)
        if self.unit is not None and self.unit.kind is UnitKind.POD:
            return self.gang, self.unit.node.position, *pods
        if self.whole and self.pods and not self.surplus:
            return self.claim.queue, self.priority, *pods
        return self.gang, self.parts
