"""A tree of pools that is written as objects of Kueue or KAI and read again is the same tree."""

from __future__ import annotations

import re
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from bough.core.quota.fair_tree import fair_tree
from bough.core.quota.references import validate
from bough.core.quota.tree import QuotaTree
from bough.formats.kai.objects import read_kai
from bough.formats.yaml.composer import compose
from bough.formats.yaml.documents import Document
from bough.model.names import exported_name
from bough.model.problem import Severity
from bough.model.quota import FlavorResource, NodeKind, Quota, TreeNode
from tests.exported_trees import as_kai, as_kueue, names_of, renamed, setups
from tests.kueue_text import read_clean

GPU = "nvidia.com/gpu"
VALID = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")


@given(setups(), st.data())
def test_nodes_of_kueue_have_the_balances_of_the_sites_tree(config, data):
    forest, tree, text = as_kueue(config)
    read = read_clean(text).organisation
    ours = QuotaTree.of(forest.cohorts, forest.queues)
    theirs = QuotaTree.of(read.cohorts, read.queues)
    names = names_of(config)
    whats = {
        FlavorResource(each.name, "gpu"): FlavorResource(_flavor(each.name, forest), GPU)
        for each in forest.flavors
    }

    assert [] == [e for e in validate(read) if e.severity is Severity.ERROR]
    assert {renamed(node, names) for node in ours} == set(theirs)
    for node in ours:
        other = renamed(node, names)
        above = ours.parent(node)
        assert (None if above is None else renamed(above, names)) == theirs.parent(other)
        assert ours.weight(node) == theirs.weight(other)
    # A debt cannot be said; it is named, and its tree has more than the site's.
    debts = [each for each in tree.warnings if "Kueue knows no debts" in each]
    owed = [w for w in whats if (q := ours.quota(_root(), w)) is not None and q.nominal < 0]
    assert len(owed) == len(debts)
    whats = {one: other for one, other in whats.items() if one not in owed}
    _use(ours, theirs, names, whats, data)
    assert _balances(ours, whats, names) == _balances(theirs, {e: e for e in whats.values()})


@given(setups(plain=True), st.data())
def test_queues_of_kai_have_the_balances_of_the_sites_tree(config, data):
    forest, trees, text = as_kai(config)
    capacity = {"gpu": sum(node.gpus for node in config.nodes)}
    read = read_kai(_documents(text))
    assert [] == read.problems
    exported = fair_tree(read.queues, capacity)
    ours = QuotaTree.of(forest.cohorts, forest.queues)
    theirs = QuotaTree.of(exported.cohorts, exported.queues)
    names, one = names_of(config), FlavorResource("default", "gpu")
    other = FlavorResource("any", "gpu")

    assert () == trees.warnings
    assert {renamed(node, names) for node in ours} == set(theirs) - {_cluster()}
    _use(ours, theirs, names, {one: other}, data)
    # What the whole cluster owes is owed above the root there.
    found = _balances(theirs, {other: other})
    debt = found.pop((_cluster().name, "any")).debt
    root = names["osmo-default-ns"], "any"
    found[root] = found[root]._replace(debt=debt)
    assert _balances(ours, {one: other}, names) == found


@given(setups())
def test_every_object_has_a_valid_name_of_its_own_and_says_the_original(config):
    for documents in (_documents(as_kueue(config)[2]), _documents(as_kai(config)[2])):
        seen: set[tuple[str, str]] = set()
        for each in documents:
            metadata = each.value["metadata"]
            kind, name = each.value["kind"], metadata["name"]
            assert VALID.match(name), name
            assert (kind, name) not in seen
            seen.add((kind, name))
    originals = {
        (each.value["metadata"].get("annotations") or each.value["metadata"]["labels"])[
            "bough.queue"
        ]
        for each in _documents(as_kueue(config)[2])
        if each.value["kind"] == "LocalQueue"
    }
    visible = {each.name for each in config.subpools if each.visible}
    assert {each.name for each in config.pools} | visible == originals


@given(setups())
def test_what_cannot_be_said_is_named(config):
    kueue, kai = (found.warnings for _, found, _ in (as_kueue(config), as_kai(config)))

    for each in config.cohorts:
        assert any(f"Cohort {each.name} is not written" in text for text in kai)
    for pool in config.pools:
        for amount, field in (
            (pool.cohort, "cohort"),
            (pool.borrowing_limit, "borrowing_limit"),
            (pool.lending_limit, "lending_limit"),
        ):
            said = [text for text in kai if text.startswith(f"Pool {pool.name}: {field} ")]
            assert (amount is not None) == bool(said)
        for found in (kueue, kai):
            free = [text for text in found if text.startswith(f"Pool {pool.name} has no quota of")]
            assert (pool.gpu.guarantee is None) == bool(free)


def _use(
    ours: QuotaTree,
    theirs: QuotaTree,
    names: dict[str, str],
    whats: dict[FlavorResource, FlavorResource],
    data: st.DataObject,
) -> None:
    """The same work runs in both."""
    for node in ours:
        if node.kind is not NodeKind.QUEUE:
            continue
        for one in ours.flavor_resources(node):
            if one in whats:
                amount = data.draw(st.integers(0, 9))
                ours.add_usage(node.name, {one: amount})
                theirs.add_usage(names[node.name], {whats[one]: amount})


class _Balance(NamedTuple):
    own: int
    borrowing_limit: int | None
    lending_limit: int | None
    subtree: int
    usage: int
    balance: int
    debt: int
    available: int
    potential: int


def _balances(
    tree: QuotaTree,
    whats: dict[FlavorResource, FlavorResource],
    names: dict[str, str] | None = None,
) -> dict[tuple[str, str], _Balance]:
    """By name and flavor: what a node has, uses, owes and can still take."""
    found: dict[tuple[str, str], _Balance] = {}
    for node in tree:
        for one in tree.flavor_resources(node):
            if one in whats:
                name = node.name if names is None else names[node.name]
                quota = tree.quota(node, one) or Quota()
                found[name, whats[one].flavor] = _Balance(
                    quota.nominal,
                    quota.borrowing_limit,
                    quota.lending_limit,
                    tree.subtree_quota(node, one),
                    tree.usage(node, one),
                    tree.balance(node, one),
                    tree.debt(node, one),
                    tree.available(node, one),
                    tree.potential(node, one),
                )
    return found


def _documents(text: str) -> list[Document]:
    return [Document(value, "x.yaml", line) for value, line in compose(text, "x.yaml")]


def _flavor(name: str, forest: object) -> str:
    alone = len(forest.flavors) == 1  # type: ignore[attr-defined]
    return "default" if alone else exported_name(f"nodes-of-{name}")


def _root() -> TreeNode:
    return TreeNode(NodeKind.COHORT, "osmo-default-ns")


def _cluster() -> TreeNode:
    return TreeNode(NodeKind.COHORT, "(cluster)")
