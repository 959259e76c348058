"""How far a database is: another moment after every commit, whatever it changed."""

from __future__ import annotations

import socket
import threading

import pytest
import sqlalchemy as sa

from bough.control.people import users
from bough.errors import Conflict, Unavailable
from bough.store import Store
from bough.store import settings as setting_store
from bough.store.change_detection import Moment, PostgresMoments
from tests.warm import Program

pytestmark = pytest.mark.postgresql


def now(store: Store) -> Moment:
    assert store.moments is not None
    return store.moments.now()


def test_while_nothing_is_committed_the_moment_stays_the_same(team):
    store = team.site.store
    before = now(store)
    with store.read() as connection:
        setting_store.counted(connection)

    assert before == now(store)


def test_every_commit_makes_another_moment(team):
    store = team.site.store
    seen = [now(store)]
    for number in range(3):
        with store.write() as connection:
            setting_store.put(connection, "anything", number)
        seen.append(now(store))

    assert 4 == len({each.state for each in seen})
    assert 1 == len({(each.access, each.setup) for each in seen})


def test_what_is_undone_leaves_the_counters_as_they_were(team):
    store = team.site.store
    before = now(store)

    def fail() -> None:
        with store.write() as connection:
            setting_store.raise_counter(connection, setting_store.ACCESS)
            raise Conflict("no")

    with pytest.raises(Conflict):
        fail()

    assert before[1:] == now(store)[1:]


def test_counters_of_rights_and_of_the_setup_are_those_that_a_transaction_sees(team):
    store, site = team.site.store, team.site
    for change in (
        lambda: users.create_user(site, team.admin, "una", ("osmo-team-user",)),
        lambda: team.pool("team", 50),
    ):
        change()
        with store.read() as connection:
            seen = setting_store.counted(connection)

        assert (seen.access, seen.setup) == now(store)[1:]


def test_a_commit_of_another_process_is_noticed(team, database):
    store = team.site.store
    before = now(store)
    change = (
        "import sys; from bough.store import Store, settings\n"
        "store = Store.open(sys.argv[1])\n"
        "with store.write() as connection: settings.put(connection, 'anything', 'else')\n"
        "store.close()\n"
        "print('changed')\n"
    )
    assert "changed\n" == Program(change, database).output()

    assert before.state != now(store).state


def test_a_closed_connection_is_opened_again_and_says_nothing_older(team):
    store = team.site.store
    before = now(store)
    assert store.moments is not None
    store.moments.close()
    with store.write() as connection:
        setting_store.raise_version(connection)

    assert before.setup + 1 == now(store).setup
    assert before.state != now(store).state


def test_a_connection_that_the_database_ended_is_replaced(team):
    store = team.site.store
    if store.is_sqlite:
        pytest.skip("SQLite is within this process")
    before = now(store)
    with store.engine.begin() as connection:
        connection.execute(
            sa.text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )

    assert before[1:] == now(store)[1:]


def test_a_database_that_does_not_answer_holds_up_neither_other_questions_nor_the_end():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        url = sa.make_url(f"postgresql+psycopg://x@127.0.0.1:{port}/x?connect_timeout=4")
        moments = PostgresMoments(sa.create_engine(url).dialect, url)
        said: list[str] = []
        first = threading.Thread(target=lambda: said.append(refusal(moments)))
        first.start()
        with silent.accept()[0]:
            assert "earlier question" in refusal(moments)
            moments.close()
            first.join()
    assert "The database does not answer" in said[0]


def refusal(moments: PostgresMoments) -> str:
    with pytest.raises(Unavailable) as raised:
        moments.now()
    return raised.value.message
