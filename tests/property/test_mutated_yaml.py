"""Hundreds of damaged inputs: each gives a result or clear problems, never another exception.

The damage is done to the structure of valid documents (fields removed, renamed, moved, doubled,
replaced by other types) and to their text. It is seeded: a failure can be repeated by its number.
"""

from __future__ import annotations

import copy
import random
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import settings

from bough.cli.text.quota_tree import render_admit, render_tree
from bough.errors import Invalid
from bough.tools.admit import admit
from bough.tools.file_problems import write_amount
from bough.tools.quota import check, show
from tests.damaged import places

INPUTS = (4 if settings().max_examples <= 12 else 9) * settings().max_examples
BATCHES = 4

ODD_TEXTS = [
    "", " ", "null", "true", "-1", "1e3", "1e400", "0x10", "16Gi", "16gi", "500m", "1.5", "NaN",
    ".inf", "é", "\u202ename", "a\u0000b", "a\nb", "🌳" * 3, "x" * 300, "x" * 70_000, "../..", "%s",
    "{}", "[]", "&a", "*a", "!!python/none", "company", "language", "h100", "Cohort",
    "kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v9", "2026-01-01T00:00:00Z", "Any", "StrictFIFO",
]  # fmt: skip
ODD_VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 10**18, -(10**18), 10**400, 1.5, -0.5, 1e300, float("inf"), [],
    {}, [[]], [{}], [None], {"a": None}, {"name": "x"}, [1, "a", {}], {"": ""}, {"a": {"b": [{}]}},
]  # fmt: skip
ODD_KEYS = [
    "parentName", "parent", "cohortName", "cohort", "name", "status", "spec", "metadata", "kind",
    "nominalQuota", "borrowingLimit", "lendingLimit", "resourceGroups", "x", "", "é", "items",
    "resources", "flavors", "coveredResources", "count", "admission", "podSets", "weight", "<<",
]  # fmt: skip
ODD_BYTES = [
    b"", b" ", b"\n", b":", b"- ", b"[", b"}", b"'", b'"', b"&a ", b"*a", b"\t", b"\x00", b"\xff",
    b"---\n", b"!x ", b"|\n", b"#", b"\xc3\xa9", b"%", b"? ",
]  # fmt: skip


def valid_documents() -> list[Any]:
    folder = files("bough") / "examples" / "organisation"
    texts = [entry.read_text() for entry in folder.iterdir() if entry.name.endswith(".yaml")]
    return [document for text in sorted(texts) for document in yaml.safe_load_all(text)]


DOCUMENTS = valid_documents()


def other_value(source: random.Random, documents: list[Any]) -> Any:
    """A value of the wrong kind, or the right kind from the wrong place."""
    choice = source.random()
    if choice < 0.4:
        return source.choice(ODD_TEXTS)
    if choice < 0.75:
        return copy.deepcopy(source.choice(ODD_VALUES))
    container, key = source.choice(places(documents))
    return copy.deepcopy(container[key])


def damage(source: random.Random, documents: list[Any]) -> None:
    """Change one thing."""
    container, key = source.choice(places(documents))
    kind = source.choice(["replace", "delete", "insert", "rename", "double", "nest", "number"])
    if kind == "delete":
        del container[key]
    elif kind == "insert" and isinstance(container, dict):
        container[source.choice(ODD_KEYS)] = other_value(source, documents)
    elif kind == "rename" and isinstance(container, dict):
        container[source.choice(ODD_KEYS)] = container.pop(key)
    elif kind == "double" and isinstance(container, list):
        container.append(copy.deepcopy(container[key]))
    elif kind == "nest":
        for _ in range(source.choice([1, 2, 70])):
            container[key] = {"a": container[key]} if source.random() < 0.5 else [container[key]]
    elif kind == "number" and isinstance(container[key], int):
        container[key] *= source.choice([-1, 0, 10, 10**30])
    else:
        container[key] = other_value(source, documents)


def damage_text(source: random.Random, text: bytes) -> bytes:
    """Change some bytes."""
    data = bytearray(text)
    for _ in range(source.choice([1, 1, 2, 5])):
        start = source.randrange(len(data) + 1)
        stop = min(len(data), start + source.choice([0, 1, 1, 4, 40]))
        replacement = source.choice([*ODD_BYTES, bytes(data[start:stop])])
        data[start:stop] = replacement * source.choice([1, 1, 2])
    return bytes(data)


def make_input(number: int) -> bytes:
    source = random.Random(number)
    documents = copy.deepcopy(source.sample(DOCUMENTS, source.choice([1, 3, 8, len(DOCUMENTS)])))
    for _ in range(source.choice([1, 1, 1, 1, 2, 4, 10])):
        if places(documents):
            damage(source, documents)
    text = yaml.safe_dump_all(documents, allow_unicode=True, sort_keys=False).encode()
    return damage_text(source, text) if source.random() < 0.25 else text


def read_all(path: str) -> str:
    """Read, validate and ask; say how it went."""
    strict, lenient = check([path]), check([path], lenient=True)
    assert lenient.errors <= strict.errors
    for problem in strict.problems:
        assert problem.message
        assert problem.file == path or problem.subject is None
        assert problem.line is not None or problem.field is None
    if lenient.errors:
        with pytest.raises(Invalid) as caught:
            show([path], lenient=True)
        assert caught.value.details
        return "refused"
    tree = show([path], lenient=True)
    nodes = tree.nodes
    assert len(render_tree(tree, write_amount).splitlines()) >= len(nodes)
    for queue in [node for node in nodes if node.kind == "queue"][:2]:
        listed = [each for each in queue.resources if each.nominal is not None]
        if not listed:
            continue
        request = f"{listed[0].resource}=2"
        answer = admit([path], queue.name, [request], lenient=True)
        assert render_admit(answer, write_amount).startswith("yes: " if answer.admitted else "no: ")
    return "shown"


@pytest.mark.parametrize("batch", range(BATCHES))
def test_damaged_input_gives_a_result_or_clear_problems(batch: int, tmp_path: Path):
    outcomes: set[str] = set()
    for number in range(batch, INPUTS, BATCHES):
        path = tmp_path / f"{number}.yaml"
        path.write_bytes(make_input(number))
        outcomes.add(read_all(str(path)))
    # Of few inputs none may be good enough to be shown.
    assert {"refused"} <= outcomes <= {"refused", "shown"}


def test_of_damaged_input_some_is_shown(tmp_path: Path):
    path = tmp_path / "0.yaml"
    path.write_bytes(make_input(0))
    assert "shown" == read_all(str(path))
