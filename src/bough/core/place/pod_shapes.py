"""Pods that ask for the same, as one shape, with the memory of the nodes that cannot take it.

The memory is a cache: a node that is missing from it cannot take the shape, one that is in it may.
"""

from __future__ import annotations

from bough.core.place.columns import GPUS, Columns, Row
from bough.core.place.node_matching import Eligible, Matcher, NodeTerms, terms_of
from bough.model.cluster import Resources
from bough.model.gang import Pod

#: How many shapes are remembered at once; the oldest half is forgotten when there are more.
MAXIMUM_SHAPES = 4096

ShapeKey = tuple[Resources, NodeTerms]


class Shape:
    """What pods that are alike ask for."""

    __slots__ = (
        "eligible",
        "era",
        "gpus",
        "key",
        "large_enough",
        "later",
        "now",
        "possible",
        "request",
        "seen",
        "unknown",
        "wants",
    )

    def __init__(self, key: ShapeKey, columns: Columns, eligible: Eligible) -> None:
        self.key = key
        self.request: Row = columns.request(key[0])
        #: The columns of which it asks something, and how much.
        self.wants = tuple((at, amount) for at, amount in enumerate(self.request) if amount > 0)
        self.gpus = self.request[GPUS]
        self.eligible = eligible
        #: Resources that no node has: it fits nowhere.
        self.unknown = columns.unknown(key[0])
        #: Nodes that could take it if they were empty, as far as rules go.
        self.possible = 0 if self.unknown else eligible.allowed
        #: Those of them that are also large enough; `None`: not asked for yet.
        self.large_enough: int | None = None
        #: Nodes that may take it now, and nodes that may once what is ending has ended.
        self.now = self.later = self.possible
        #: Up to which event, of which era, the memory knows what came back.
        self.seen = 0
        self.era = -1

    def times(self, count: int) -> Row:
        """What several pods of this shape take."""
        return self.request if count == 1 else tuple(count * amount for amount in self.request)


class Shapes:
    """The shape of each pod; equal pods have the same one."""

    def __init__(self, columns: Columns, matcher: Matcher) -> None:
        self._columns = columns
        self._matcher = matcher
        self._shapes: dict[ShapeKey, Shape] = {}
        #: The last pod that was looked up; the next one is often like it.
        self._last: tuple[Pod, Shape] | None = None

    def __len__(self) -> int:
        return len(self._shapes)

    def of(self, pod: Pod) -> Shape:
        """The shape of a pod."""
        last = self._last
        if last is not None and is_alike(last[0], pod):
            return last[1]
        key = (pod.requests, terms_of(pod))
        shape = self._shapes.get(key)
        if shape is None:
            shape = Shape(key, self._columns, self._matcher.eligible(key[1]))
            self._shapes[key] = shape
        self._last = (pod, shape)
        return shape

    def cordoned(self) -> None:
        """Look again at which nodes may take what, after some were cordoned or opened again."""
        for shape in self._shapes.values():
            before = shape.possible
            shape.eligible = self._matcher.eligible(shape.key[1])
            shape.possible = 0 if shape.unknown else shape.eligible.allowed
            opened = shape.possible & ~before
            shape.now = (shape.now | opened) & shape.possible
            shape.later = (shape.later | opened) & shape.possible
            if opened:
                shape.large_enough = None
            elif shape.large_enough is not None:
                shape.large_enough &= shape.possible

    def forget_some(self) -> None:
        """Keep the memory small. Not to be called while a search holds shapes of its own."""
        if len(self._shapes) > MAXIMUM_SHAPES:
            self._last = None
            for old in list(self._shapes)[: MAXIMUM_SHAPES // 2]:
                del self._shapes[old]


def is_alike(one: Pod, other: Pod) -> bool:
    """Whether two pods have the same shape."""
    return (
        one.requests == other.requests
        and one.node_selector == other.node_selector
        and one.affinity == other.affinity
        and one.tolerations == other.tolerations
        and one.unsupported == other.unsupported
    )
