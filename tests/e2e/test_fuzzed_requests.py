"""Whatever a user of any role sends is answered as the description says, and never with a 5xx."""

from __future__ import annotations

import pytest

from tests.api.fuzzing import PEOPLE, Fuzzed
from tests.api.served import Served

EXAMPLES = 3
#: The users with the most rights; what PostgreSQL refuses, SQLite may take.
ON_POSTGRESQL = ("writer", "manager")


@pytest.mark.parametrize("user", PEOPLE, ids=str)
def test_no_request_of_a_role_gets_a_server_error(tmp_path, user, request):
    options: tuple[str, ...] = ("--gpus", "8")
    if user in ON_POSTGRESQL:
        made = request.getfixturevalue("postgres").make(migrated=False)
        options = (*options, "--database", made)
    with Served(tmp_path / "data", *options) as server:
        fuzzed = Fuzzed(server, user)
        fuzzed.send_all(EXAMPLES)
        assert 200 == server.ask("GET", "/health").status_code
        assert "Traceback" not in server.log

    assert fuzzed.statuses.total() > 200
    assert [] == [status for status in fuzzed.statuses if status >= 500]
    assert fuzzed.statuses[200]
    # Every request came from the user: only a wrong token to log in with is refused like that.
    assert (user is None) == (fuzzed.statuses[401] > EXAMPLES)
