"""Damaged workflows are accepted, or refused with their place; nothing else happens."""

from __future__ import annotations

import re

import pytest
from hypothesis import settings

from tests.api.house import House
from tests.damaged import make_text

INPUTS = min(600, 20 * settings().max_examples)
BATCHES = 6
#: How the message begins that says what is wrong, and where.
PLACED = re.compile(
    r"The workflow is not valid: (line \d+(, column \d+)?: |more than )"
    r"|The template|The workflow has |A workflow is one YAML|Task \S+: exitActions|Task \S+ uses "
    r"|Platform |Task \S+ does not have a platform|Group \S+ names |Pool team "
)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_damaged_workflow_is_accepted_or_refused_with_its_place(team: House, batch: int):
    outcomes: set[int] = set()
    for number in range(batch, INPUTS, BATCHES):
        sent = {"file": make_text(number)}
        response = team.ask("POST", "/api/pool/team/workflow?priority=LOW", json=sent)
        outcomes.add(response.status_code)
        if response.status_code != 200:
            body = response.json()
            assert (400, number) == (response.status_code, number), body
            assert PLACED.match(body["message"]), (number, body)
    assert {200, 400} == outcomes
    team.settle()
