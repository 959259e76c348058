"""Settings of the service, and what administrators say about backends."""

from __future__ import annotations

import base64
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.api.house import House

SERVICE = "/api/configs/service"
BACKEND = "/api/configs/backend/default"


def patch(house: House, changes: dict[str, Any]) -> dict[str, Any]:
    return house.send("PATCH", SERVICE, {"configs_dict": changes, "description": "why"})


def ask_as(house: House, version: str, path: str = "/api/pool") -> Any:
    return house.ask("GET", path, headers={"x-osmo-client-version": version})


def test_a_client_that_is_too_old_is_refused_and_told_what_to_do(house: House):
    assert 200 == ask_as(house, "6.1.9").status_code
    patch(
        house,
        {
            "cli_config": {
                "min_supported_version": "6.2.0",
                "client_install_url": "https://tools.example/osmo",
            }
        },
    )

    refused = ask_as(house, "6.1.9")

    assert 400 == refused.status_code
    assert (
        "This client is too old: it is 6.1.9, and at least 6.2.0 is needed."
        in refused.json()["message"]
    )
    assert "https://tools.example/osmo" in refused.text
    for version in ("6.2.0", "6.10.0", "10.0.0.abc123", "of my own"):
        assert 200 == ask_as(house, version).status_code
    # It must be able to find out which one it should be.
    assert 200 == ask_as(house, "6.1.9", "/client/version").status_code
    patch(house, {"cli_config": {"min_supported_version": None}})
    assert 200 == ask_as(house, "6.1.9").status_code


def test_a_client_hears_of_a_newer_one(house: House):
    patch(house, {"cli_config": {"latest_version": "6.4.0"}})

    told, silent = ask_as(house, "6.3.9"), ask_as(house, "6.4.0")

    assert (200, "6.4.0") == (told.status_code, told.headers["x-osmo-service-version"])
    warning = base64.b64decode(told.headers["x-osmo-warning"]).decode()
    assert "WARNING: there is a newer client, 6.4.0; this is 6.3.9." == warning
    assert "x-osmo-warning" not in silent.headers
    assert {"major": "6", "minor": "4", "revision": "0"}.items() <= (
        house.get("/client/version", None).items()
    )


def test_tokens_are_valid_no_longer_than_they_may_be(house: House):
    house.pool("team", 1)
    house.user("ann", "osmo-team-user")
    patch(house, {"service_auth": {"max_token_duration": "7d"}})
    late = house.refused("POST", "/api/auth/access_token/late?expires_at=2099-01-01", user="ann")

    message = "Token late would be valid for longer than 7d, the most that is possible here; "
    assert (400, f"{message}choose an earlier date.") == late
    # Without a date, it is the usual time or the longest.
    house.send("POST", "/api/auth/access_token/week", user="ann")
    (made,) = (
        each for each in house.get("/api/auth/access_token", "ann") if each["token_name"] == "week"
    )
    created, expires = (
        datetime.fromisoformat(made[f"{when}_at"]) for when in ("created", "expires")
    )
    assert timedelta(days=7) == expires - created
    patch(house, {"service_auth": None})
    house.send("POST", "/api/auth/access_token/late?expires_at=2099-01-01", user="ann")


