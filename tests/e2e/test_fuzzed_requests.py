"""Whatever a user of any role sends is answered as the description says, and never with a 5xx."""

from __future__ import annotations

import pytest

from tests.api.fuzzing import PEOPLE, Fuzzed
from tests.api.served import Served

EXAMPLES = 3


@pytest.mark.parametrize("user", PEOPLE, ids=str)
def test_no_request_of_a_role_gets_a_server_error(tmp_path, user):
    with Served(tmp_path / "data", "--gpus", "8") as server:
        fuzzed = Fuzzed(server, user)
        fuzzed.send_all(EXAMPLES)
        assert 200 == server.ask("GET", "/health").status_code
        assert "Traceback" not in server.log

    assert fuzzed.statuses.total() > 200
    assert [] == [status for status in fuzzed.statuses if status >= 500]
    assert fuzzed.statuses[200]
    # Every request came from the user: only a wrong token to log in with is refused like that.
    assert (user is None) == (fuzzed.statuses[401] > EXAMPLES)
