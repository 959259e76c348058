"""Revoked is revoked: passes, requests and open streams, whatever gets the old name later."""

from __future__ import annotations

import threading

import pytest

from bough.control.people import key_rotation
from bough.server.stream_access import StreamAccess
from bough.store.dump import DumpHead, load_dump, write_dump
from tests.api.house import House, prepare_team, spec
from tests.api.writing import WritingBackend

DAY_MS = 24 * 60 * 60 * 1_000
#: 2026-01-05 10:05:00 UTC.
START = 1_767_607_500_000
#: No stream gets so old in a test.
NEVER_S = 1e9
TOKEN = "/api/auth/user/ann/access_token/test"


@pytest.fixture
def house(sqlite_files, monkeypatch):
    for module in ("streams", "system"):
        monkeypatch.setattr(f"bough.server.routes.{module}.StreamAccess", _Opened)
    address, secret = sqlite_files.make_prepared(prepare_team.__name__, prepare_team)
    with House(sqlite_files.open(address), secret=secret, backend=WritingBackend) as made:
        made.user("ann", "osmo-team-user")
        yield made
    sqlite_files.give_back(address)


@pytest.fixture
def told_only(monkeypatch):
    """Streams ask again because something changed, not because time went by."""
    monkeypatch.setattr("bough.server.stream_access.ASK_AGAIN_S", NEVER_S)


def make_pass(house):
    body = {"token": house.secrets["ann"]}
    house.secrets["pass"] = house.send("POST", "/api/auth/jwt/access_token", body)["token"]


def make_token(house):
    house.secrets["ann"] = house.send("POST", TOKEN)


def rotate(house):
    house.send("DELETE", TOKEN)
    make_token(house)


def recreate_user(house):
    house.send("DELETE", "/api/auth/user/ann")
    house.user("ann", "osmo-team-user")


def rotate_key(house):
    key_rotation.rotate(house.site)


def restore(house, path):
    """Put back all that was there, as of now."""

    def head(revision: str, numbers: dict[str, int]) -> DumpHead:
        return DumpHead("1", "", revision, numbers)

    def quiet(_table: str, _rows: int) -> None:
        pass

    with path.open("wb") as file:
        write_dump(house.site.store, file, head, quiet)
    load_dump(house.site.store, path, "restored", replace=True, tell=quiet)


def test_passes_end_with_a_rotation_of_the_key_and_with_a_restore(house, tmp_path):
    for change in (rotate_key, lambda house: restore(house, tmp_path / "dump")):
        make_pass(house)
        assert 200 == house.ask("GET", "/api/pool", user="pass").status_code

        change(house)

        assert 401 == house.ask("GET", "/api/pool", user="pass").status_code
        assert 200 == house.ask("GET", "/api/pool", user="ann").status_code


@pytest.mark.parametrize("change", [rotate, recreate_user])
def test_a_pass_does_not_come_back_with_the_name_of_its_token_or_user(house, change):
    make_pass(house)
    assert 200 == house.ask("GET", "/api/pool", user="pass").status_code

    change(house)

    assert 401 == house.ask("GET", "/api/pool", user="pass").status_code
    assert 200 == house.ask("GET", "/api/pool", user="ann").status_code
    make_pass(house)
    assert 200 == house.ask("GET", "/api/pool", user="pass").status_code


def test_a_pass_that_names_no_identity_is_refused(house):
    """As a server of before made them."""
    from bough.server import authenticator

    now_s = house.time.ms // 1_000
    claims = {"sub": "ann", "name": "ann", "tok": "test", "exp": now_s + 60, "iat": now_s}
    parts = (authenticator._HEADER, claims)
    signed = ".".join(authenticator._encoded(authenticator.msgspec.json.encode(p)) for p in parts)
    house.secrets["old"] = f"{signed}.{house.authenticator._signature(signed)}"

    refused = house.refused("GET", "/api/pool", user="old")

    assert (401, "The token cannot be read; log in again.") == refused


def take_role(house):
    house.send("DELETE", "/api/auth/user/ann/roles/osmo-team-user")


def delete_token(house):
    house.send("DELETE", TOKEN)


