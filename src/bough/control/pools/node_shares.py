"""What each node of the quota tree uses and is entitled to, as the loop reports it."""

from __future__ import annotations

import msgspec

from bough.model.quota import TreeNode


class QueueStanding(msgspec.Struct, frozen=True):
    """What one node uses and is entitled to, for people."""

    node: TreeNode
    #: The share that it is compared by, such as `0.334`.
    share: str
    #: Its own GPU quota, and its fair share of all GPUs; `None`: the policy does not divide ahead.
    deserved: int | None = None
    fair: int | float | None = None


#: Without nodes for which the policy computes nothing.
Standings = tuple[QueueStanding, ...]
