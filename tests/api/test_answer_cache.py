"""Lists that are sent again as they are: only while nothing has changed, and only to their user."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event

from bough.control.setup_cache import Kept
from bough.server import permissions
from bough.store import Store
from bough.store import settings as setting_store
from tests.api.house import House
from tests.store.racers import at_once

LIST = "/api/workflow?all_users=true&all_pools=true"
OWN = "/api/workflow?all_pools=true"
POOLS = "/api/pool_quota?all_pools=true"
TASKS = "/api/task?all_users=true&all_pools=true"
LISTS = (LIST, OWN, POOLS, TASKS)
TOKEN = "/api/auth/user/ann/access_token/test"


@pytest.fixture
def ann(team: House) -> House:
    team.user("ann", "osmo-team-user")
    return team


@contextmanager
def asked(store: Store) -> Iterator[list[str]]:
    """What is asked of the database meanwhile, by any thread, in statements of use cases."""
    sent: list[str] = []
    lock = threading.Lock()

    def note(_c: Any, _cursor: Any, text: str, *_more: Any) -> None:
        with lock:
            sent.append(text)

    event.listen(store.engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(store.engine, "before_cursor_execute", note)


@pytest.mark.parametrize("path", LISTS)
def test_the_same_question_is_answered_again_without_asking_the_database(ann, path):
    ann.submit(1)
    first = ann.ask("GET", path, user="ann")
    with asked(ann.site.store) as sent:
        second = ann.ask("GET", path, user="ann")

    assert [] == sent
    assert (200, first.content) == (second.status_code, second.content)
    assert dict(first.headers) == dict(second.headers)


@pytest.mark.parametrize("path", LISTS)
def test_who_asks_for_the_same_with_another_token_is_answered_anew(ann, path):
    ann.submit(1)
    ann.get(path)
    with asked(ann.site.store) as sent:
        found = ann.get(path, user="ann")

    assert sent
    if path == OWN:
        assert [] == found["workflows"]


def test_every_change_is_in_the_next_list(ann):
    names: list[str] = []
    for number in range(3):
        names.insert(0, ann.submit(1))
        assert names == [each["name"] for each in ann.get(LIST)["workflows"]]
        ann.send("POST", f"/api/workflow/{names[0]}/tag?add=tag-{number}")
        assert [f"tag-{number}"] == ann.get(LIST)["workflows"][0]["tags"]
        ann.send("POST", f"/api/workflow/{names[0]}/cancel")
        assert "FAILED_CANCELED" == ann.get(LIST)["workflows"][0]["status"]


def test_every_change_is_in_the_next_list_of_pools(ann):
    for quota in (90, 80):
        ann.pool("team", quota)
        assert (str(quota), "0") == ann.row()[:2]
    ann.run(5)
    assert ("80", "5", "75") == ann.row()


def test_a_change_by_another_server_is_in_the_next_list(ann, sqlite_files):
    ann.get(LIST)
    other = sqlite_files.open(str(ann.site.store.engine.url))
    with other.write() as connection:
        setting_store.put(connection, "anything", "else")
    other.close()
    with asked(ann.site.store) as sent:
        ann.get(LIST)

    assert sent


@pytest.mark.parametrize("path", LISTS)
def test_a_token_that_was_deleted_gets_no_list_that_was_kept(ann, path):
    ann.get(path, user="ann")
    ann.send("DELETE", TOKEN)

    assert 401 == ann.refused("GET", path, user="ann")[0]


def test_a_user_who_was_deleted_gets_no_list_that_was_kept(ann):
    ann.get(POOLS, user="ann")
    ann.send("DELETE", "/api/auth/user/ann")

    assert 401 == ann.refused("GET", POOLS, user="ann")[0]


@pytest.mark.parametrize("path", LISTS)
def test_a_token_that_has_expired_gets_no_list_that_was_kept(ann, path):
    ends_ms = ann.time.ms + 500
    with ann.site.store.write() as connection:
        connection.exec_driver_sql("UPDATE tokens SET expires_ms = ?", (ends_ms,))
        setting_store.raise_counter(connection, setting_store.ACCESS)
    ann.get(path, user="ann")
    ann.get(path, user="ann")
    ann.time.ms = ends_ms

    assert 401 == ann.refused("GET", path, user="ann")[0]


def test_times_are_never_older_than_a_second(ann):
    ann.submit(1)
    before = ann.get(LIST)["workflows"][0]["queued_time"]
    ann.time.ms += 1_000

    assert before + 1 == ann.get(LIST)["workflows"][0]["queued_time"]


def test_a_client_that_became_too_old_is_refused_a_list_that_was_kept(ann):
    headers = {"x-osmo-client-version": "6.0.0"}
    ann.get(LIST, headers=headers)
    ann.send(
        "PATCH",
        "/api/configs/service",
        {"configs_dict": {"cli_config": {"min_supported_version": "6.1.0"}}},
    )

    assert 400 == ann.refused("GET", LIST, headers=headers)[0]
    assert ann.get(LIST)


@pytest.mark.parametrize(
    ("path", "headers"),
    [("/api/configs/pool/team/subpool", {}), (LIST, {"x-osmo-client-version": "6.0.0"})],
)
def test_a_change_seen_while_a_request_is_admitted_does_not_make_the_event_loop_read(
    ann, path, headers, monkeypatch
):
    ann.get(path, headers=headers)
    known, admit = Kept.known_setup, permissions._admit_known
    admitted: list[tuple[bool, list[str]]] = []

    def known_until_now(kept: Kept) -> Any:
        found = known(kept)
        # By another thread, as soon as the question is answered.
        kept.expect(kept._seen + 1)
        return found

    def noted(*given: Any) -> bool:
        with asked(ann.site.store) as sent, monkeypatch.context() as patched:
            patched.setattr(Kept, "known_setup", known_until_now)
            admitted.append((admit(*given), sent))
        return admitted[-1][0]

    monkeypatch.setattr(permissions, "_admit_known", noted)
    ann.time.ms += 1_000
    ann.get(path, headers=headers)

    assert [(True, [])] == admitted


def test_a_refusal_is_not_kept(ann):
    path = "/api/workflow?pools=later"
    assert 404 == ann.refused("GET", path)[0]
    ann.pool("later", 1)

    assert [] == ann.get(path)["workflows"]


def test_who_sends_no_token_gets_no_list_that_was_kept(ann):
    ann.get(LIST)

    assert 401 == ann.refused("GET", LIST, user=None)[0]
    assert 401 == ann.refused("GET", LIST, user=None, headers={"authorization": "Basic x"})[0]


def test_with_more_bytes_than_are_kept_the_oldest_make_room(ann, monkeypatch):
    monkeypatch.setattr("bough.server.answer_cache.ALL_BYTES", 1)
    for path in (LIST, POOLS, LIST):
        assert 200 == ann.ask("GET", path).status_code
    answers = ann.application.state.kept_answers

    assert 1 == len(answers._answers)


@pytest.fixture
def on_postgresql(postgres) -> Iterator[House]:
    address = postgres.make()
    with House(postgres.open(address)) as house:
        house.pool("team", 100)
        house.user("ann", "osmo-team-user")
        yield house
    postgres.give_back(address)


@pytest.mark.parametrize("path", LISTS)
def test_on_postgresql_too_lists_are_kept_until_something_changes(on_postgresql, path):
    house = on_postgresql
    first = house.get(path, user="ann")
    questions: list[int] = []
    # PostgreSQL's own processes may change something at any time.
    while 0 not in questions and len(questions) < 20:
        with asked(house.site.store) as sent:
            assert first == house.get(path, user="ann")
        questions.append(len(sent))

    assert 0 in questions
    name = house.submit(1, user="ann")
    house.settle()
    assert name in str(house.get(LIST, user="ann"))
    assert first != house.get(path, user="ann")
    house.send("DELETE", TOKEN)
    assert 401 == house.refused("GET", path, user="ann")[0]


def test_many_who_ask_at_once_share_a_look_and_see_all_that_was_before(on_postgresql):
    house = on_postgresql
    for _ in range(5):
        name = house.submit(1)
        found = at_once(*[lambda: house.get(LIST)["workflows"][0]["name"]] * 8)

        assert [name] * 8 == list(found)


def test_the_answer_to_a_long_question_is_not_kept(ann):
    path = LIST + "&users=ann" * 120
    ann.ask("GET", path, user="ann")
    with asked(ann.site.store) as sent:
        assert 200 == ann.ask("GET", path, user="ann").status_code

    assert sent
