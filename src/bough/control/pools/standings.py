"""What the nodes of the quota tree take and could have, as the loop tells it."""

from __future__ import annotations

import msgspec

from bough.model.quota import TreeNode


class QueueStanding(msgspec.Struct, frozen=True):
    """What one node takes, and could have, for people."""

    node: TreeNode
    #: What it is compared by, as in `0.334`.
    share: str
    #: Its own quota of GPUs, and what it could have of all; `None`: no policy divides beforehand.
    deserved: int | None = None
    fair: int | float | None = None


#: Nothing of nodes about which the policy works nothing out.
Standings = tuple[QueueStanding, ...]
