"""What was decided: a plan is data, and adapters apply it.

Every gang that is left waiting has a reason: its own in the plan, or that of one like it, which
core.cycle.waits reads. Same snapshot and policy, same plan, byte for byte, which its digest makes
easy to check.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum

import msgspec

from bough.model.quota import TreeNode
from bough.model.reason import Refusal
from bough.model.words import OBJECT_WORDS, Words
from bough.model.workload import Admission, Assignment


class Admit(msgspec.Struct, frozen=True, gc=False):
    """A workload gets quota."""

    workload: str
    admission: Admission


class Bind(msgspec.Struct, frozen=True, gc=False):
    """A pod gets a node."""

    workload: str
    pod: str
    node: str
    #: Beyond the minimum of its gang: it borrows, and is given back first.
    growth: bool = False


class EvictionRule(StrEnum):
    """By which right something is evicted."""

    #: Lower rank in the same queue.
    PREEMPT = "preempt"
    #: Borrowed quota goes back to its owner.
    RECLAIM = "reclaim"
    #: Borrowed quota goes to a gang that also borrows, but ranks higher.
    RECLAIM_WHILE_BORROWING = "reclaim_while_borrowing"
    #: Borrowed quota goes to a gang whose side of the tree has a smaller share.
    FAIR_SHARE = "fair_share"
    #: It goes to another place, so that a gang fits: a nomination says where.
    MOVE = "move"
    #: A running gang has fallen below its minimum.
    STALE = "stale"
    #: The queue was stopped and is drained.
    DRAIN = "drain"


class Eviction(msgspec.Struct, frozen=True, gc=False):
    """A workload, or some of its pods, must end."""

    workload: str
    rule: EvictionRule
    #: The pods that go; empty: all of them.
    pods: tuple[str, ...] = ()
    #: The gang for which it ends.
    preemptor: str | None = None
    #: The node of the quota tree at which it was decided: the lowest that both are below.
    level: TreeNode | None = None


class Nomination(msgspec.Struct, frozen=True, gc=False):
    """A workload will start on room that is being freed; no other may take that room."""

    workload: str
    #: Pod to node, where there are nodes.
    pods: dict[str, str] = {}
    #: Whose end it waits for.
    waits_for: tuple[str, ...] = ()
    #: What its pod sets will get, where it has any.
    promised: tuple[Assignment, ...] = ()


class PodShortage(msgspec.Struct, frozen=True, gc=False):
    """A node of a gang that cannot get what it needs from the pods that there are."""

    #: The gang's own name at the root.
    subgroup: str
    #: Pods, or children that can start.
    needed: int
    available: int
    #: Whether pods are counted, and not children.
    leaf: bool = True

    @property
    def missing(self) -> int:
        """By how many it is short."""
        return self.needed - self.available


class Wait(msgspec.Struct, frozen=True, gc=False):
    """A workload that stays where it is, and why."""

    workload: str
    #: The dominant reason, as a short word that programs can rely on.
    reason: str
    #: The same in one sentence, where there is no refusal to say it; `{}` stands for `about`.
    note: str = ""
    #: Whether it need not be looked at again until something in its tree changes.
    parked: bool = False
    #: Whether the same holds for every workload of the same shape in its queue; only the first of
    #: them is named.
    alike: bool = False
    #: By pod set and resource: the position of the last flavor that was tried, where the next try
    #: starts after it; see `Progress`.
    tried: dict[str, dict[str, int]] = {}
    #: The violated inequality, where that is the reason.
    refusal: Refusal | None = None
    #: Whether nothing of its queue and rank passes it that wants the same.
    blocks: bool = False
    #: What lacks pods, from the gang itself down, where that is the reason.
    shortages: tuple[PodShortage, ...] = ()
    #: The cohorts of the cycle that stops its queue, each the child of the next.
    cycle: tuple[str, ...] = ()
    #: The node of the quota tree that the note names, if it names one.
    about: TreeNode | None = None

    @property
    def message(self) -> str:
        """The dominant reason in one sentence."""
        return self.say(OBJECT_WORDS)

    def say(self, words: Words) -> str:
        """The dominant reason in one sentence, in these words."""
        note = self.note
        if self.about is not None:
            # Only the first: what follows it may be a name that people chose.
            note = note.replace("{}", words.node(self.about), 1)
        if self.refusal is None:
            return note
        sentence = self.refusal.say(words)
        return f"{sentence}; {note}" if note else sentence


class Plan(msgspec.Struct, frozen=True, gc=False):
    """The decisions of one cycle."""

    #: The version of the snapshot that it was made for.
    version: int = 0
    admits: tuple[Admit, ...] = ()
    binds: tuple[Bind, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    nominations: tuple[Nomination, ...] = ()
    waits: tuple[Wait, ...] = ()

    @property
    def digest(self) -> str:
        """Equal for equal plans, whatever made them."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()
