"""A site always has an administrator who can log in, and recovery makes a new token."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from threading import Barrier, BrokenBarrierError, local

import pytest

from bough.control.people import administrators
from bough.control.people.access import authenticate, is_admin
from bough.control.site import Site
from bough.control.startup import start
from bough.store import Store, people
from bough.store.migration import upgrade
from tests.api.house import House
from tests.api.served import Served, run_commands

DAY_MS = 24 * 60 * 60 * 1_000
LAST = (
    "This would take away the last valid token of an administrator, so no one could administer "
    "the site any more; make another one first."
)
#: Every request that could take away the last one.
WAYS = {
    "own token": ("DELETE", "/api/auth/access_token/first", None),
    "token": ("DELETE", "/api/auth/user/admin/access_token/first", None),
    "user": ("DELETE", "/api/auth/user/admin", None),
    "role": ("DELETE", "/api/auth/user/admin/roles/osmo-admin", None),
    "roles": ("PATCH", "/api/auth/user/admin", {"remove": ["osmo-admin"]}),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_last_administrator_cannot_be_taken_away(house, way):
    method, path, body = WAYS[way]

    assert (409, LAST) == house.refused(method, path, body)

    assert 200 == house.ask("GET", "/api/queues").status_code


@pytest.mark.parametrize("way", WAYS)
def test_one_who_is_not_the_last_can_be_taken_away(house, way):
    house.user("ann", "osmo-admin")
    method, path, body = WAYS[way]

    house.send(method, path, body)

    assert 200 == house.ask("GET", "/api/queues", user="ann").status_code
    assert house.ask("GET", "/api/queues").status_code in (401, 403)


def test_an_administrator_without_a_token_or_with_a_narrow_one_does_not_count(house):
    house.pool("team", 1)
    house.send("POST", "/api/auth/user", {"id": "ann", "roles": ["osmo-admin", "osmo-team-user"]})
    house.send("POST", "/api/auth/user/ann/access_token/narrow?roles=osmo-team-user")

    for method, path, body in WAYS.values():
        assert (409, LAST) == house.refused(method, path, body)


def test_a_token_that_expires_soon_is_not_left_as_the_last(house):
    house.time.ms = 1_800_000_000_000
    house.send("POST", "/api/auth/access_token/short?expires_at=2027-01-20")

    status, message = house.refused("DELETE", "/api/auth/access_token/first")

    assert (409, True) == (status, "the last one expires at 2027-01-20 00:00 UTC" in message)
    # Others than the last one can be deleted at any time.
    house.send("DELETE", "/api/auth/access_token/short")


def test_of_two_who_take_away_each_other_at_once_one_is_left(postgres, monkeypatch):
    address = postgres.make()
    with House(postgres.open(address)) as house:
        house.user("ann", "osmo-admin")
        house.user("ben", "osmo-admin")
        house.send("DELETE", "/api/auth/user/admin", user="ann")
        _let_both_look_before_either_is_done(monkeypatch)

        def remove(name, other):
            return house.ask("DELETE", f"/api/auth/user/{other}", user=name).status_code

        with ThreadPoolExecutor() as pool:
            done = sorted(pool.map(remove, ("ann", "ben"), ("ben", "ann")))
        assert 200 == done[0]
        assert done[1] > 400
    postgres.give_back(address)


def _let_both_look_before_either_is_done(monkeypatch):
    """Where nothing keeps them apart, both see the other's token as the one that is left."""
    look, both, looked = people.last_expiry, Barrier(2), local()

    def last_expiry(connection, role):
        found = look(connection, role)
        looked.times = getattr(looked, "times", 0) + 1
        if looked.times % 2 == 0:
            with suppress(BrokenBarrierError):
                both.wait(1)
        return found

    monkeypatch.setattr(people, "last_expiry", last_expiry)


def test_a_start_tells_of_a_last_token_that_expires_soon_and_of_none(house):
    house.time.ms += 3630 * DAY_MS
    (warning,) = start(house.site, default_pool=False).warnings
    assert warning.startswith("The last token of an administrator expires at ")

    house.time.ms += 30 * DAY_MS
    (warning,) = start(house.site, default_pool=False).warnings
    assert "No administrator has a valid token; `bough admin recover` makes one." == warning


