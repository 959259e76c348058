"""What ends together: a gang, or a part of it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import msgspec
from msgspec.structs import astuple

from bough.core.cycle.claim import Claim
from bough.core.cycle.reclaim_tiers import Tier
from bough.core.gang.release import Unit, UnitKind
from bough.core.quota.account import Charge
from bough.model.gang import Pod
from bough.model.plan import EvictionRule
from bough.model.quota import TreeNode


class Victim(msgspec.Struct, eq=False, gc=False):
    """What ends together: a gang, or a part that it can do without."""

    claim: Claim
    #: All that a gang or replica holds, some of which may be taken already.
    pods: tuple[Pod, ...]
    #: `None`: it is in the preemptor's own queue.
    reach: Tier | None
    rule: EvictionRule
    #: The lowest node of the quota tree that both are below.
    level: TreeNode
    #: How much it counts in the ledger `total`.
    charges: Sequence[Charge]
    #: The part of its gang that it is; `None`: the gang as a whole.
    unit: Unit | None = None
    #: Of a whole gang: what it would give back before it is broken.
    surplus: tuple[Pod, ...] = ()
    #: The names of its pods, once they were asked for.
    known_parts: frozenset[str] | None = None

    @property
    def whole(self) -> bool:
        """Whether it is a gang, and not a part of one."""
        return self.unit is None

    @property
    def gang(self) -> str:
        """The name of its gang."""
        return self.claim.name

    @property
    def parts(self) -> frozenset[str]:
        """The names of its pods."""
        if self.known_parts is None:
            self.known_parts = frozenset(pod.name for pod in self.pods)
        return self.known_parts

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
        """The GPUs that its gang cannot give back without being broken; for a part, all."""
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
