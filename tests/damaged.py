"""Damaged workflows, for everything that must survive them.

The damage is done to the structure and the text of valid workflows; it is seeded, so that a failure
can be repeated by its number.
"""

from __future__ import annotations

import random
from datetime import date
from importlib.resources import files
from typing import Any

import yaml

from bough.formats.workflow.templates import is_template

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
    2**63, -(2**63), 1e308, float("nan"), float("inf"), "1e400", "1e9Gi", "-1Gi", "0x1f", "1_000",
    date(2026, 1, 31), b"\xff\0", "\ufeff", "\r\n", "\x1b[2J", "a=b", "LD_PRELOAD", "\U0001f333",
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
