"""Why something is so, as data: refusals of the quota tree, conditions of its nodes, events.

Every sentence a person reads is made from these fields, so that machines can read the same.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from bough.model.quota import FlavorResource, TreeNode
from bough.model.words import OBJECT_WORDS, Words, write_amount


class RefusalKind(StrEnum):
    """Why an admission is refused."""

    #: The queue hangs on a cycle of cohorts.
    TANGLED = "tangled"
    #: The queue does not list this flavor and resource at all.
    NOT_LISTED = "not_listed"
    #: A balance on the way to the root would fall below its floor.
    OVER_QUOTA = "over_quota"


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """Why a queue cannot take a request now.

    For OVER_QUOTA the violated inequality is `balance - passed >= -borrowing_limit` at `node`:
    `passed` is the part of the request that the nodes below cannot serve from what they keep
    for themselves. In a tree that owes nothing this is the design's `T(x,r) >= -borrowingLimit`.
    """

    kind: RefusalKind
    queue: str
    flavor_resource: FlavorResource | None = None
    requested: int = 0
    #: How much of it would be admitted now, and at most if nothing ran.
    available: int = 0
    potential: int = 0
    #: The node whose inequality is violated, the one nearest to the queue where several are.
    node: TreeNode | None = None
    balance: int = 0
    passed: int = 0
    #: `None` only where there is no such node; a root may borrow 0.
    borrowing_limit: int | None = None
    #: The cohorts of the cycle, each the child of the next.
    cycle: tuple[str, ...] = ()
    #: What the balance leaves out, as it is promised to other queues that do not use it now.
    promised: int = 0

    @property
    def deficit(self) -> int:
        """By how much the request is too large."""
        return self.requested - self.available

    @property
    def never(self) -> bool:
        """Whether the request would not fit even if nothing ran."""
        return self.kind is not RefusalKind.TANGLED and self.requested > self.potential

    @property
    def sentence(self) -> str:
        """The reason in one sentence."""
        return self.say(OBJECT_WORDS)

    def say(self, words: Words) -> str:
        """The reason in one sentence, in these words."""
        if self.kind is RefusalKind.TANGLED:
            return f"{words.queue(self.queue)} is stopped: {cycle_text(self.cycle)}"
        if self.kind is RefusalKind.NOT_LISTED:
            return f"{words.queue(self.queue)} does not list {self.flavor_resource}"
        short = words.amount(self.flavor_resource, self._write(self.deficit))
        left = (
            f"{self._are(self.balance)} left"
            if self.balance >= 0
            else f"{self._are(-self.balance)} used too many"
        )
        limit = self.borrowing_limit
        borrowed = f", and it may borrow {self._write(limit)}" if limit else ""
        asked = f"{self._are(self.passed)} asked for{borrowed}"
        return f"{words.node(self.node)} is short of {short}: {left}, {asked}"

    def _are(self, amount: int) -> str:
        if amount == 0:
            return "none is"
        written = self._write(amount)
        return f"{written} is" if written == "1" else f"{written} are"

    def _write(self, amount: int) -> str:
        what = self.flavor_resource
        return write_amount(what.resource, amount) if what else str(amount)


class WaitReason(StrEnum):
    """Why a gang waits, in one word that programs can rely on."""

    #: The queue does not exist, or takes no gangs.
    QUEUE = "queue"
    #: The queue hangs on a cycle of cohorts.
    TANGLED = "tangled"
    #: The queue, or the local queue, takes nothing new.
    STOPPED = "stopped"
    #: The queue does not let its namespace in.
    NAMESPACE = "namespace"
    #: A check that must pass before has not.
    CHECK = "check"
    #: It was set inactive, or must not come back yet.
    INACTIVE = "inactive"
    #: Pods, or subgroups, that it needs do not exist yet.
    PODS = "pods"
    #: Its owner has as many GPUs as one owner may.
    OWNER_LIMIT = "owner_limit"
    #: Another gang of the same queue and rank is first in line.
    BEHIND = "behind"
    #: No flavor of its queue suits its pods.
    FLAVOR = "flavor"
    #: It would not fit even if nothing ran.
    TOO_LARGE = "too_large"
    #: What is guaranteed would exceed a quota.
    QUOTA = "quota"
    #: All use together would exceed a limit, or what there is.
    LIMIT = "limit"
    #: There are no nodes for it.
    PLACE = "place"
    #: The backend of its pool does not answer.
    BACKEND = "backend"
    #: Others are told to end for it.
    NOMINATED = "nominated"


class Condition(msgspec.Struct, frozen=True, gc=False):
    """A lasting fact about a node of the tree, in the words of Kubernetes conditions."""

    type: str
    status: bool
    reason: str
    message: str


class Event(msgspec.Struct, frozen=True, gc=False):
    """Something that just happened to a node of the tree."""

    node: TreeNode
    reason: str
    message: str


def cycle_text(cycle: tuple[str, ...]) -> str:
    """Name a cycle the way it runs, from child to parent and back."""
    return "its cohorts form a cycle: " + " → ".join((*cycle, cycle[0]))
