"""Identity: tokens, passes made from them, proxies; and what is kept secret."""

from __future__ import annotations

import base64
import json
import logging
from ipaddress import ip_network
from pathlib import Path

import pytest

from tests.api.house import House

DAY_MS = 24 * 60 * 60 * 1_000


def test_a_token_that_is_not_known_is_refused_with_a_body(house):
    response = house.ask(
        "GET", "/api/pool", user=None, headers={"authorization": "Bearer bough-wrong"}
    )

    assert 401 == response.status_code
    assert "The token is not known; it may have been deleted." == response.json()["message"]


@pytest.mark.parametrize("header", ["Basic YTpi", "Bearer", "Bearer ", "bough-x"])
def test_another_way_to_say_who_one_is_is_refused(house, header):
    response = house.ask("GET", "/api/pool", user=None, headers={"authorization": header})

    assert 401 == response.status_code


def test_a_token_expires(house):
    house.user("ann")
    assert 200 == house.ask("GET", "/api/pool", user="ann").status_code

    house.time.ms += 32 * DAY_MS

    assert 401 == house.ask("GET", "/api/pool", user="ann").status_code


def test_a_token_is_shown_once_and_kept_as_a_hash(house):
    house.user("ann")
    secret = house.secrets["ann"]

    listed = house.ask("GET", "/api/auth/user/ann/access_token").text

    assert secret not in listed
    assert ["test"] == [each["token_name"] for each in json.loads(listed)]
    path = house.site.store.engine.url.database
    assert path is not None
    assert secret.encode() not in Path(path).read_bytes()
    assert secret.encode() not in Path(path + "-wal").read_bytes()


def test_a_narrow_token_does_not_do_what_its_user_may(team):
    team.user("ann", "osmo-admin", "osmo-team-user")
    path = "/api/auth/access_token/narrow?roles=osmo-team-user&expires_at=2099-01-01"
    team.secrets["narrow"] = team.ask("POST", path, user="ann").json()

    assert 403 == team.ask("GET", "/api/queues", user="narrow").status_code
    assert 200 == team.ask("GET", "/api/configs/pool/team/subpool", user="narrow").status_code
    roles = team.get("/api/auth/access_token/narrow/roles", user="narrow")
    assert ("narrow", "ann") == (roles["token_name"], roles["user_name"])
    assert ["osmo-team-user"] == [each["role_name"] for each in roles["roles"]]
    # Nor can it make one that may do more.
    wider = team.ask("POST", "/api/auth/access_token/wide", user="narrow").json()
    team.secrets["wide"] = wider
    assert 403 == team.ask("GET", "/api/queues", user="wide").status_code


def test_a_pass_made_from_a_token_is_worth_what_the_token_is(team):
    team.user("ann", "osmo-team-user")
    made = team.send(
        "POST", "/api/auth/jwt/access_token", {"token": team.secrets["ann"]}, user=None
    )
    team.secrets["pass"] = made["token"]

    body = made["token"].split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    assert ("ann", made["expires_at"]) == (claims["name"], claims["exp"])
    profile = team.get("/api/profile/settings", user="pass")
    assert (["team"], "test") == (profile["pools"], profile["token"]["name"])

    team.time.ms += 61 * 60 * 1_000
    assert 401 == team.ask("GET", "/api/pool", user="pass").status_code


def test_a_pass_is_worthless_once_its_token_is_deleted_or_a_role_is_taken(team):
    team.user("ann", "osmo-team-user")
    body = {"token": team.secrets["ann"]}
    team.secrets["pass"] = team.send("POST", "/api/auth/jwt/access_token", body)["token"]

    team.send("DELETE", "/api/auth/user/ann/roles/osmo-team-user")
    assert 403 == team.ask("GET", "/api/configs/pool/team/subpool", user="pass").status_code
    team.send("DELETE", "/api/auth/user/ann/access_token/test")
    assert 401 == team.ask("GET", "/api/pool", user="pass").status_code


def test_a_pass_with_another_signature_is_refused(house):
    body = {"token": house.secrets["admin"]}
    good = house.send("POST", "/api/auth/jwt/access_token", body)["token"]
    head, claims, _ = good.split(".")
    unsigned = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")

    for forged in (f"{head}.{claims}.", f"{unsigned}.{claims}.", f"{head}.{claims}.AAAA", "a.b.c"):
        house.secrets["forged"] = forged
        assert 401 == house.ask("GET", "/api/pool", user="forged").status_code


def test_headers_say_nothing_unless_a_proxy_is_trusted(house):
    headers = {"x-osmo-user": "admin", "x-osmo-roles": "osmo-admin"}

    assert 401 == house.ask("GET", "/api/queues", user=None, headers=headers).status_code


def test_a_trusted_proxy_names_the_user(sqlite_files, monkeypatch):
    headers = {"x-osmo-user": "ann", "x-osmo-roles": "osmo-team-user, osmo-other-user"}
    for network, expected in (("127.0.0.0/8", 200), ("10.0.0.0/8", 401)):
        store = sqlite_files.open(sqlite_files.make())
        with House(store, trusted_proxies=(ip_network(network),)) as house:
            monkeypatch.setattr("bough.server.authenticator.origin_of", lambda _: "127.0.0.1")
            house.pool("team", 10)

            answer = house.ask("GET", "/api/profile/settings", user=None, headers=headers)

            assert expected == answer.status_code
            if expected == 200:
                assert ("ann", ["team"]) == (
                    answer.json()["profile"]["username"],
                    answer.json()["pools"],
                )
                assert (
                    403 == house.ask("GET", "/api/queues", user=None, headers=headers).status_code
                )
        store.close()


def test_no_secret_comes_into_the_log(house, caplog):
    caplog.set_level(logging.DEBUG)
    secret = house.secrets["admin"]

    house.ask("GET", f"/api/pool?token={secret}")
    house.ask("POST", "/api/auth/jwt/access_token", json={"token": secret}, user=None)
    house.send(
        "POST", "/api/credentials/key", {"type": "GENERIC", "payload": {"password": "hunter2"}}
    )

    lines = [record.getMessage() for record in caplog.records if record.name == "bough.access"]
    assert 3 == len(lines)
    assert "admin GET /api/pool 200" in lines[0]
    # The client of the test has a log of its own.
    ours = [each.getMessage() for each in caplog.records if not each.name.startswith("httpx")]
    assert secret not in "".join(ours)
    assert "hunter2" not in "".join(ours)


def test_a_credential_is_never_shown_again(house):
    body = {"type": "generic", "payload": {"user": "u", "password": "hunter2"}}

    house.send("POST", "/api/credentials/key", body)

    shown = house.ask("GET", "/api/credentials")
    assert [("key", "GENERIC", "password, user")] == [
        (each["cred_name"], each["cred_type"], each["keys"]) for each in shown.json()["credentials"]
    ]
    assert "hunter2" not in shown.text
    assert "hunter2" not in house.ask("GET", "/api/audit").text
