"""As tests/e2e/test_fuzzed_requests.py, with others each time and many more."""

from __future__ import annotations

import pytest

from tests.api.fuzzing import PEOPLE, Fuzzed
from tests.api.served import Served

EXAMPLES = 100


@pytest.mark.parametrize("user", PEOPLE, ids=str)
def test_no_request_of_a_role_gets_a_server_error(tmp_path, user):
    with Served(tmp_path / "data", "--gpus", "8") as server:
        fuzzed = Fuzzed(server, user)
        fuzzed.send_all(EXAMPLES, derandomize=False)
        assert 200 == server.ask("GET", "/health").status_code
        assert "Traceback" not in server.log
    print(user, dict(sorted(fuzzed.statuses.items())))  # noqa: T201  figures for the report

    assert [] == [status for status in fuzzed.statuses if status >= 500]