def delete_user(house):
    house.send("DELETE", "/api/auth/user/ann")


ENDS = {
    take_role: "(access denied)",
    delete_token: "(The token is not known; it may have been deleted.)",
    rotate: "(The token is not known; it may have been deleted.)",
    delete_user: "(The token is not known; it may have been deleted.)",
    recreate_user: "(The token is not known; it may have been deleted.)",
}


@pytest.mark.usefixtures("told_only")
@pytest.mark.parametrize(
    ("change", "what", "shown"),
    [
        *((change, "logs", "ann") for change in ENDS),
        *((change, "events", "pass") for change in ENDS),
        (take_role, "error_logs", "pass"),
    ],
)
def test_a_stream_about_a_workflow_ends_with_the_right_to_it(house, change, what, shown):
    make_pass(house)
    name = _writing(house)
    with _Watched(house, f"/api/workflow/{name}/{what}", shown) as stream:
        change(house)
        lines = stream.end()

    assert ENDS[change] == lines[-1]


@pytest.mark.usefixtures("told_only")
@pytest.mark.parametrize("change", [delete_token, rotate, delete_user, recreate_user])
def test_the_stream_of_all_events_ends_with_the_token(house, change):
    with _Watched(house, "/api/events?after=0", "ann") as stream:
        change(house)
        assert stream.end()


@pytest.mark.usefixtures("told_only")
def test_the_stream_of_all_events_shows_nothing_of_a_pool_after_the_role_is_taken(house):
    house.submit(1, text=spec(1, name="before"))
    with _Watched(house, "/api/events?after=0", "ann") as stream:
        stream.asks(2)
        take_role(house)
        house.submit(1, text=spec(1, name="after"))
        stream.asks(3)
        house.send("DELETE", TOKEN)
        text = "\n".join(stream.end())

    assert "before-1" in text
    assert "after-1" not in text


def test_a_stream_ends_when_its_token_expires(house, monkeypatch):
    monkeypatch.setattr("bough.server.stream_access.ASK_AGAIN_S", 0.0)
    name = _writing(house)
    with _Watched(house, f"/api/workflow/{name}/logs", "ann") as stream:
        house.time.ms += 32 * DAY_MS
        assert "(The token test has expired; make a new one.)" == stream.end()[-1]


@pytest.mark.usefixtures("told_only")
def test_a_stream_goes_on_when_others_lose_their_rights(house):
    house.user("ben", "osmo-team-user")
    name = _writing(house)
    with _Watched(house, f"/api/workflow/{name}/logs", "ann") as stream:
        house.send("DELETE", "/api/auth/user/ben")
        (attempt,) = house.backend.written
        house.backend.write(attempt, START + 1, "still here")
        house.backend.whole.add(attempt)
        house.finish(name)
        assert stream.end()[-1].endswith("still here")


def _writing(house):
    """A workflow that runs and has written a line."""
    name = house.run(1)
    task = house.get(f"/api/workflow/{name}")["groups"][0]["tasks"][0]
    house.backend.write(f"{task['task_uuid']}/{task['retry_id']}", START, "one", error=True)
    return name


class _Opened(StreamAccess):
    """Counts how often a stream was let go on."""

    checks = threading.Semaphore(0)

    def check(self):
        actor = super().check()
        self.checks.release()
        return actor


class _Watched:
    """A stream that a thread reads; it is open once this is entered."""

    def __init__(self, house, path, user):
        self._house = house
        self._path = path
        self._user = user
        self._lines: list[str] = []
        self._checks = _Opened.checks = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self):
        self._thread.start()
        self.asks(1)
        return self

    def __exit__(self, *_):
        self._house.engine.stopping.set()
        self._thread.join(30)

    def _read(self):
        self._lines = self._house.ask("GET", self._path, user=self._user).text.splitlines()

    def asks(self, times):
        """Wait until it was let go on so many times more."""
        assert all(self._checks.acquire(timeout=30) for _ in range(times))

    def end(self):
        """What was read, once it has ended by itself."""
        self._thread.join(20)
        assert not self._thread.is_alive(), "the stream goes on"
        return self._lines
