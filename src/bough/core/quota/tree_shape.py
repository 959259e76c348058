"""The edges of the quota tree: parents, children, implicit cohorts, cycles.

A cohort that is only named by others is implicit: it has no parent, and it vanishes with its last
child.
"""

from __future__ import annotations

from collections.abc import Iterator

from bough.model.quota import NodeKind, TreeNode


class Edges:
    """The edges of a forest that may, by mistake, be tied into cycles."""

    __slots__ = ("_children", "_declared", "_parents")

    def __init__(self) -> None:
        self._parents: dict[TreeNode, TreeNode | None] = {}
        self._children: dict[TreeNode, dict[TreeNode, None]] = {}
        #: Cohorts that were declared; the others are implicit.
        self._declared: set[TreeNode] = set()

    def copy(self) -> Edges:
        """The same edges, to be changed on their own."""
        twin = Edges()
        twin._parents = dict(self._parents)
        twin._children = {node: dict(below) for node, below in self._children.items()}
        twin._declared = set(self._declared)
        return twin

    def __contains__(self, node: TreeNode) -> bool:
        return node in self._parents

    def __iter__(self) -> Iterator[TreeNode]:
        return iter(self._parents)

    def is_implicit(self, node: TreeNode) -> bool:
        """Whether the node exists only because others name it as their parent."""
        return node.kind is NodeKind.COHORT and node not in self._declared

    def parent(self, node: TreeNode) -> TreeNode | None:
        """The node above; `None` for a root."""
        return self._parents[node]

    def children(self, node: TreeNode) -> list[TreeNode]:
        """The nodes directly below, cohorts before queues, by name."""
        return sorted(self._children.get(node, ()))

    def roots(self) -> list[TreeNode]:
        """The nodes without a parent, cohorts before queues, by name."""
        return sorted(node for node, parent in self._parents.items() if parent is None)

    def subtree(self, node: TreeNode) -> Iterator[TreeNode]:
        """The node and everything below it, each once, even where a cycle leads back."""
        seen = {node}
        waiting = [node]
        while waiting:
            current = waiting.pop()
            yield current
            for child in self._children.get(current, ()):
                if child not in seen:
                    seen.add(child)
                    waiting.append(child)

    def path(self, node: TreeNode) -> list[TreeNode]:
        """The node and its ancestors up to the root; on a cycle, up to where it closes."""
        found: dict[TreeNode, None] = {}
        current: TreeNode | None = node
        while current is not None and current not in found:
            found[current] = None
            current = self._parents[current]
        return list(found)

    def cycle(self, node: TreeNode) -> tuple[str, ...]:
        """The cohorts of the cycle that the node's ancestors run into, each the child of the next.

        Empty where there is none. It starts at its smallest name, whichever node asked.
        """
        path = self.path(node)
        closing = self._parents[path[-1]]
        if closing is None:
            return ()
        names = [member.name for member in path[path.index(closing) :]]
        first = names.index(min(names))
        return tuple(names[first:] + names[:first])

    def put(self, node: TreeNode, parent: TreeNode | None) -> None:
        """Declare a node, new or known, with its parent, which need not exist yet."""
        if node.kind is NodeKind.COHORT:
            self._declared.add(node)
        self._parents.setdefault(node, None)
        self._move(node, parent)

    def delete(self, node: TreeNode) -> None:
        """Take a declaration back. A cohort that is still named stays, implicit, without parent."""
        self._declared.discard(node)
        self._move(node, None)
        if node.kind is NodeKind.QUEUE:
            del self._parents[node]
        else:
            self._collect(node)

    def _move(self, node: TreeNode, parent: TreeNode | None) -> None:
        before = self._parents[node]
        if before == parent:
            return
        if parent is not None:
            self._parents.setdefault(parent, None)
            self._children.setdefault(parent, {})[node] = None
        self._parents[node] = parent
        if before is not None:
            del self._children[before][node]
            self._collect(before)

    def _collect(self, cohort: TreeNode) -> None:
        """Forget an implicit cohort that is not named any more."""
        if self._children.get(cohort):
            return
        self._children.pop(cohort, None)
        if cohort not in self._declared:
            self._parents.pop(cohort, None)
