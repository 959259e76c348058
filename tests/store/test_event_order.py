"""Followers of events miss none on PostgreSQL, where a lower number may be committed later."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
import sqlalchemy as sa

from bough.control.records import notifications
from bough.control.records.event_stream import follow
from bough.model.change_record import EventKind, StoredEvent
from bough.store import changed_subjects as change_store
from tests.store.usecases import Store, change_history, history_export, query, record_store
from tests.store.world import World

pytestmark = pytest.mark.postgresql


@pytest.fixture
def world(postgres):
    address = postgres.make()
    world = World(postgres.open(address))
    world.pool("team", 100)
    world.settle()
    yield world
    world.close()
    postgres.give_back(address)


def happen(connection: sa.Connection, subject: str) -> None:
    event = StoredEvent(EventKind.WORKFLOW_STATUS, 0, subject)
    record_store.add_events(connection, [event])


@contextmanager
def drawn_first(store: Store) -> Iterator[None]:
    """`late` draws its number first and is committed last, and `early` began to write before it."""
    with ExitStack() as late:
        with store.write() as early:
            early.exec_driver_sql("SELECT txid_current()")
            later = late.enter_context(store.write())
            happen(later, "late")
            happen(early, "early")
        yield


class Follower:
    """One that looks from time to time."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._number = change_history.last_event(world.site)
        self.told: list[str] = []

    def look(self) -> list[str]:
        """All that it was told so far."""
        found, self._number = follow(self._world.site, self._world.admin, self._number)
        self.told += [each.subject for each in found]
        return self.told


def test_a_follower_is_told_of_an_event_that_is_committed_after_a_later_one(world):
    follower = Follower(world)
    with drawn_first(world.site.store):
        follower.look()
    assert ["late", "early"] == follower.look()


def test_one_that_begins_to_follow_meanwhile_is_told_of_it(world):
    with drawn_first(world.site.store):
        follower = Follower(world)
    assert "late" in follower.look()


def test_the_loop_sees_what_is_committed_after_a_later_event(world):
    store, seen = world.site.store, []
    with store.read() as connection:
        mark, _ = change_store.look(connection, None)

    def look(mark: change_store.Mark) -> change_store.Mark:
        with store.read() as connection:
            mark, found = change_store.look(connection, mark)
        assert found is not None
        seen.extend(sorted(each.subject for each in found))
        return mark

    with drawn_first(store):
        # The second time nothing is new, and the first event is still to come.
        mark = look(look(mark))
    look(mark)
    assert ["early", "late"] == seen


def test_users_are_notified_of_what_is_committed_after_a_later_event(world, monkeypatch):
    read: list[str] = []

    def note(_site: object, _connection: object, events: list[StoredEvent]) -> Iterator[None]:
        read.extend(each.subject for each in events)
        return iter(())

    monkeypatch.setattr(notifications, "_notifications", note)
    notifications.collect(world.site)
    with drawn_first(world.site.store):
        notifications.collect(world.site)
    notifications.collect(world.site)
    assert ["late", "early"] == read


def test_a_follower_goes_on_while_something_is_always_open(world):
    """Each transaction is committed when the next one has written already."""
    follower, store = Follower(world), world.site.store
    open_one = ExitStack()
    happen(open_one.enter_context(store.write()), "0")
    for number in range(1, 6):
        later = ExitStack()
        happen(later.enter_context(store.write()), str(number))
        open_one.close()
        open_one = later
        told = follower.look()
        assert told == [str(each) for each in range(len(told))]
        assert len(told) >= number - 1
    open_one.close()
    assert [str(each) for each in range(6)] == follower.look()


def test_no_number_is_drawn_before_the_transaction_has_its_own(world):
    """Nothing else would tell a reader that this transaction is open."""
    with world.site.store.engine.connect() as connection:
        default = connection.exec_driver_sql(
            "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef "
            "WHERE adrelid = 'events'::regclass AND adnum = 1"
        ).scalar_one()
        connection.exec_driver_sql(f"SELECT {default}")
        own = connection.exec_driver_sql("SELECT txid_current_if_assigned()").scalar_one()
    assert own is not None


def test_events_of_one_that_does_not_say_when_it_began_are_told_in_order(world):
    """As those of a server of an earlier version, while it is replaced."""
    follower, engine = Follower(world), world.site.store.engine
    with engine.connect() as late:
        with engine.begin() as early:
            early.exec_driver_sql("SELECT txid_current()")
            happen(late, "late")
            happen(early, "early")
        assert [] == follower.look()
        late.commit()
    assert ["late", "early"] == follower.look()


def test_one_that_does_not_say_when_it_began_sends_no_follower_back_to_the_beginning(world):
    store = world.site.store
    with store.write() as connection:
        happen(connection, "before")
    with store.engine.begin() as earlier_version:
        happen(earlier_version, "in between")
    with store.write() as open_one:
        open_one.exec_driver_sql("SELECT txid_current()")
        follower = Follower(world)
    assert set(follower.look()) <= {"before", "in between"}


def test_all_events_of_a_finished_workflow_are_told_whatever_else_is_open(world):
    workflow = world.run(1)
    with world.site.store.write() as other:
        other.exec_driver_sql("SELECT txid_current()")
        world.finish(workflow)
        told = query.get_events(world.site, world.admin, workflow.workflow_id)
        assert "COMPLETED" == told[-1].message
        world.time.ms += 1
        page = history_export.read_page(
            world.site, world.admin, world.site.clock.now_ms(), None, 10
        )
    (exported,) = [each["events"] for each in page.workflows]
    assert "COMPLETED" == exported[-1]["message"]
