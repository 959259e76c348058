"""The description of the interface is true: whatever it allows is answered as it says."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

from tests.api.fuzzing import APART, CHECKS
from tests.api.house import House
from tests.api.test_matrix import TABLE


@pytest.fixture(scope="module")
def house(sqlite_files):
    store = sqlite_files.open(sqlite_files.make())
    with House(store) as made:
        made.pool("team", 100)
        made.create("team", "a", 30)
        made.run(1, "team--a")
        yield made
    store.close()


@pytest.fixture(scope="module")
def description(house):
    return schemathesis.openapi.from_dict(house.get("/api/openapi.json"))


@pytest.mark.parametrize(("method", "path"), sorted(set(TABLE) - APART))
def test_every_answer_is_one_that_is_described(house, description, method, path):
    @given(case=description[path][method].as_strategy())
    @settings(
        max_examples=max(1, settings().max_examples // 12),
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case):
        request = case.as_transport_kwargs(base_url="http://server")
        params = request.get("params") or {}
        sent = {key: request[key] for key in ("json", "headers") if request.get(key)}
        content = request.get("data")
        response = house.ask(
            request["method"], request["url"], params=params, content=content, **sent
        )
        case.validate_response(response, checks=CHECKS)

    check()
