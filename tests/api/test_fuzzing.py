"""What made-up requests need is there; the requests themselves are sent in tests/e2e."""

from __future__ import annotations

import string

from tests.api.fuzzing import APART, NAMES
from tests.api.test_matrix import TABLE


def test_made_up_requests_know_something_for_every_parameter_of_a_path():
    paths = {path for _, path in set(TABLE) - APART}
    asked = {name for path in paths for _, name, _, _ in string.Formatter().parse(path) if name}

    # The name of a node is known once the server runs.
    assert asked == {*NAMES, "node"}
