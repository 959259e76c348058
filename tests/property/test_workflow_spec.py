"""Damaged workflows: each gives a spec or a clear error, never another exception."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bough.control.gangs_of_groups import needed_gpus
from bough.control.workflows.specs import read_spec
from bough.core.gang.demand import cheapest, first_choice, needed
from bough.core.gang.tree import GangTree
from bough.errors import Invalid
from bough.formats.workflow.templates import read_template
from bough.model.gang import Gang, Pod
from bough.model.safe_regex import regex_fault
from bough.model.workflow import GroupSpec, WorkflowSpec
from tests.damaged import WHOLE, make_text

INPUTS = 25 * settings().max_examples
BATCHES = 10


def read(text: str) -> WorkflowSpec | Invalid:
    try:
        return read_spec(text)
    except Invalid as error:
        return error


def check(group: GroupSpec) -> None:
    """What holds for every group that is accepted."""
    assert 1 == sum(task.lead for task in group.tasks)
    pods = tuple(Pod(task.name, task.subgroup, task.requests) for task in group.tasks)
    tree = GangTree.of(Gang(group.name, "", pods, group.subgroups, group.minimum))
    assert () == tree.strays
    demand = needed(tree, tree.held)
    assert demand is not None
    lead = next(task.name for task in group.tasks if task.lead)
    assert lead in {pod.name for pod in first_choice(cheapest(demand))}
    assert 0 <= needed_gpus(group) <= group.gpus


@pytest.mark.parametrize("batch", range(BATCHES))
def test_damaged_workflows_give_a_spec_or_a_clear_error(batch: int):
    outcomes: set[bool] = set()
    for number in range(batch, INPUTS, BATCHES):
        found = read(make_text(number))
        outcomes.add(isinstance(found, Invalid))
        if isinstance(found, Invalid):
            assert 0 < len(found.message) < 2_000
        else:
            for group in found.groups:
                check(group)
    assert {True, False} == outcomes


def test_what_is_not_damaged_is_read_whole():
    spec = read_spec(WHOLE)

    assert ["g", "h", "k", "m"] == [group.name for group in spec.groups]
    assert 18 == sum(len(group.tasks) for group in spec.groups)
    for group in spec.groups:
        check(group)


TEXTS = st.lists(
    st.sampled_from(
        ["{{", "}}", "{%", "%}", "{#", "#}", "raw", "endraw", "output", "host:a", " ", "\n", "a: b",
         "default-values:", "{", "}", "${#x}", "\ue000", "1", "-", "'", "{{output}}", "{{ x }}"]
    )
    | st.text(max_size=3),
    max_size=30,
).map("".join)  # fmt: skip


@given(TEXTS)
def test_taking_a_template_apart_loses_nothing(text: str):
    try:
        template = read_template(text, {})
    except Invalid:
        return
    restored = template.restore(template.text, 10_000)
    removed = len(text) - len(restored)
    places = [start for start in range(len(restored) + 1) if text[start:][:14] == "default-values"]

    assert restored == text or any(
        restored == text[:start] + text[start + removed :] for start in places
    )


# What a later Python may read otherwise is a pattern now.
@pytest.mark.filterwarnings("ignore:Possible nested set:FutureWarning")
@given(st.text(alphabet="ab()|*+?{}[]\\,1^.", max_size=15))
@example("[[]")
def test_a_pattern_that_is_accepted_is_one(pattern: str):
    if regex_fault(pattern) is None:
        re.compile(pattern)
