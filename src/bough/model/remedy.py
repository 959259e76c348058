"""What would help a workload that waits: steps that the core can take, and what they change.

A step is told in the core's types, so that it can be planned. A change is the same in the objects
that people wrote: which object, which field, from what to what.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from bough.model.cluster import Resources
from bough.model.quota import FlavorResource, TreeNode


class RemedyKind(StrEnum):
    """What would help, the cheapest first."""

    #: Others end by themselves.
    WAIT = "wait"
    #: It may borrow, and be evicted.
    RUN_AS_LOW = "run_as_low"
    SMALLER_MINIMUM = "smaller_minimum"
    #: Its pods say nothing about their nodes.
    OTHER_FLAVOR = "other_flavor"
    #: Its pods tolerate a taint.
    TOLERATE = "tolerate"
    #: Another queue, or pool, takes it now.
    MOVE = "move"
    #: A queue, or the workload itself, is no longer held.
    RESUME = "resume"
    #: A cohort is taken out of a cycle.
    UNTANGLE = "untangle"
    #: Nodes take pods again.
    UNCORDON = "uncordon"
    #: It goes before others, and may preempt what is of a lower priority then.
    RAISE_PRIORITY = "raise_priority"
    #: Its queue, or a node above it, counts for more where queues share by weight.
    RAISE_WEIGHT = "raise_weight"
    RAISE_QUOTA = "raise_quota"
    RAISE_LIMIT = "raise_limit"
    #: Others lend more of what they do not use.
    RAISE_LENDING = "raise_lending"
    ADD_NODES = "add_nodes"
    #: Several of the above, of which none is enough by itself.
    TOGETHER = "together"


class Knob(StrEnum):
    """What of a node of the quota tree is raised."""

    #: What it has of its own.
    QUOTA = "quota"
    #: How much it may use at most, its own and borrowed.
    LIMIT = "limit"
    #: How much others may use of what it has.
    LENDING = "lending limit"


class HeldPart(StrEnum):
    """What can be held."""

    QUEUE = "queue"
    LOCAL_QUEUE = "local queue"
    WORKLOAD = "workload"


class End(msgspec.Struct, frozen=True, tag="end"):
    """Another workload ends."""

    workload: str


class BePreemptible(msgspec.Struct, frozen=True, tag="be_preemptible"):
    """It may borrow, and be evicted."""


class RaisePriority(msgspec.Struct, frozen=True, tag="raise_priority"):
    """It has a higher priority."""

    priority: int
    #: What that is called; `None`: priorities are numbers.
    word: str | None = None
    #: Whether it may be evicted then; `None`: as before.
    preemptible: bool | None = None


class LowerMinimum(msgspec.Struct, frozen=True, tag="lower_minimum"):
    """Fewer pods, or subgroups, are enough."""

    #: `None`: of the whole.
    subgroup: str | None
    before: int
    after: int


class AnyNodes(msgspec.Struct, frozen=True, tag="any_nodes"):
    """Its pods have no node selector and no affinity."""


class Tolerate(msgspec.Struct, frozen=True, tag="tolerate"):
    """Its pods tolerate all taints of one key."""

    key: str


class Move(msgspec.Struct, frozen=True, tag="move"):
    """It waits in another queue."""

    queue: str


class Resume(msgspec.Struct, frozen=True, tag="resume"):
    """Something is no longer held."""

    part: HeldPart
    name: str


class Untangle(msgspec.Struct, frozen=True, tag="untangle"):
    """A cohort has no parent."""

    cohort: str


class Uncordon(msgspec.Struct, frozen=True, tag="uncordon"):
    """A node takes pods again."""

    node: str


class Raise(msgspec.Struct, frozen=True, tag="raise"):
    """More for a node of the quota tree."""

    node: TreeNode
    flavor_resource: FlavorResource
    by: int
    knob: Knob = Knob.QUOTA


class Weigh(msgspec.Struct, frozen=True, tag="weigh"):
    """A node of the quota tree has another weight."""

    node: TreeNode
    weight: int


class AddNodes(msgspec.Struct, frozen=True, tag="add_nodes"):
    """More nodes, each with the labels, taints and capacity of one that there is."""

    like: str
    count: int
    #: They have this much in any case, where none that there is has it.
    at_least: Resources = Resources()
    #: They carry the labels of this flavor, too, where no node that there is does.
    flavor: str | None = None


Step = (
    End
    | BePreemptible
    | RaisePriority
    | LowerMinimum
    | AnyNodes
    | Tolerate
    | Move
    | Resume
    | Untangle
    | Uncordon
    | Raise
    | Weigh
    | AddNodes
)

#: What stands in a field.
Value = str | int | bool | dict[str, str] | None


class Change(msgspec.Struct, frozen=True):
    """A field to change, in an object as its owner wrote it."""

    #: `Queue`, `ClusterQueue`, `PodGroup`, `Node`, `pool`, ...
    kind: str
    name: str
    #: Where, as `spec.resources.gpu.quota`; empty: the object as a whole, which is there before
    #: or after, and then a copy of the object that `after` names.
    field: str = ""
    #: As it is written there; `None`: nothing is.
    before: Value = None
    after: Value = None
    #: The word for the field in a sentence, and what is counted there.
    word: str = ""
    resource: str = ""


class Remedy(msgspec.Struct, frozen=True):
    """A change with which the workload starts, as planning has shown; without it, it does not.

    WAIT ends one workload where that suffices; otherwise, in the order of how long they have run,
    several of which none is superfluous. Of amounts that are raised, lowered or added one less is
    not enough.
    """

    kind: RemedyKind
    #: What to do, in one sentence.
    sentence: str
    #: The same in the objects that people wrote.
    changes: tuple[Change, ...] = ()
    #: The same as it was planned.
    steps: tuple[Step, ...] = ()
    #: Whether the search came to its end; otherwise less than this may do.
    exact: bool = True


class Remedies(msgspec.Struct, frozen=True):
    """What would help, the cheapest first."""

    found: tuple[Remedy, ...] = ()
    #: How many plans were made to find out.
    plans: int = 0
    #: Kinds whose search was given up for its length: there may be more.
    given_up: tuple[RemedyKind, ...] = ()
