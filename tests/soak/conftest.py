"""The worlds of the tests of the store: every test that asks for one runs on both databases."""

from __future__ import annotations

from tests.store.conftest import (  # noqa: F401 - fixtures are found by their names
    database,
    databases,
    divided,
    prepared,
    pytest_generate_tests,
    store,
    team,
    world,
)
