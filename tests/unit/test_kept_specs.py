"""Specs that are kept as they were read: small ones alone, and not for ever."""

from __future__ import annotations

from bough.control.workflows.specs import read_spec


def workflow(name: str, *, replicas: int = 1, variables: int = 1) -> str:
    environment = ", ".join(f"V{number}: x" for number in range(variables))
    task = f"{{name: a, command: [run], replicas: {replicas}, environment: {{{environment}}}}}"
    return f"workflow: {{name: {name}, tasks: [{task}]}}"


def is_kept(text: str) -> bool:
    """Whether reading it twice makes it once."""
    return read_spec(text).groups is read_spec(text).groups


def test_a_small_workflow_is_read_once():
    assert is_kept(workflow("small"))


def test_a_short_text_that_makes_many_tasks_is_not_kept():
    assert not is_kept(workflow("many", replicas=1_000))


def test_a_long_text_is_not_kept():
    assert not is_kept(workflow("long", variables=1_000))


def test_what_was_not_asked_for_in_a_while_is_forgotten():
    first = read_spec(workflow("first")).groups
    for number in range(200):
        read_spec(workflow(f"other-{number}"))
    assert first is not read_spec(workflow("first")).groups


def test_labels_of_one_submission_are_not_those_of_the_next():
    text = workflow("labelled")
    assert {"a": "1"} == read_spec(text, {"a": "1"}).labels
    assert {} == read_spec(text).labels
