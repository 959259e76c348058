"""A submission asks the database little, and never counts on what is no longer so.

What it is checked against is kept from one request to the next, for as long as a counter in the
database stays the same; so a second server on the same database must never see it too late.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import msgspec
import pytest
from sqlalchemy import event

from bough.control.setup_cache import Kept, Setup, read_setup
from bough.control.workflows import read_submission
from bough.errors import BoughError, Conflict, NotFound, Refused, Unauthenticated
from tests.bench.crowd import TEXT
from tests.store.usecases import (
    Site,
    Store,
    access,
    authenticate,
    get_workflow,
    node_cordon,
    pools,
    settings,
    submit,
    tokens,
    users,
)
from tests.store.world import World, big_node, job

#: Without what begins and ends a transaction.
MOST = 6
_CONTROL = ("BEGIN", "SELECT set_config", "SAVEPOINT", "RELEASE", "COMMIT")


@contextmanager
def statements(store: Store) -> Iterator[list[str]]:
    """What this thread sends to the database meanwhile."""
    sent: list[str] = []
    asking = threading.get_ident()

    def note(_c: Any, _cursor: Any, text: str, *_more: Any) -> None:
        if threading.get_ident() == asking and not text.startswith(_CONTROL):
            sent.append(text)

    event.listen(store.engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(store.engine, "before_cursor_execute", note)


def request(site: Site, secret: str, pool: str) -> str:
    """All that a request to submit does, from the token to the answer."""
    actor = authenticate(site, secret, "127.0.0.1")
    assert access.resource_of_pool(site, pool) is not None
    sent = read_submission.Sent(TEXT)
    spec = read_submission.read_sent(site, actor, sent, read_submission.Additions())
    accepted = submit(site, actor, pool, spec)
    assert accepted.workflow is not None
    return accepted.workflow.workflow_id


def second(world: World) -> Site:
    """Another server on the same database."""
    return Site(world.site.store, world.time, world.site.ids, namespace=world.site.namespace)


@pytest.fixture
def secret(divided: World) -> str:
    divided.user("una", "osmo-team-user")
    made = tokens.create_token(
        divided.site, divided.admin, "t", user="una", expires_ms=divided.time.ms + 10**9
    )
    return made.secret


@pytest.mark.parametrize("pool", ["team", "team--a"])
def test_a_submission_is_six_statements_at_most(divided, secret, pool):
    site = divided.site
    counts: list[int] = []
    for number in range(1, 5):
        with statements(site.store) as sent:
            assert f"job-{number}" == request(site, secret, pool)
        counts.append(len(sent))

    # The first of all reads what is kept, and the first of each connection prepares it.
    assert MOST >= min(counts)
    made = get_workflow(site, divided.admin, "job-2").workflow
    assert ("una", pool) == (made.submitted_by, made.pool)


def test_a_larger_workflow_is_no_more_statements(divided):
    site, admin = divided.site, divided.admin
    counts: dict[int, list[int]] = {1: [], 40: []}
    for _ in range(4):
        for tasks, found in counts.items():
            with statements(site.store) as sent:
                submit(site, admin, "team--b", job(40, tasks=tasks))
            found.append(len(sent))

    assert min(counts[1]) == min(counts[40])


def content(setup: Setup) -> Setup:
    """A setup without its number, and without heartbeats, which do not count."""
    heard = {
        name: msgspec.structs.replace(each, last_heartbeat_ms=0)
        for name, each in setup.backends.items()
    }
    return msgspec.structs.replace(setup, version=0, backends=heard)


def changes(world: World) -> dict[str, Callable[[], object]]:
    """Everything that changes what a submission is checked against."""
    site, admin = world.site, world.admin
    return {
        "a pool is made": lambda: world.pool("other", 10),
        "a pool is changed": partial(
            pools.patch_pool, site, admin, "other", {"enable_maintenance": True}
        ),
        "a pool is renamed": partial(pools.rename_pool, site, admin, "other", "third"),
        "a pool is deleted": partial(pools.delete_pool, site, admin, "third"),
        "a subpool is made": lambda: world.create("d", 5),
        "a subpool is changed": lambda: world.update("d", 4),
        "a subpool is being deleted": lambda: (world.submit(1, "team--d"), world.delete("d")),
        "a subpool is drained": lambda: world.cancel(get_workflow(site, admin, "job-1").workflow),
        "settings": partial(settings.patch_workflow_settings, site, admin, {"max_num_tasks": 7}),
        "a node comes": lambda: _offer(world, big_node(100), big_node(50, "small")),
        "a node is cordoned": partial(
            node_cordon.set_cordoned, site, admin, "small", cordoned=True
        ),
        "a node goes": lambda: _offer(world, big_node(50, "small")),
    }


def _offer(world: World, *nodes: Any) -> None:
    world.backend.offer(nodes)
    world.settle()


def test_whatever_changes_is_seen_by_its_counter(divided):
    store = divided.site.store
    seen: list[str] = []
    for name, change in changes(divided).items():
        with store.read() as connection:
            before = read_setup(connection)
        change()
        with store.read() as connection:
            after = read_setup(connection)
        if content(before) != content(after):
            assert before.version < after.version, name
            seen.append(name)

    assert {"a pool is made", "a subpool is drained", "settings", "a node goes"} <= set(seen)


def test_plans_and_heartbeats_leave_what_is_kept(divided):
    site = divided.site
    with site.store.read() as connection:
        before = site.kept.setup(connection)
    divided.run(10)
    divided.time.pass_minutes(1)
    divided.settle()
    with site.store.read() as connection:
        assert before is site.kept.setup(connection)


def test_what_another_server_changed_counts_at_once(divided):
    here, there, admin = divided.site, second(divided), divided.admin
    submit(here, admin, "team--c", job(1))
    divided.delete("c")
    with pytest.raises(Conflict, match="team--c is DELETING"):
        submit(there, admin, "team--c", job(1))

    submit(there, admin, "team--a", job(30))
    divided.update("a", 20)
    with pytest.raises(Refused, match="20 GPUs guaranteed"):
        submit(there, admin, "team--a", job(30))

    pools.put_pools(here, admin, {"new": {"resources": {"gpu": {"guarantee": 0}}}})
    with pytest.raises(Refused, match="Pool new has 0 GPUs"):
        submit(there, admin, "new", job(1))
    pools.delete_pool(here, admin, "new")
    with pytest.raises(NotFound, match="Pool new not found"):
        submit(there, admin, "new", job(1))


def test_a_number_is_drawn_by_no_submission_that_failed(divided):
    submit(divided.site, divided.admin, "team--a", job(1))
    with pytest.raises(NotFound):
        submit(divided.site, divided.admin, "nowhere", job(1))
    divided.delete("b")
    with pytest.raises(Conflict):
        submit(divided.site, divided.admin, "team--b", job(1))

    accepted = submit(divided.site, divided.admin, "team--a", job(1))
    assert accepted.workflow is not None
    assert "job-2" == accepted.workflow.workflow_id


def test_rights_that_another_server_took_are_gone(divided, secret):
    here, there = divided.site, second(divided)
    assert ("osmo-default", "osmo-team-user") == authenticate(there, secret).roles

    users.change_roles(here, divided.admin, "una", remove=("osmo-team-user",))
    assert ("osmo-default",) == authenticate(there, secret).roles
    tokens.delete_token(here, divided.admin, "t", user="una")
    with pytest.raises(Unauthenticated, match="not known"):
        authenticate(there, secret)


def test_what_is_kept_of_a_token_ends_with_it(divided, secret):
    assert "una" == authenticate(divided.site, secret, "10.0.0.1").name
    assert "10.0.0.2" == authenticate(divided.site, secret, "10.0.0.2").origin
    divided.time.ms += 10**9
    with pytest.raises(Unauthenticated, match="has expired"):
        authenticate(divided.site, secret)


def test_an_unknown_token_is_asked_for_again(divided):
    with pytest.raises(Unauthenticated):
        authenticate(divided.site, "bough-secret-77")


def test_a_transaction_of_before_a_change_of_rights_keeps_nothing(divided, secret):
    """A reader that is slower than the change sees the old rights, and no one else does."""
    site, kept = divided.site, Kept()
    slow = Site(site.store, divided.time, site.ids, kept=kept)
    with site.store.read() as connection:
        actor = divided.admin
        kept.actor(connection, "key", lambda: (1, actor))
        users.change_roles(site, divided.admin, "una", remove=("osmo-team-user",))
        assert ("osmo-default",) == authenticate(slow, secret).roles
        other = msgspec.structs.replace(actor, name="other")
        assert (1, other) == kept.actor(connection, "key", lambda: (1, other))
    with site.store.read() as connection, pytest.raises(BoughError):
        kept.actor(connection, "key", _refuse)


def _refuse() -> Any:
    raise Conflict("nothing is kept")
