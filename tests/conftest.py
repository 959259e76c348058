"""Settings for all tests: no deadlines (machines are shared), and how many examples a law gets.

Few in `make test`, more in `make laws`, which is a part of CI, and very many in the soak.

And the databases that folders of tests share: each test process makes and migrates them once.
"""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.store.databases import PostgresServer, SqliteFiles

# What is printed is compared, wherever and by whatever the tests were started.
os.environ["TZ"] = "UTC"
time.tzset()

# What was started in the background of a plain shell ignores these, and so would all programs
# that tests start and interrupt.
for _number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(
            _number,
            signal.default_int_handler if _number is signal.SIGINT else signal.SIG_DFL,
        )

# What is imported and collected stays until the end: to look through it again and again for what
# could be freed cost a quarter of the collection, and something in each test.
gc.disable()


def pytest_collection_finish() -> None:
    """Look from here on only through what the tests themselves make."""
    gc.freeze()
    gc.enable()


settings.register_profile("default", deadline=None, max_examples=12, print_blob=True)
settings.register_profile("laws", settings.get_profile("default"), max_examples=60)
settings.register_profile(
    "soak",
    settings.get_profile("default"),
    max_examples=1_500,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def sqlite_files() -> Iterator[SqliteFiles]:
    # Tests without a database do not import all that one needs.
    from tests.store.databases import SqliteFiles, folder_in_memory

    with folder_in_memory() as folder:
        yield SqliteFiles(folder)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    from tests.store.databases import postgres_server

    with postgres_server() as server:
        yield server