# The way back


def recover(data, *options):
    ((code, said, errors),) = run_commands(("admin", "recover", "--data", str(data), *options))
    return subprocess.CompletedProcess((), code, said, errors)


@pytest.mark.served
def test_one_with_the_data_folder_gets_back_in_with_and_without_a_server(tmp_path):
    data = tmp_path / "data"
    with Served(data) as server:
        _forget_every_token(data)
        assert 401 == server.ask("GET", "/api/queues").status_code

        ended = recover(data)

        assert (0, "") == (ended.returncode, ended.stderr)
        (path,) = data.glob("admin-token-recovered-*")
        assert str(path) in ended.stdout
        secret = path.read_text().strip()
        assert secret not in ended.stdout
        assert 0o600 == stat.S_IMODE(os.stat(path).st_mode)
        shutil.copy(path, data / "admin-token")
        assert 200 == server.ask("GET", "/api/queues").status_code
        (entry,) = [
            each
            for each in server.get("/api/audit")["entries"]
            if each["action"] == "token:Recover"
        ]
        assert "on the server's machine" in entry["origin"]
        assert 0 == server.stop()
    ended = recover(data, "-t", "json")

    answer = json.loads(ended.stdout)
    assert ("admin", True) == (answer["user"], answer["file"].endswith("-2"))
    with Served(data) as server:
        shutil.copy(answer["file"], data / "admin-token")
        assert 200 == server.ask("GET", "/api/queues").status_code


def test_recovery_with_a_database_of_its_own(tmp_path, postgres):
    address = postgres.make()
    (tmp_path / "data").mkdir()
    administrators.ensure_admin(Site(postgres.open(address)))

    ended = recover(tmp_path / "data", "--database", address)

    assert 0 == ended.returncode, ended.stderr
    (path,) = (tmp_path / "data").iterdir()
    site = Site(postgres.open(address))
    assert is_admin(site, authenticate(site, path.read_text().strip()))
    postgres.give_back(address)


def test_recovery_makes_no_one_an_administrator_who_has_the_name_by_chance(house):
    house.user("chief", "osmo-admin")
    house.send("DELETE", "/api/auth/user/admin", user="chief")
    house.send("POST", "/api/auth/user", {"id": "admin", "roles": []}, user="chief")

    made = administrators.recover(house.site, lambda _name, _secret: None, "here")

    assert "admin-2" == made.user
    assert [] == house.get("/api/auth/user/admin", user="chief")["roles"]


def test_recovery_that_cannot_write_its_file_changes_nothing(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    store = Store.open(data / "bough.db")
    upgrade(store)
    administrators.ensure_admin(Site(store))
    store.close()
    before = _rows(data, "tokens")
    os.mkdir(data / f"admin-token-recovered-{_today()}")

    ended = recover(data)

    assert ended.returncode != 0
    assert re.search(r"admin-token-recovered-\d+ cannot be written: ", ended.stderr)
    assert before == _rows(data, "tokens")


def test_a_folder_without_a_database_is_no_place_to_recover(tmp_path):
    ended = recover(tmp_path)

    assert ended.returncode != 0
    assert "is not a server's data folder" in ended.stderr
    assert [] == list(tmp_path.iterdir())


def test_an_older_database_is_left_as_it_is(tmp_path):
    store = Store.open(tmp_path / "bough.db")
    upgrade(store, "0003")
    store.close()

    ended = recover(tmp_path)

    assert ended.returncode != 0
    assert "The database has revision 0003" in ended.stderr


@pytest.mark.served
def test_a_start_prints_the_name_of_the_tokens_file_and_never_the_token(tmp_path):
    # Without an example, a test of the program itself looks at that.
    data = tmp_path / "data"
    with Served(data, "--example") as server:
        token = server.token
        server.stop()
        printed = server.printed()
        assert str(data / "admin-token") in printed
        assert token not in printed + server.log


def _forget_every_token(data):
    with sqlite3.connect(data / "bough.db") as connection:
        connection.execute("DELETE FROM token_roles")
        connection.execute("DELETE FROM tokens")


def _rows(data, table):
    with sqlite3.connect(data / "bough.db") as connection:
        return connection.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608


def _today():
    return datetime.now(UTC).strftime("%Y%m%d")
