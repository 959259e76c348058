"""How sentences name nodes of the quota tree, write amounts, and suggest a name that exists.

A reason keeps the nodes it speaks of as data; the words come when it is said. So the same reason
names a queue to people who wrote queues, and a pool to people who know pools only.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from itertools import islice

from bough.model.quota import FlavorResource, NodeKind, TreeNode

_BINARY = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki")
#: Of how many names in one answer it is said what was meant.
_MOST_SUGGESTED = 20
_IN_BYTES = ("memory", "storage", "ephemeral-storage")


class Words:
    """The words of the objects themselves: a node by its kind and name."""

    def node(self, node: TreeNode | None) -> str:
        """A node of the tree, as it stands in a sentence."""
        return str(node)

    def queue(self, name: str) -> str:
        """The queue of this name, as it stands in a sentence."""
        return self.node(TreeNode(NodeKind.QUEUE, name))

    def amount(self, what: FlavorResource | None, written: str) -> str:
        """An amount that is written already, with what it is of."""
        return f"{written} {what}"

    def identity(self, node: TreeNode) -> tuple[str, str]:
        """The kind and the name of a node, for programs."""
        return node.kind.value, node.name


#: What is said where no other words are given.
OBJECT_WORDS = Words()


def counted(number: int, thing: str) -> str:
    """A number of things, as in `1 GPU` and `2 GPUs`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def write_bytes(amount: int) -> str:
    """Bytes rounded for people: `99.5Mi`."""
    for power, suffix in zip(range(6, 0, -1), _BINARY, strict=True):
        if amount >= 1024**power:
            return f"{amount / 1024**power:.1f}".removesuffix(".0") + suffix
    return f"{amount} bytes"


def write_amount(resource: str, amount: int) -> str:
    """An amount as people write it: `1500m` of CPU (counted in thousandths), `16Gi` of memory."""
    if resource == "cpu":
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if amount and (resource in _IN_BYTES or resource.startswith("hugepages-")):
        for power, suffix in zip(range(6, 0, -1), _BINARY, strict=True):
            if amount % 1024**power == 0:
                return f"{amount // 1024**power}{suffix}"
    return str(amount)


def suggest_all(names: Iterable[str], known: Collection[str]) -> dict[str, str]:
    """For the first few of some unknown names, say which known name was probably meant."""
    first = islice(dict.fromkeys(names), _MOST_SUGGESTED)
    return {name: suggest(name, known) for name in first}


def suggest(name: object, known: Iterable[str]) -> str:
    """Say which known name was probably meant, or nothing."""
    if not isinstance(name, str) or len(name) > 100:
        return ""
    by_lower = {candidate.lower(): candidate for candidate in sorted(known)}
    close = difflib.get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.7)
    return f"; did you mean {by_lower[close[0]]}?" if close else ""
