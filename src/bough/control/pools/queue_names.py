"""Queues of the quota tree by the names of their pools and subpools.

The tree has a queue for each pool and leaves below it; explanations are for people who know pools
only.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from bough.control.site import Site
from bough.model.names import SHARED, QueueName, canonical_name
from bough.model.quota import TreeNode

Answer = TypeVar("Answer", bound=msgspec.Struct | None)

#: How the node above all pools is called.
EVERYTHING = "the whole cluster"
_KINDS = ("queue", "cohort")
#: Amounts of GPUs, with the flavor that the tree counts them in.
_GPUS = re.compile(r"\b(?P<amount>[0-9]+) [\w.-]+/gpu\b")


class PoolNames:
    """Puts the names of pools in the place of those of queues."""

    def __init__(self, site: Site) -> None:
        self._namespace = site.namespace
        self._prefix = site.prefix
        root = re.escape(site.root_queue())
        start = re.escape(site.pool_queue(""))
        kind = "(?P<kind>(?:queue|cohort) )?"
        name = rf"(?P<name>{root}|{start}[\w.-]*\w)(?![\w-])"
        self._pattern = re.compile(rf"(?<![\w.-]){kind}{name}")

    def of_node(self, node: TreeNode) -> str:
        """What people call a node of the tree."""
        shown = self._shown(node.name)
        if shown is None:
            return str(node)
        return shown if shown == EVERYTHING else f"pool {shown}"

    def in_text(self, text: str) -> str:
        """A sentence with pools instead of queues, and GPUs instead of a flavor of them."""
        return _GPUS.sub(_count_gpus, self._pattern.sub(self._replace, text))

    def in_data(self, data: Any) -> Any:
        """Plain data with pools instead of queues, wherever they stand."""
        if isinstance(data, str):
            return self.in_text(data)
        if isinstance(data, dict):
            if data.keys() == {"kind", "name"} and data["kind"] in _KINDS:
                shown = self._shown(data["name"])
                return data if shown is None else {"kind": "pool", "name": shown}
            return {key: self.in_data(value) for key, value in data.items()}
        if isinstance(data, (list, tuple)):
            return [self.in_data(each) for each in data]
        return data

    def in_answer(self, answer: Answer) -> Answer:
        """The same of an answer."""
        if answer is None:
            return answer
        return msgspec.convert(self.in_data(msgspec.to_builtins(answer)), type(answer))

    def _replace(self, found: re.Match[str]) -> str:
        shown = self._shown(found["name"])
        if shown is None:
            return found[0]
        return f"pool {shown}" if found["kind"] and shown != EVERYTHING else shown

    def _shown(self, name: str) -> str | None:
        """What people call it; `None`: it is no queue of a pool."""
        queue = QueueName.parse(name, self._namespace, self._prefix)
        if queue is None:
            return None
        if queue.pool is None:
            return EVERYTHING
        if queue.leaf in (None, SHARED):
            return queue.pool
        return canonical_name(queue.pool, queue.leaf)


def _count_gpus(found: re.Match[str]) -> str:
    return "1 GPU" if found["amount"] == "1" else f"{found['amount']} GPUs"
