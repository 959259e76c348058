"""The law of the guarantee in random histories over HTTP; on PostgreSQL in CI and in the soak."""

from __future__ import annotations

import pytest

from tests.api.guarantee_machine import check_guarantee
from tests.store.databases import KINDS

#: The soak has more of both.
EXAMPLES = 4
STEPS = 20


@pytest.fixture(params=KINDS)
def databases(request):
    name = "sqlite_files" if request.param == "sqlite" else "postgres"
    return request.getfixturevalue(name)


def test_no_start_takes_what_is_promised_and_every_head_that_fits_starts(databases):
    check_guarantee(databases, EXAMPLES, STEPS)
