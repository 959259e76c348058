"""What to start next: the part that a gang needs, then one optional unit after another.

A Demand leaves open which of several candidates are taken, and names them in order. Placement takes
the first that can be had, and so many as `count` says: a replica or a pod that does not fit yields
to the next. Candidates that lack pods are left out here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from bough.core.gang.sufficiency import stand
from bough.core.gang.tree import GangNode, GangTree, Held, counts_of, pods_of
from bough.model.gang import Pod

if TYPE_CHECKING:
    from collections.abc import Container, Iterator


class Demand(msgspec.Struct, frozen=True, gc=False):
    """Take `count` of the candidates, each of them whole; all or nothing."""

    node: GangNode
    count: int
    #: Leaf: candidates that wait, in pod order.
    pods: tuple[Pod, ...]
    #: Inner node: candidates that are not satisfied yet, in order; each can be with its own pods.
    children: tuple[Demand, ...]
    #: The pods that the cheapest choice takes.
    smallest: int


class Growth(msgspec.Struct, frozen=True, gc=False):
    """One optional unit: the core of an optional replica, or one more pod of a satisfied leaf."""

    #: What grows.
    node: GangNode
    #: A demand of the gang itself with one candidate at each step down to `node`, so that
    #: placing it passes every constraint above.
    demand: Demand


def needed(tree: GangTree, held: Held) -> Demand | None:
    """What is missing until the gang may run.

    `None` where nothing is missing, and where it cannot be had from the pods that there are (then
    `sufficiency.shortages` says why).
    """
    root = tree.root
    if root.is_leaf:
        has = held[0].bit_count()
        waiting = tree.pending[0] & ~held[0]
        if has >= root.minimum or has + waiting.bit_count() < root.minimum:
            return None
        missing = root.minimum - has
        return Demand(root, missing, pods_of(root, waiting), (), missing)
    outlook = _Outlook(tree, held)
    if outlook.now.satisfied(tree.root) or not outlook.possible.satisfied(tree.root):
        return None
    return outlook.core(tree.root)


def growth(tree: GangTree, held: Held, closed: Container[int] = ()) -> Iterator[Growth]:
    """The optional units of a gang that has what it needs, in order; the first that fits is next.

    `closed` holds the positions of nodes that are known not to fit: they are not offered again.
    After a unit is placed the order may be another one: ask again.
    """
    outlook = _Outlook(tree, held)
    if outlook.now.satisfied(tree.root):
        yield from outlook.grow(tree.root, closed)


def first_choice(demand: Demand) -> Iterator[Pod]:
    """The pods that are started when every candidate fits."""
    if demand.node.is_leaf:
        yield from demand.pods[: demand.count]
    for child in demand.children[: demand.count]:
        yield from first_choice(child)


def choice_among(demand: Demand, names: Container[str]) -> list[Pod] | None:
    """The first candidates that have these names alone; `None` where there are not enough."""
    if demand.node.is_leaf:
        found = [pod for pod in demand.pods if pod.name in names][: demand.count]
        return found if len(found) == demand.count else None
    able = (choice_among(child, names) for child in demand.children)
    parts = [each for each in able if each is not None][: demand.count]
    return [pod for each in parts for pod in each] if len(parts) == demand.count else None


def cheapest(demand: Demand) -> Demand:
    """The same demand with only those candidates left that take the fewest pods."""
    if not demand.children:
        return demand
    order = sorted(demand.children, key=lambda child: child.smallest)
    kept = {child.node.position for child in order[: demand.count]}
    children = tuple(cheapest(each) for each in demand.children if each.node.position in kept)
    return msgspec.structs.replace(demand, children=children)


class _Outlook:
    """What a gang holds now, and what it could hold with all pods that wait."""

    def __init__(self, tree: GangTree, held: Held) -> None:
        self.waiting = tree.waiting(held)
        self.now = stand(tree, counts_of(held))
        reachable = tuple(a | b for a, b in zip(held, self.waiting, strict=True))
        self.possible = stand(tree, counts_of(reachable))

    def core(self, node: GangNode) -> Demand:
        """What a node needs that is not satisfied, but can be."""
        if node.is_leaf:
            return self._pods(node, node.minimum - self.now.reached[node.position])
        candidates = tuple(
            self.core(child)
            for child in self.now.ordered(node)
            if self.possible.satisfied(child) and not self.now.satisfied(child)
        )
        count = node.minimum - self.now.reached[node.position]
        cheapest = sorted(candidate.smallest for candidate in candidates)[:count]
        return Demand(node=node, count=count, pods=(), children=candidates, smallest=sum(cheapest))

    def grow(self, node: GangNode, closed: Container[int]) -> Iterator[Growth]:
        """The units below a satisfied node, seen from that node."""
        if node.position in closed:
            return
        if node.is_leaf:
            if self.waiting[node.first_leaf]:
                yield Growth(node=node, demand=self._pods(node, 1))
            return
        for child in self.now.ordered(node):
            for unit in self._units(child, closed):
                above = Demand(
                    node=node,
                    count=1,
                    pods=(),
                    children=(unit.demand,),
                    smallest=unit.demand.smallest,
                )
                yield Growth(node=unit.node, demand=above)

    def _units(self, child: GangNode, closed: Container[int]) -> Iterator[Growth]:
        if self.now.satisfied(child):
            yield from self.grow(child, closed)
        elif self.possible.satisfied(child) and child.position not in closed:
            yield Growth(node=child, demand=self.core(child))

    def _pods(self, leaf: GangNode, count: int) -> Demand:
        pods = pods_of(leaf, self.waiting[leaf.first_leaf])
        return Demand(node=leaf, count=count, pods=pods, children=(), smallest=count)