def test_what_was_set_is_replaced_audited_and_rolled_back(house: House):
    before = house.get(SERVICE)
    patch(house, {"cli_config": {"latest_version": "6.4.0"}})
    patch(house, {"service_auth": {"max_token_duration": "90d"}})
    both = house.get(SERVICE)

    house.send("PUT", SERVICE, {"configs": {**before, "cli_config": {"latest_version": "7.0.0"}}})

    assert {**before, "cli_config": {**before["cli_config"], "latest_version": "7.0.0"}} == (
        house.get(SERVICE)
    )
    history = house.get("/api/configs/history?config_types=SERVICE")["configs"]
    assert [3, 2, 1] == [each["revision"] for each in history]
    assert ["cli_config.latest_version", "service_auth.max_token_duration"] == sorted(
        each["field"] for each in history[0]["differences"]
    )
    house.send("POST", "/api/configs/history/rollback", {"config_type": "SERVICE", "revision": 2})
    assert both == house.get(SERVICE)
    entry = house.get("/api/audit?subject=config/service")["entries"][0]
    assert ("7.0.0", "6.4.0") == tuple(
        entry[when]["latest_version"] for when in ("before", "after")
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"agent_queue_size": 5}, "there is no field 'agent_queue_size'; there are cli_config and"),
        ({"service_auth": {"keys": {}}}, "there is no field service_auth.keys; there is max_token"),
        ({"service_base_url": "http://x"}, "as the server was started, and cannot be changed to"),
        ({"cli_config": 5}, "cli_config must be an object, not '5'."),
        (
            {"cli_config": {"latest_version": "new"}},
            "cli_config.latest_version must be a version like 6.4.0, not 'new'.",
        ),
        (
            {"cli_config": {"client_install_url": "ftp://x"}},
            "cli_config.client_install_url must be an address like https://host/path",
        ),
        (
            {"service_auth": {"max_token_duration": "1h"}},
            "service_auth.max_token_duration must be at least 1d, not 1h.",
        ),
        ({"service_auth": {"max_token_duration": 5}}, "max_token_duration must be a duration like"),
    ],
)
def test_what_cannot_be_set_is_refused_by_its_name_and_nothing_changes(
    house: House, changes: dict[str, Any], message: str
):
    before = house.get(SERVICE)
    good = {"cli_config": {"min_supported_version": "1.0.0"}}

    status, text = house.refused("PATCH", SERVICE, {"configs_dict": {**good, **changes}})

    assert 400 == status
    assert text.startswith("Service configuration: ")
    assert message in text
    assert before == house.get(SERVICE)
    assert [] == house.get("/api/configs/history?config_types=SERVICE")["configs"]


def test_what_is_said_about_a_backend_is_shown_and_kept(house: House):
    house.engine.settle()
    shown = house.get(BACKEND)
    about = {"description": "two racks", "grafana_url": "https://graphs.example/d/1"}

    # An answer can be edited and sent back as a whole.
    house.send("POST", BACKEND, {"configs": {**shown, **about}, "description": "first"})

    assert about.items() <= house.get(BACKEND).items()
    (listed,) = house.get("/api/configs/backend")["backends"]
    assert about.items() <= listed.items()
    house.send("POST", BACKEND, {"configs": {"description": None}})
    assert ("", about["grafana_url"]) == tuple(
        house.get(BACKEND)[name] for name in ("description", "grafana_url")
    )
    history = house.get("/api/configs/history?config_types=BACKEND")["configs"]
    assert ["", "first"] == [each["description"] for each in history]
    entry = house.get("/api/audit?subject=config/backend/default")["entries"][-1]
    assert ("", "two racks") == (entry["before"]["description"], entry["after"]["description"])


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        (
            {"router_address": "wss://elsewhere"},
            "router_address cannot be set here; it is decided by the server.",
        ),
        ({"scheduler_settings": {"scheduler_name": "mine"}}, "scheduler_settings cannot be set"),
        ({"color": "red"}, "there is no field 'color'; there is description, dashboard_url,"),
        ({"dashboard_url": "javascript:x"}, "dashboard_url must be an address like https://"),
        ({"description": 5}, "description must be a text of at most 1,000 characters."),
    ],
)
def test_what_cannot_be_said_about_a_backend_is_refused_by_its_name(
    house: House, configs: dict[str, Any], message: str
):
    house.engine.settle()
    body = {"configs": {"grafana_url": "https://graphs.example", **configs}}

    status, text = house.refused("POST", BACKEND, body)

    assert 400 == status
    assert text.startswith("Backend default: ")
    assert message in text
    assert "" == house.get(BACKEND)["grafana_url"]
    assert 404 == house.refused("POST", "/api/configs/backend/none", {"configs": {}})[0]
