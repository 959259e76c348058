"""The policy over HTTP, and a server that is started with a policy file."""

from __future__ import annotations

import pytest

from tests.api.house import House
from tests.api.served import Served, run_commands
from tests.policies import said, written

PATH = "/api/configs/policy"


def test_it_is_shown_changed_and_has_a_history(house: House):
    shown = house.get(PATH)
    assert ("osmo", "osmo") == (shown["preset"], shown["name"])

    body = {"configs_dict": written(minimum_runtime="15m"), "description": "calmer"}
    changed = house.send("PATCH", PATH, body)

    assert "15m" == said(changed, "minimum_runtime")
    assert changed == house.get(PATH)
    latest, first = house.get("/api/configs/history?config_types=POLICY")["configs"]
    assert (2, "admin", "calmer") == (
        latest["revision"],
        latest["username"],
        latest["description"],
    )
    assert (1, shown) == (first["revision"], first["data"])
    query = "config_type=POLICY&first_revision=1&second_revision=2"
    (difference,) = house.get(f"/api/configs/diff?{query}")["differences"]
    assert ("0s", "15m") == (difference["before"], difference["after"])
    back = {"config_type": "POLICY", "revision": 1}
    house.send("POST", "/api/configs/history/rollback", back)
    assert shown == house.get(PATH)


def test_what_is_shown_can_be_sent_again(house: House):
    shown = house.get(PATH)

    assert shown == house.send("PUT", PATH, {"configs": shown})
    assert shown == house.send("PATCH", PATH, {"configs_dict": shown})


def test_a_file_that_cannot_be_used_is_refused_with_its_lines(house: House):
    before = house.get(PATH)
    body = {"file": "preset: osmo\nheads: frist\nsort: 1\n", "file_name": "ours.yaml"}

    response = house.ask("PATCH", PATH, json=body)

    assert 400 == response.status_code
    answer = response.json()
    assert "The policy cannot be used, and nothing was changed." == answer["message"]
    assert ["ours.yaml:2: Policy: heads", "ours.yaml:3: Policy: sort"] == [
        ": ".join(line.split(": ")[:3]) for line in answer["details"]
    ]
    assert before == house.get(PATH)


def test_a_body_says_fields_or_a_file_and_not_both(house: House):
    for body in ({}, {"file": "{}", "configs_dict": {}}):
        status, message = house.refused("PATCH", PATH, body)
        assert (400, True) == (status, message.startswith("Send either the fields"))
    assert 400 == house.refused("PUT", PATH, {"configs": [1]})[0]


@pytest.mark.served
def test_a_server_decides_by_the_file_that_it_is_started_with(tmp_path):
    data, path = tmp_path / "data", tmp_path / "ours.yaml"
    path.write_text("preset: kueue\nname: ours\n")
    history = "/api/configs/history?config_types=POLICY"
    with Served(data, "--policy", str(path)) as server:
        assert ("kueue", "ours") == tuple(server.get(PATH)[key] for key in ("preset", "name"))
        answer = server.ask("PATCH", PATH, json={"configs_dict": {"name": "theirs"}})
        assert 200 == answer.status_code
        assert 0 == server.stop()
    with Served(data) as server:
        assert "theirs" == server.get(PATH)["name"]
        assert 0 == server.stop()
    with Served(data, "--policy", str(path)) as server:
        assert "ours" == server.get(PATH)["name"]
        latest = server.get(history)["configs"][0]
        assert (4, "system", f"serve --policy {path}") == tuple(
            latest[key] for key in ("revision", "username", "description")
        )


def test_a_server_does_not_start_with_a_file_that_cannot_be_used(tmp_path):
    path = tmp_path / "ours.yaml"
    path.write_text("preset: osmo\nheads: frist\n")
    command = ("serve", "--port", "0", "--backend", "virtual", "--data", str(tmp_path / "data"))

    ((code, said, errors),) = run_commands((*command, "--policy", str(path)))

    assert (2, "") == (code, said), errors
    assert f"{path}:2: Policy: heads: expected one of first, all" in errors
    assert "Traceback" not in errors
