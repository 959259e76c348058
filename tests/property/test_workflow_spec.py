"""Damaged workflows: each gives a spec or a clear error, never another exception.

The damage is done to the structure and the text of valid workflows; it is seeded, so that a failure
can be repeated by its number.
"""

from __future__ import annotations

import random
import re
from importlib.resources import files
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bough.control.gangs import needed_gpus
from bough.control.specs import read_spec
from bough.core.gang.demand import cheapest, first_choice, needed
from bough.core.gang.tree import GangTree
from bough.errors import Invalid
from bough.formats.patterns import pattern_fault
from bough.formats.templates import is_template, read_template
from bough.model.gang import Gang, Pod
from bough.model.workflow import GroupSpec, WorkflowSpec

INPUTS = 1_500
BATCHES = 10

WHOLE = """
version: 2
workflow:
  name: whole
  labels: {team: vision, example.com/x: "1"}
  pool: p
  timeout: {exec_timeout: 8h, queue_timeout: PT6H}
  resources:
    default: {cpu: 1, gpu: 1, memory: 1Gi, storage: 1Gi, platform: p, nodesExcluded: [n],
      topology: [{key: zone, group: a}, {key: rack, group: b, requirementType: preferred}]}
    other: {gpu: 2, topology: [{key: zone, group: a}, {key: rack, group: c}]}
    plain: {gpu: 1}
  groups:
  - name: g
    barrier: true
    ignoreNonleadStatus: false
    tasks:
    - {name: a, image: i, command: [sh], args: [-c, 4], lead: true, environment: {A: b, C: 4},
       files: [{path: /x/y, contents: z}, {path: w, contents: aGk=, base64: true}],
       credentials: {c: /m, d: {E: k}}, inputs: [{url: s3://b/c, regex: .*}],
       outputs: [{url: s3://o}], checkpoint: [{path: /m, url: s3://c, frequency: 1m}],
       exitActions: {COMPLETE: "0,1-10", RESCHEDULE: 3}}
    - {name: b, resource: other, replicas: 2, privileged: true, volumeMounts: [/x]}
  - name: h
    minSubGroup: 2
    subGroups:
    - {name: main, minMember: 2}
    - {name: all, minSubGroup: 1}
    - {name: r1, parent: all, topologyConstraint: {requiredTopologyLevel: rack}}
    - {name: r2, parent: all}
    tasks:
    - {name: c, lead: true, subGroup: main, resource: plain, inputs: [{task: a}]}
    - {name: d, subGroup: main, resource: plain, replicas: 3}
    - {name: e, subGroup: r1, resource: plain, replicas: 2}
    - {name: f, subGroup: r2, resource: plain}
  - {name: k, tasks: [{name: l, resource: plain, replicas: {min: 2, max: 4}}]}
  - name: m
    tasks:
    - {name: n, resource: plain, lead: true}
    - {name: o, resource: plain, replicas: {min: 1, max: 3}}
"""

ODD: list[Any] = [
    None, True, 0, -1, 1, 7, 10**18, 10**40, 1.5, "", " ", "a", "A", "main", "r1", "all", "rack",
    "../x", "/etc/passwd", "a\0b", "a\nb", "\u202e", "x" * 100, "8h", "1e9", "-1s", "P1D", "(a+)+",
    "s3://x", "s3://../x", "{{output}}", "{{ x }}", "*", "0-9,4", [], {}, [[]], [{}], {"a": None},
    {"name": "z"}, {"min": 1, "max": 2}, {"min": 0, "max": 0}, [{"name": "main", "parent": "main"}],
]  # fmt: skip
KEYS = [
    "name", "parent", "minMember", "minSubGroup", "subGroups", "subGroup", "replicas", "lead",
    "tasks", "groups", "topology", "topologyConstraint", "topologyConstraints", "global", "inputs",
    "task", "url", "regex", "localpath", "contents", "exitActions", "resource", "x", "", "<<", "é",
]  # fmt: skip


def documents() -> list[Any]:
    folder = files("bough") / "examples" / "workflows"
    texts = sorted(each.read_text() for each in folder.iterdir())
    return [yaml.safe_load(text) for text in (WHOLE, WHOLE, *texts) if not is_template(text)]


DOCUMENTS = documents()


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container with each of its keys, or positions."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        current = waiting.pop()
        for key in list(current) if isinstance(current, dict) else range(len(current)):
            found.append((current, key))
            if isinstance(current[key], (dict, list)):
                waiting.append(current[key])
    return found


def damage(source: random.Random, document: Any) -> None:
    """Change one thing, if there is any."""
    if not places(document):
        return
    container, key = source.choice(places(document))
    kind = source.choice(["replace", "replace", "move", "delete", "insert", "rename", "double"])
    if kind == "delete":
        del container[key]
    elif kind == "insert" and isinstance(container, dict):
        container[source.choice(KEYS)] = copied(source.choice(ODD))
    elif kind == "rename" and isinstance(container, dict):
        container[source.choice(KEYS)] = container.pop(key)
    elif kind == "double" and isinstance(container, list):
        container.append(copied(container[key]))
    elif kind == "move":
        other, place = source.choice(places(document))
        container[key] = copied(other[place])
    else:
        container[key] = copied(source.choice(ODD))


def copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: copied(each) for key, each in value.items()}
    return [copied(each) for each in value] if isinstance(value, list) else value


def make_text(number: int) -> str:
    source = random.Random(number)
    document = copied(source.choice(DOCUMENTS))
    for _ in range(source.choice([1, 1, 1, 2, 3])):
        damage(source, document)
    text = yaml.safe_dump(document, allow_unicode=True, sort_keys=False, width=1_000)
    if source.random() < 0.2:
        place = source.randrange(len(text))
        cut = place + source.choice([0, 1, 5, 40])
        text = (
            text[:place]
            + source.choice(["", ":", "- ", "[", "}", "'", "&a ", "*a", "\t"])
            + text[cut:]
        )
    return text


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


@given(st.text(alphabet="ab()|*+?{}[]\\,1^.", max_size=15))
def test_a_pattern_that_is_accepted_is_one(pattern: str):
    if pattern_fault(pattern) is None:
        re.compile(pattern)
