"""What a server decides by, and shows, where its policy works out shares."""

from __future__ import annotations

import pytest

from tests.api.house import House, spec
from tests.api.served import Served
from tests.policies import said

PATH = "/api/configs/policy"
GPUS = 18
#: Of the node of a house, for each GPU.
CORES = 32


@pytest.fixture
def market(sqlite_files):
    """A node of 18 GPUs; work of `thin` wants cores, that of `wide` GPUs."""
    address = sqlite_files.make()
    with House(sqlite_files.open(address), GPUS) as made:
        made.pool("thin", 0)
        made.pool("wide", 0)
        yield made
    sqlite_files.give_back(address)


def decide_by(house: House, text: str) -> None:
    house.send("PATCH", PATH, {"file": text, "source": "ours.yaml"})


def submit(house: House, pool: str, gpus: int, cores: int, copies: int) -> list[str]:
    text = spec(gpus).replace("cpu: 1,", f"cpu: {cores},")
    return [house.submit(gpus, pool, "LOW", text=text) for _ in range(copies)]


def running(house: House, names: list[str]) -> int:
    return [house.status(name) for name in names].count("RUNNING")


def pools(house: House) -> dict[str, dict[str, object]]:
    return {each["pool"]: each for each in house.queues().values() if not each["leaf"]}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("gangs: {share_idle_by: weight}", (3, 0)),
        ("gangs: {share_idle_by: dominant_share}", (2, 3)),
    ],
    ids=["weight", "dominant_share"],
)
def test_low_shares_what_is_idle_as_the_policy_says(market: House, policy, expected):
    decide_by(market, policy)
    thin = submit(market, "thin", 1, 6 * CORES, 4)
    wide = submit(market, "wide", 4, 2 * CORES, 4)
    market.settle()

    assert expected == (running(market, thin), running(market, wide))


def test_a_wait_names_the_shares_that_stand_against_it(market: House):
    decide_by(market, "gangs: {share_idle_by: dominant_share}")
    submit(market, "wide", 4, 2 * CORES, 3)
    *_, waiting = submit(market, "thin", 1, 6 * CORES, 3)
    market.settle()

    (why,) = market.get(f"/api/workflow/{waiting}/why")["groups"]

    # With it, all cores; the other has as many GPUs as two thirds.
    shares = "the share of pool thin is 1, that of pool wide is 0.667"
    assert why["message"].endswith(f"; pool wide has less: with it {shares}")
    assert [("cpu", "1"), ("gpu", "0.667")] == [
        (each["resource"], each["share"]) for each in why["certificate"]["shares"]
    ]


def test_queues_show_the_largest_share_where_it_decides(market: House):
    submit(market, "thin", 1, 6 * CORES, 2)
    market.settle()
    assert ("0.112", 2) == tuple(pools(market)["thin"][key] for key in ("share", "fair"))

    decide_by(market, "gangs: {share_idle_by: dominant_share}")

    # 12 of 18 parts of the cores; nothing is divided beforehand.
    assert ("0.667", None) == tuple(pools(market)["thin"][key] for key in ("share", "fair"))
    assert ("0", None) == tuple(pools(market)["wide"][key] for key in ("share", "fair"))


def test_queues_show_the_fair_shares_that_cycles_divide(house: House):
    """Three ask for 40 of 100 each: 33.333 by weight, and whole GPUs as cycles divide them."""
    for name in "abc":
        house.pool(name, 0)
        house.submit(40, name, "LOW")
    house.settle()
    shown = pools(house)
    assert [33.333] * 3 == [shown[name]["fair"] for name in "abc"]

    decide_by(house, "preset: kai-fair")
    house.settle()

    shown = pools(house)
    assert [34, 33, 33] == [shown[name]["fair"] for name in "abc"]
    # 40 of 34, and of 33.
    assert ["1.177", "1.213", "0"] == [shown[name]["share"] for name in "abc"]
    assert [0, 0, 0] == [shown[name]["deserved"] for name in "abc"]


def test_a_wrong_choice_is_refused_and_changes_nothing(house: House):
    before = house.get(PATH)

    answer = house.ask("PATCH", PATH, json={"file": "gangs: {share_idle_by: dominant}\n"})

    assert 400 == answer.status_code
    assert "gangs.share_idle_by: expected one of weight, dominant_share" in answer.text
    assert before == house.get(PATH)


@pytest.mark.served
def test_a_server_that_is_started_with_a_file_shows_it(tmp_path):
    path = tmp_path / "ours.yaml"
    path.write_text("gangs: {share_idle_by: dominant_share}\n")
    with Served(tmp_path / "data", "--policy", str(path)) as server:
        assert "dominant_share" == said(server.get(PATH), "share_idle_by")
        assert {None} == {each["fair"] for each in server.get("/api/queues")}
