"""What others hold of the nodes: for each node a gang that runs there, in a queue of its own.

So the core counts it as used, a plan never ends it, and where it changes nothing else is made
anew. No version is raised: a plan that was made a moment before is as good as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bough.model.cluster import Resources
from bough.model.gang import Gang, Pod, PodState
from bough.model.names import NodeId, NodeNames

#: By backend and node.
Others = Callable[[], Mapping[str, Mapping[str, Resources]]]
#: A queue that no pool has: what is in it counts against none.
QUEUE = "others"


class OtherPods:
    """Remembers the gangs of the last look, so that those that did not change stay the same."""

    def __init__(self, others: Others) -> None:
        self._others = others
        self._seen: dict[str, Mapping[str, Resources]] = {}
        self._names: NodeNames | None = None
        self._gangs: dict[str, Gang] = {}
        #: As a snapshot has them; empty where others hold nothing.
        self.gangs: dict[str, tuple[Gang, ...]] = {}

    def look(self, names: NodeNames) -> bool:
        """See what others hold now; whether that has changed."""
        found = dict(self._others())
        same = found.keys() == self._seen.keys() and names is self._names
        if same and all(found[name] is self._seen[name] for name in found):
            return False
        self._seen, self._names = found, names
        gangs = {
            gang.name: gang
            for backend in sorted(found)
            for node, held in sorted(found[backend].items())
            for gang in (_gang(names.of(NodeId(backend, node)), held),)
        }
        before, self._gangs = (
            self._gangs,
            {
                name: self._gangs[name] if self._gangs.get(name) == gang else gang
                for name, gang in gangs.items()
            },
        )
        self.gangs = {QUEUE: tuple(self._gangs.values())} if self._gangs else {}
        return before != self._gangs


def _gang(node: str, held: Resources) -> Gang:
    pod = Pod("held", requests=held, state=PodState.RUNNING, node=node)
    return Gang(f"{QUEUE}/{node}", QUEUE, (pod,), started_ms=0)
