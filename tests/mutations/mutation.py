"""One thing that goes wrong, and the tests that must notice it."""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """One thing that goes wrong."""

    name: str
    before: str
    after: str
    #: What pytest is asked to run, and must fail.
    tests: str
