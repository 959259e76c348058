"""Logging in, profile, credentials, tokens, users, version, completion."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from bough.version import VERSION
from tests.answering import Answering
from tests.unit.conftest import Osmo

PROFILE = {
    "profile": {
        "username": "ann",
        "email_notification": True,
        "slack_notification": False,
        "webhook_notification": False,
        "pool": "team",
    },
    "pools": ["team", "team--a"],
    "roles": [],
    "token": {"name": "laptop", "expires_at": "2026-01-05T10:00:00"},
}
SETTINGS = "/api/profile/settings"
TOKEN = {
    "token_name": "ci",
    "description": "",
    "expires_at": "2020-01-31T00:00:00",
    "roles": ["osmo-team-user"],
}
USER = {
    "id": "ann",
    "created_at": "2026-01-05T10:00:00",
    "created_by": "admin",
    "roles": [
        {
            "role_name": "osmo-team-user",
            "assigned_by": "admin",
            "assigned_at": "2026-01-05T10:00:00",
        }
    ],
}


@pytest.fixture
def nowhere(osmo: Osmo, monkeypatch: pytest.MonkeyPatch) -> Osmo:
    """Run a command without a server in the environment."""
    monkeypatch.delenv("BOUGH_SERVER")
    monkeypatch.delenv("BOUGH_TOKEN")
    return osmo


# Logging in


def test_a_login_is_tried_kept_and_used(nowhere: Osmo, server: Answering, login_file: Path):
    server.answer("GET", SETTINGS, PROFILE)
    ended = nowhere("login", server.address + "/", "--token", "mine")
    assert (0, f"Logged in to {server.address} as ann.\n", "") == ended
    assert 0o600 == stat.S_IMODE(os.stat(login_file).st_mode)
    assert 0 == nowhere("profile", "list").code
    assert "Bearer mine" == server.last.headers["authorization"]


def test_a_token_may_come_from_a_file(
    nowhere: Osmo, server: Answering, tmp_path: Path, login_file: Path
):
    server.answer("GET", SETTINGS, PROFILE)
    (tmp_path / "token").write_text("filed\n")
    ended = nowhere("login", server.address, "--token-file", str(tmp_path / "token"), "-t", "json")
    where = {"server": server.address, "file": str(login_file)}
    answer = {**where, "username": "ann", "server_key": None}
    assert answer == json.loads(ended.output)
    assert "Bearer filed" == server.last.headers["authorization"]
    assert 2 == nowhere("login", server.address, "--token-file", str(tmp_path / "none")).code


def test_a_login_that_fails_is_not_kept(nowhere: Osmo, server: Answering, login_file: Path):
    server.answer("GET", SETTINGS, {"message": "Who?", "error_code": "USER"}, 401)
    ended = nowhere("login", server.address, "--token", "wrong")
    assert 2 == ended.code
    assert "Hint: the token of the first administrator is in admin-token" in ended.errors
    ended = nowhere("login", server.address, "--method", "dev", "--username", "ann")
    assert "bough serve --trust-proxy NETWORK" in ended.errors
    assert not login_file.exists()


def test_a_token_may_be_sent_to_standard_input(
    nowhere: Osmo, server: Answering, monkeypatch: pytest.MonkeyPatch
):
    server.answer("GET", SETTINGS, PROFILE)
    for arguments in ((), ("--token-file", "-")):
        monkeypatch.setattr(sys, "stdin", io.StringIO("piped\n"))
        assert 0 == nowhere("login", server.address, *arguments).code
        assert "Bearer piped" == server.last.headers["authorization"]


def test_without_a_token_it_says_how_to_give_one(
    nowhere: Osmo, server: Answering, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    ended = nowhere("login", server.address)
    assert 2 == ended.code
    assert "--token or --token-file" in ended.errors
    assert [] == server.asked


def test_where_names_are_trusted_a_name_is_enough(nowhere: Osmo, server: Answering):
    server.answer("GET", SETTINGS, PROFILE)
    assert 0 == nowhere("login", server.address, "--method", "dev", "--username", "ann").code
    assert 0 == nowhere("profile", "list").code
    assert "ann" == server.last.headers["x-osmo-user"]
    assert 2 == nowhere("login", server.address, "--method", "dev").code


def test_logging_out_forgets(nowhere: Osmo, server: Answering):
    server.answer("GET", SETTINGS, PROFILE)
    nowhere("login", server.address, "--token", "mine")
    assert (0, "Logged out.\n", "") == nowhere("logout")
    assert (0, "You were not logged in.\n", "") == nowhere("logout")
    assert 10 == nowhere("profile", "list").code


# Profile


def test_the_profile_is_shown(osmo: Osmo, server: Answering):
    server.answer("GET", SETTINGS, PROFILE)
    assert [
        "User: ann",
        "Notifications:",
        "  email: yes",
        "  slack: no",
        "Pools:",
        "  default: team",
        "  accessible:",
        "    - team",
        "    - team--a",
        "Roles:",
        "    -",
        "Token: laptop, valid until Jan 05, 2026 10:00 UTC",
    ] == osmo("profile", "list").output.splitlines()
    assert PROFILE == json.loads(osmo("profile", "list", "-t", "json").output)


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        (("pool", "team"), {"pool": "team"}),
        (("notifications", "email"), {"email_notification": True}),
        (("notifications", "slack", "false"), {"slack_notification": False}),
    ],
)
def test_only_what_was_chosen_is_sent(
    osmo: Osmo, server: Answering, arguments: tuple[str, ...], body: object
):
    server.answer("POST", SETTINGS)
    server.answer("GET", SETTINGS, PROFILE)
    assert (0, "Your profile is updated.\n", "") == osmo("profile", "set", *arguments)
    assert body == server.asked[0].body


@pytest.mark.parametrize("arguments", [("pool", "x", "true"), ("notifications", "pigeon")])
def test_a_choice_that_does_not_exist_is_wrong_usage(osmo: Osmo, arguments: tuple[str, ...]):
    assert 2 == osmo("profile", "set", *arguments).code


# Credentials


def test_a_credential_is_set_from_options_and_files(osmo: Osmo, server: Answering, tmp_path: Path):
    server.answer("POST", "/api/credentials/hub", {})
    (tmp_path / "secret").write_text("s3cret\n")
    ended = osmo(
        *("credential", "set", "hub", "--type", "registry", "--payload", "username=ann"),
        *("--payload-file", f"auth={tmp_path / 'secret'}"),
    )
    assert (0, "Credential hub is set.\n", "") == ended
    payload = {"username": "ann", "auth": "s3cret"}
    assert {"type": "REGISTRY", "payload": payload} == server.last.body
    assert 2 == osmo("credential", "set", "hub", "--type", "DATA").code
    missing = osmo("credential", "set", "hub", "--type", "DATA", "--payload-file", "a=/nowhere")
    assert (2, True) == (missing.code, "/nowhere cannot be read" in missing.errors)


def test_credentials_are_listed_and_deleted(osmo: Osmo, server: Answering):
    line = {"cred_name": "hub", "cred_type": "DATA", "keys": "a, b", "created_at": None}
    server.answer("GET", "/api/credentials", {"credentials": [line]})
    server.answer("GET", "/api/credentials", {"credentials": []})
    server.answer("DELETE", "/api/credentials/hub", {"credentials": [line]})
    assert "hub    DATA   a, b    -" == osmo("credential", "list").output.splitlines()[2]
    assert "There are no credentials.\n" == osmo("credential", "list").output
    assert (0, "Credential hub is deleted.\n", "") == osmo("credential", "delete", "hub")


# Tokens


def test_a_token_is_printed_once(osmo: Osmo, server: Answering):
    server.answer("POST", "/api/auth/access_token/ci", "s3cret")
    ended = osmo("token", "set", "ci", "-e", "2030-01-31", "-d", "for CI", "-r", "a", "-r", "b")
    assert (0, "s3cret\n", "") == ended
    query = {"expires_at": ["2030-01-31"], "description": ["for CI"], "roles": ["a", "b"]}
    assert query == server.last.query
    answer = json.loads(osmo("token", "set", "ci", "-t", "json").output)
    assert {"token_name": "ci", "token": "s3cret"} == answer


def test_tokens_are_listed_with_whether_they_are_valid(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/auth/access_token", [TOKEN, {**TOKEN, "expires_at": "2999-01-01"}])
    server.answer("GET", "/api/auth/user/ann/access_token", [])
    lines = osmo("token", "list").output.splitlines()
    assert ["Expired", "Active"] == [line.split()[2] for line in lines[2:]]
    assert "There are no tokens.\n" == osmo("token", "list", "-u", "ann").output


def test_a_token_is_shown_and_deleted(osmo: Osmo, server: Answering):
    at = {"assigned_by": "ann", "assigned_at": "2026-01-05T10:00:00.000"}
    assigned = [{"role_name": "a", **at}, {"role_name": "b", **at}]
    roles = {"token_name": "ci", "user_name": "ann", "roles": assigned}
    server.answer("GET", "/api/auth/access_token/ci/roles", roles)
    server.answer("DELETE", "/api/auth/access_token/ci")
    assert "Roles : a, b" in osmo("token", "roles", "ci").output
    assert (0, "Token ci is deleted.\n", "") == osmo("token", "delete", "ci")


# Users


def test_users_are_listed(osmo: Osmo, server: Answering):
    line = {name: value for name, value in USER.items() if name != "roles"}
    server.answer("GET", "/api/auth/user", {"users": [line]})
    server.answer("GET", "/api/auth/user", {"users": []})
    output = osmo("user", "list", "--prefix", "a", "-r", "osmo-admin").output
    assert "ann    Jan 05, 2026 10:00 UTC" == output.splitlines()[2]
    assert {"id_prefix": ["a"], "roles": ["osmo-admin"]} == server.last.query
    assert "No users found\n" == osmo("user", "list").output


def test_a_user_is_added_changed_and_shown(osmo: Osmo, server: Answering):
    server.answer("POST", "/api/auth/user", USER, 201)
    server.answer("PATCH", "/api/auth/user/ann", {**USER, "roles": []})
    server.answer("GET", "/api/auth/user/ann", USER)
    assert (0, "User ann is created.\n", "") == osmo("user", "create", "ann", "-r", "osmo-x-user")
    assert {"id": "ann", "roles": ["osmo-x-user"]} == server.last.body
    assert "No roles." in osmo("user", "update", "ann", "-a", "x", "-r", "y").output
    assert {"add": ["x"], "remove": ["y"]} == server.last.body
    assert "osmo-team-user   admin" in osmo("user", "get", "ann").output
    assert 2 == osmo("user", "update", "ann").code


def test_deleting_a_user_wants_a_yes(osmo: Osmo, server: Answering, monkeypatch):
    server.answer("DELETE", "/api/auth/user/ann")
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert (3, "") == osmo("user", "delete", "ann")[:2]
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    assert osmo("user", "delete", "ann").errors.endswith("User ann is not deleted.\n")
    assert [] == server.asked
    assert (0, "User ann is deleted.\n", "") == osmo("user", "delete", "ann", "--force")


# Version and completion


def test_both_versions_are_shown(osmo: Osmo, server: Answering):
    server.answer("GET", "/api/version", {"major": "1", "minor": "2", "revision": "3", "hash": ""})
    expected = f"Client version: {VERSION}\nServer version: 1.2.3\n"
    assert (0, expected, "") == osmo("version")
    answer = json.loads(osmo("version", "-t", "json").output)
    assert {"client": VERSION, "server": "1.2.3"} == answer


def test_without_a_server_there_is_one_version(nowhere: Osmo):
    assert (0, f"Client version: {VERSION}\n", "") == nowhere("version")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_for_the_name_that_was_called(osmo: Osmo, shell: str):
    ended = osmo("completion", shell)
    assert (0, True) == (ended.code, "_OSMO_COMPLETE" in ended.output)


def test_a_shell_is_told_what_can_come_next():
    environment = {**os.environ, "_OSMO_COMPLETE": "bash_complete", "COMP_CWORD": "2"}
    code = "import sys; sys.argv[0] = 'osmo'; from bough.cli.main import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, "COMP_WORDS": "osmo pool sub"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (0, "plain,subpool\n") == (result.returncode, result.stdout)
