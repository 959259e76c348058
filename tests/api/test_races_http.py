"""Races over HTTP against a served process; in CI on both databases. Nothing is lost, sums hold."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.api.house import SUBPOOLS, spec
from tests.api.served import Served
from tests.store.databases import KINDS
from tests.store.racers import at_once

#: How often a race is run; more in a soak.
ROUNDS = int(os.environ.get("BOUGH_RACE_ROUNDS", "6"))
#: Deletes and submissions that race at the same time, each pair for a subpool of its own.
PAIRS = 4


class Caller:
    """An administrator with many connections that any number of threads may share."""

    def __init__(self, server: Served) -> None:
        headers = {"authorization": f"Bearer {server.token}"}
        self._client = httpx.Client(base_url=server.address, headers=headers, timeout=60)

    def close(self) -> None:
        self._client.close()

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and body of an answer, which never is a failure of the server."""
        response = self._client.request(method, path, json=body)
        assert response.status_code < 500, response.text
        return response.status_code, response.json()

    def status(self, method: str, path: str, body: Any = None) -> int:
        return self.ask(method, path, body)[0]

    def create(self, name: str, quota: int) -> int:
        return self.status("POST", SUBPOOLS, {"name": name, "quota": quota})

    def delete(self, name: str) -> tuple[int, Any]:
        return self.ask("DELETE", f"{SUBPOOLS}/{name}")

    def submit(self, name: str, gpus: int) -> tuple[int, Any]:
        return self.ask("POST", f"/api/pool/team--{name}/workflow", {"file": spec(gpus)})

    def state(self, name: str) -> str:
        return self.ask("GET", f"{SUBPOOLS}/{name}")[1]["subpool_state"]

    def leaves(self) -> dict[str, int]:
        """The quotas of the leaves of the pool, by the last part of their names."""
        found = self.ask("GET", "/api/queues")[1]
        rows = found["queues"] if isinstance(found, dict) else found
        start = "osmo-pool-ns-team--"
        return {
            row["name"].removeprefix(start): row["quota"]
            for row in rows
            if row["name"].startswith(start)
        }


@pytest.fixture(scope="module", params=KINDS)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Caller]:
    """Pool `team` with all 100 GPUs."""
    options = ["--gpus", "100", "--namespace", "ns"]
    if request.param == "postgresql":
        options += ["--database", request.getfixturevalue("postgres").make()]
    with Served(tmp_path_factory.mktemp("races") / "data", *options) as server:
        caller = Caller(server)
        gpu = {"guarantee": 100, "maximum": -1, "weight": 1}
        body = {"configs": {"team": {"resources": {"gpu": gpu}}}}
        assert 200 == caller.status("PUT", "/api/configs/pool", body)
        yield caller
        caller.close()


@pytest.fixture
def team(served: Caller) -> Iterator[Caller]:
    """`T0`: nothing is divided, as before and after every test."""
    yield served
    for name in served.leaves():
        if name != "_shared":
            served.delete(name)
    assert {"_shared": 100} == served.leaves()


def test_scenario_100_of_two_that_do_not_both_fit_one_is_created(team):
    statuses = at_once(lambda: team.create("a", 60), lambda: team.create("b", 60))

    assert [201, 409] == sorted(statuses)
    assert 40 == team.leaves()["_shared"]


def test_scenarios_101_and_102_of_fifty_creates_as_many_succeed_as_fit(team):
    creates = [lambda number=number: team.create(f"s{number}", 3) for number in range(50)]

    statuses = at_once(*creates)

    assert [201] * 33 + [409] * 17 == sorted(statuses)
    leaves = team.leaves()
    assert (1, 100) == (leaves["_shared"], sum(leaves.values()))
    taken = next(name for name in leaves if name != "_shared")
    assert [409] * 4 == at_once(*[lambda: team.create(taken, 1)] * 4)
    assert [201] + [409] * 3 == sorted(at_once(*[lambda: team.create("last", 0)] * 4))
    leaves["last"] = 0
    assert leaves == team.leaves()


def test_scenario_104_a_submission_is_refused_or_counted(team):
    names = [f"s{number}" for number in range(PAIRS)]
    for _ in range(max(1, ROUNDS // PAIRS)):
        for name in names:
            assert 201 == team.create(name, 5)

        results = at_once(
            *(
                action
                for name in names
                for action in (
                    lambda name=name: team.delete(name),
                    lambda name=name: team.submit(name, 5),
                )
            )
        )

        for name, deleted, accepted in zip(names, results[::2], results[1::2], strict=True):
            assert 200 == deleted[0]
            if accepted[0] == 200:
                path = f"/api/workflow/{accepted[1]['name']}/cancel"
                assert ("DELETING", 200) == (team.state(name), team.status("POST", path))
                _until_archived(team, name)
            else:
                assert (409, "ARCHIVED") == (accepted[0], team.state(name))
        assert {"_shared": 100} == team.leaves()


def _until_archived(team: Caller, name: str) -> None:
    """What had started already is told to end, and then the subpool is archived."""
    for _ in range(2_000):
        if team.state(name) == "ARCHIVED":
            return
    raise AssertionError(f"{name} is not archived")
