"""Names of pools, subpools, nodes and queues: their form, never their meaning.

`QueueName` is the one home of `osmo-pool-{namespace}-{pool}--{leaf}`. Which pool is below which is
an edge that is stored, so nothing here decides by taking a name apart.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

#: Stands between a pool and its subpool, and so in no name of either.
DELIMITER = "--"
#: The hidden leaf of every pool, for what is submitted to the pool itself.
SHARED = "_shared"
#: The queue is written into a label, and labels are no longer.
MAXIMUM_QUEUE_NAME = 63

_NAME = re.compile(r"[a-zA-Z](?:[a-zA-Z0-9_.-]*[a-zA-Z0-9])?\Z")
_KUBERNETES_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?\Z")
_SHOWN = 60


class QueueName(msgspec.Struct, frozen=True):
    """The name of the node of the quota tree for a pool, for one of its leaves, or for all."""

    namespace: str
    #: `None`: the node above all pools.
    pool: str | None = None
    #: `None`: the pool itself, which takes no work; else `_shared` or the subpool's short name.
    leaf: str | None = None
    prefix: str = "osmo"

    def __str__(self) -> str:
        if self.pool is None:
            return f"{self.prefix}-default-{self.namespace}"
        name = f"{self.prefix}-pool-{self.namespace}-{self.pool}"
        return name if self.leaf is None else f"{name}{DELIMITER}{self.leaf}"

    @classmethod
    def parse(cls, text: str, namespace: str, prefix: str = "osmo") -> QueueName | None:
        """Read a name that was written by `str`, for display; `None` where it is none of ours.

        A pool whose own name has the delimiter (from before it was refused) reads as a subpool,
        which is why routing goes by the stored edge.
        """
        if text == f"{prefix}-default-{namespace}":
            return cls(namespace, prefix=prefix)
        start = f"{prefix}-pool-{namespace}-"
        if not text.startswith(start) or len(text) == len(start):
            return None
        pool, delimiter, leaf = text.removeprefix(start).rpartition(DELIMITER)
        if not delimiter:
            return cls(namespace, leaf, prefix=prefix)
        return cls(namespace, pool, leaf, prefix=prefix) if pool and leaf else None

    @property
    def exported(self) -> str:
        """The name of the object in Kubernetes: valid there, unique and stable.

        The hidden leaf is written `---shared`, which no name of a user can give; and names that are
        not valid there end with `---` and a digest, so that they meet no other.
        """
        text = str(self)
        if self.leaf == SHARED:
            text = text.removesuffix(SHARED) + "-shared"
        return exported_name(text, str(self))


def exported_name(text: str, identity: str | None = None) -> str:
    """A name as an object in Kubernetes can have it: the same, where it is valid there.

    identity:  what the digest is of; without one the name itself.
    """
    if len(text) <= MAXIMUM_QUEUE_NAME and _KUBERNETES_LABEL.match(text):
        return text
    digest = hashlib.sha256((identity or text).encode()).hexdigest()[:10]
    kept = re.sub(r"[^a-z0-9]+", "-", text.lower())[: MAXIMUM_QUEUE_NAME - len(digest) - 3]
    return f"{kept.strip('-')}---{digest}"


def canonical_name(pool: str, subpool: str) -> str:
    """The name under which work is submitted to a subpool."""
    return f"{pool}{DELIMITER}{subpool}"


def pool_name_fault(name: str) -> str | None:
    """What is wrong with the name of a pool; `None` if nothing is."""
    return _fault("Pool", name)


def subpool_name_fault(name: str) -> str | None:
    """What is wrong with the short name of a subpool; `None` if nothing is."""
    if name.startswith("_"):
        return f'Subpool name {_shown(name)} is not valid! Names that begin with "_" are reserved.'
    return _fault("Subpool", name)


def plain_name_fault(kind: str, name: str) -> str | None:
    """What is wrong with the name of something else (a cohort, a platform, a token)."""
    return None if len(name) <= 253 and _NAME.match(name) else _invalid(kind, name)


def queue_name_fault(kind: str, name: str, queue: QueueName) -> str | None:
    """Whether the queue of a pool or subpool fits into a label; `None` if it does."""
    length = len(str(queue))
    if length <= MAXIMUM_QUEUE_NAME:
        return None
    return (
        f"{kind} name {_shown(name)} is not valid! It is too long: its queue would have a name of "
        f"{length} characters, and at most {MAXIMUM_QUEUE_NAME} are possible."
    )


def _fault(kind: str, name: str) -> str | None:
    if DELIMITER in name:
        return (
            f'{kind} name {_shown(name)} is not valid! Name must not contain "{DELIMITER}", which '
            "separates a pool from its subpool."
        )
    return None if _NAME.match(name) else _invalid(kind, name)


def _invalid(kind: str, name: str) -> str:
    return (
        f"{kind} name {_shown(name)} is not valid! Name can only be alphanumeric and contain dash "
        "or underscore."
    )


def _shown(name: str) -> str:
    """Quote a name for a message, however long or odd it is."""
    text = name if len(name) <= _SHOWN else name[:_SHOWN] + "…"
    return '"' + "".join(each if each.isprintable() else "\ufffd" for each in text) + '"'


class NodeId(NamedTuple):
    """What a node is known by: two backends can have nodes of one name."""

    backend: str
    name: str

    def __str__(self) -> str:
        return f"{self.backend}/{self.name}"


class NodeNames:
    """Names of nodes in snapshots and sentences: as short as they can be and mean one node.

    A name that one backend alone has is used as it is; another one as BACKEND/NAME.
    """

    def __init__(self, nodes: Iterable[NodeId] = ()) -> None:
        self._backends: dict[str, tuple[str, ...]] = {}
        for node in nodes:
            self._backends[node.name] = (*self._backends.get(node.name, ()), node.backend)

    def of(self, node: NodeId) -> str:
        """The name of a node, also of one that its backend has no more."""
        found = self._backends.get(node.name)
        alone = found is None or found == (node.backend,)
        return node.name if alone else str(node)

    def every(self, name: str) -> tuple[str, ...]:
        """The names of all nodes that are called so by their backends."""
        found = self._backends.get(name, ())
        return tuple(self.of(NodeId(backend, name)) for backend in found) or (name,)
