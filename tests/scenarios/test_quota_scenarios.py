"""Every scenarios/quota-*.yaml is lived through as it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from bough.core.quota.change_effects import effects
from bough.core.quota.tree import DeleteCohort, PutCohort, QuotaTree
from bough.formats.kueue.organisation import read_organisation
from bough.formats.yaml.fields import Fields
from bough.model.quota import Cohort, FlavorResource, NodeKind, TreeNode
from tests.scenario_file import Scenario, read_scenario

FILES = sorted((Path(__file__).parents[2] / "scenarios").glob("quota-*.yaml"))
FLAVOR = "h100"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_quota_scenario(path: Path) -> None:
    scenario = read_scenario(str(path))
    organisation, problems, _ = read_organisation(scenario.objects)
    assert [] == problems
    tree = QuotaTree.of(organisation.cohorts, organisation.queues)

    for step in scenario.steps:
        take(tree, step)

    assert [] == scenario.finish()


def test_the_stories_of_the_design_are_all_there() -> None:
    designs = {read(path).design for path in FILES}

    assert {
        "hierarchical cohorts, story 1, first form",
        "hierarchical cohorts, story 1, second form",
        "hierarchical cohorts, story 2",
    } <= designs


def read(path: Path) -> Scenario:
    return read_scenario(str(path))


def take(tree: QuotaTree, step: Fields) -> None:
    """One step: what happens, then what must be so."""
    if "request" in step:
        ask(tree, step)
    if "release" in step:
        tree.remove_usage(step.text("queue"), amounts(step, "release"))
    if "put" in step:
        declared = step.child("put")
        tree.apply(PutCohort(Cohort(declared.text("cohort"), declared.optional_text("parent"))))
    if "delete" in step:
        tree.apply(DeleteCohort(step.child("delete").text("cohort")))
    expect(tree, step)


def ask(tree: QuotaTree, step: Fields) -> None:
    queue, request = step.text("queue"), amounts(step, "request")

    refusal = tree.refusal(queue, request)

    assert step.boolean("admitted", default=True) == (refusal is None), refusal
    if refusal is None:
        tree.add_usage(queue, request)
    elif "cycle" in step:
        assert step.texts("cycle") == refusal.cycle
    else:
        assert refusal.node is not None
        assert step.text("refused_by") == refusal.node.name
        assert step.integer("deficit") == refusal.deficit


def expect(tree: QuotaTree, step: Fields) -> None:
    what = FlavorResource(FLAVOR, "gpu")
    if "available" in step:
        wanted = step.child("available")
        for name in wanted.names():
            available = tree.available(TreeNode(NodeKind.QUEUE, name), what)
            assert wanted.integer(name) == available, name
    if "tangled" in step:
        tangled = sorted(node.name for node in tree if tree.cycle(node))
        assert sorted(step.texts("tangled")) == tangled
        assert tangled == sorted(n.name for n in tree if not tree.conditions(n)[0].status)
    if "effects_of" in step:
        change = DeleteCohort(step.child("effects_of").text("delete_cohort"))
        debts = {debt.node.name: debt.after for debt in effects(tree, change).debts}
        assert numbers(step.child("debts")) == debts
    elif "debts" in step:
        debts = {node.name: tree.debt(node, what) for node in tree if tree.debt(node, what)}
        assert numbers(step.child("debts")) == debts


def amounts(step: Fields, name: str) -> dict[FlavorResource, int]:
    return {FlavorResource(FLAVOR, key): n for key, n in step.quantities(name).items()}


def numbers(fields: Fields) -> dict[str, int]:
    return {name: fields.integer(name) for name in fields.names()}
