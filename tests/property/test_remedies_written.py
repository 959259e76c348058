"""Remedies hold in the objects that people wrote: change those as it says, and the workload starts.

Worlds are text; a remedy is taken from the answer of `bough why` alone, written into the objects
field by field, and planned again by `bough plan`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.tools import plan as plan_tool
from bough.tools import why as why_tool
from tests.printed import as_json
from tests.worlds_yaml import Object, changed, kai_world, kueue_world, mixed_world, write

plan, why = as_json(plan_tool.plan), as_json(why_tool.why)

#: So many of a world's workloads that wait are asked about.
ASKED = 3
#: Each example is planned over and over.
few = settings(max_examples=settings().max_examples // 6)
#: Worlds that are always the same, and of which most that wait are helped: all of them in CI.
SEEDS = range(min(12, 2 * settings().max_examples // 3))


def starts_as_gang(path: str, name: str) -> bool:
    """Whether one plan starts a gang, or frees room for it."""
    decided = plan([path])
    needed = (each for each in decided["starts"] if not all(p["optional"] for p in each["pods"]))
    return name in {each["workload"] for each in (*needed, *decided["nominations"])}


def starts_as_workload(path: str, name: str) -> bool:
    """Whether a workload gets quota when it has its turn, or others are told to end for it."""
    return why([path], name)["certificate"]["verdict"] in ("starts", "nominated")


FORMS = {
    "kai": (kai_world, starts_as_gang),
    "kueue": (kueue_world, starts_as_workload),
    "mixed": (mixed_world, starts_as_workload),
}


def helpful(folder: Path, objects: list[Object]) -> list[tuple[str, list[dict[str, Any]]]]:
    """The workloads that wait, each with its remedies."""
    path = write(folder, objects)
    found: list[tuple[str, list[dict[str, Any]]]] = []
    for wait in plan([path])["waits"][:ASKED]:
        answer = why([path], wait["workload"], remedies=True)
        if answer["certificate"]["verdict"] == "waits":
            found.append((wait["workload"], answer["remedies"]["found"]))
    return found


def check(objects: list[Object], starts: Callable[[str, str], bool]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for workload, found in helpful(folder, objects):
            for remedy in found:
                path = write(folder, changed(objects, remedy["changes"]))
                assert starts(path, workload), (workload, remedy["sentence"])


@few
@given(st.integers(0, 1 << 32))
def test_every_remedy_written_into_objects_of_kai_starts_the_gang(seed: int):
    check(kai_world(Random(seed)), starts_as_gang)


@few
@given(st.integers(0, 1 << 32))
def test_every_remedy_written_into_objects_of_kueue_starts_the_workload(seed: int):
    check(kueue_world(Random(seed)), starts_as_workload)


@few
@given(st.integers(0, 1 << 32))
def test_every_remedy_written_into_objects_of_both_starts_what_it_is_for(seed: int):
    check(mixed_world(Random(seed)), starts_as_workload)


def test_nothing_that_waits_is_said_to_run(tmp_path: Path):
    """Where heads are judged together, a plan says nothing of what is behind one of them."""
    for seed in range(50, 50 + min(20, settings().max_examples // 2)):
        path = write(tmp_path, mixed_world(Random(seed)))
        for wait in plan([path])["waits"]:
            name = wait["workload"]
            assert "runs" != why([path], name)["certificate"]["verdict"], (seed, name)


@pytest.mark.parametrize("form", list(FORMS))
def test_nine_of_ten_that_wait_have_a_remedy(form: str, tmp_path: Path):
    world, _ = FORMS[form]
    found = [each for seed in SEEDS for each in helpful(tmp_path, world(Random(seed)))]

    helped = sum(bool(remedies) for _, remedies in found)

    print(f"{form}: {helped} of {len(found)} that wait have a remedy")  # noqa: T201
    assert 3 * len(found) >= 5 * len(SEEDS)
    assert 90 * len(found) <= 100 * helped
