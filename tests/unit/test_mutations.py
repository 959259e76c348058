"""The table of mutations names places and tests that there are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.mutations.mutation import Mutation
from tests.mutations.run import MUTATIONS, ROOT, find, read_sources


@pytest.fixture(scope="module")
def sources() -> Mapping[Path, str]:
    return read_sources(ROOT)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.name)
def test_a_mutation_has_one_place_and_tests_that_may_notice_it(
    sources: Mapping[Path, str], mutation: Mutation
):
    assert find(sources, mutation).is_file()
    assert mutation.before != mutation.after
    paths = [word for word in mutation.tests.split() if word.startswith("tests/")]
    assert paths
    assert [] == [path for path in paths if not (ROOT / path).is_file()]
