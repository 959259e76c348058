"""Submissions that need no thread of their own: kept together, and checked like all others."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import sqlalchemy as sa
from anyio import to_thread
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from bough.control.joined_submissions import Draft
from bough.control.pools import subpools
from bough.control.site import Site
from bough.control.workflows import read_submission, submission
from bough.model.access import Actor
from bough.model.workflow import Priority
from bough.server import awaited_submissions
from bough.server.awaited_submissions import AwaitedSubmissions
from bough.store import Store
from bough.store.submissions import NewSubmission
from tests.api.house import House, spec
from tests.store.racers import at_once

ADMIN = Actor("root", ("osmo-admin", "osmo-default"))
MANY = 12
PATH = "/api/pool/team--a/workflow"


class Disk:
    """Makes each commit take some time, so that others come meanwhile; counts, and may fail."""

    def __init__(self) -> None:
        self.commits = 0
        self.faults = 0

    def __call__(self, _connection: sa.Connection) -> None:
        self.commits += 1
        time.sleep(0.1)
        if self.faults:
            self.faults -= 1
            raise OperationalError("COMMIT", {}, OSError("the disk is full"))


@contextmanager
def slow_disk(store: Store) -> Iterator[Disk]:
    disk = Disk()
    event.listen(store.engine, "commit", disk)
    try:
        yield disk
    finally:
        event.remove(store.engine, "commit", disk)


@contextmanager
def threads_asked(house: House) -> Iterator[set[int]]:
    """The threads that ask the database meanwhile."""
    found: set[int] = set()

    def note(*_: object) -> None:
        found.add(threading.get_ident())

    event.listen(house.site.store.engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(house.site.store.engine, "before_cursor_execute", note)


@pytest.fixture
def known(divided: House, monkeypatch: pytest.MonkeyPatch) -> tuple[House, list[str]]:
    """A site where the same workflow was submitted before; the texts that threads have read."""
    divided.submit(1, "team--a")
    texts: list[str] = []
    read = read_submission.read_sent

    def note(site, actor, sent, *more, **options):
        texts.append(sent.text)
        return read(site, actor, sent, *more, **options)

    monkeypatch.setattr(read_submission, "read_sent", note)
    return divided, texts


def names(house: House) -> list[str]:
    found = house.get("/api/workflow?all_users=true&all_pools=true&limit=100")
    return sorted((each["name"] for each in found["workflows"]), key=_number)


def test_many_at_once_share_commits_and_have_no_threads_of_their_own(known):
    house, texts = known
    pools = ("team--a", "team--b", "team")
    with slow_disk(house.site.store) as disk:
        found = at_once(*(lambda n=n: house.submit(1, pools[n % 3]) for n in range(MANY)))

    assert [f"job-{number}" for number in range(1, MANY + 2)] == names(house)
    assert names(house)[1:] == sorted(map(str, found), key=_number)
    assert ([], True) == (texts, disk.commits < MANY)
    for number, name in enumerate(map(str, found)):
        assert pools[number % 3] == house.get(f"/api/workflow/{name}")["pool"]


def test_the_event_loop_itself_asks_the_database_nothing(known):
    house, texts = known
    with threads_asked(house) as asked, house._client.portal() as portal:
        house.submit(1, "team--a")
        event_loop = portal.call(threading.get_ident)

    assert ([], True) == (texts, bool(asked))
    assert event_loop not in asked


def test_what_could_not_be_committed_is_answered_so_and_not_done_again(known):
    house, texts = known
    with slow_disk(house.site.store) as disk:
        disk.faults = 1
        codes = at_once(
            *[lambda: house.ask("POST", PATH, json={"file": spec()}).status_code] * MANY
        )

    assert {200, 503} == set(codes)
    assert 1 + codes.count(200) == len(names(house))
    assert [] == texts


def test_what_another_server_changed_counts_at_once(known):
    house, _ = known
    other = Site(house.site.store, house.time, namespace="ns")
    subpools.delete_subpool(other, ADMIN, "team", "b")
    found = house.refused("POST", "/api/pool/team--b/workflow", {"file": spec()})
    assert (409, True) == (found[0], "team--b is ARCHIVED" in found[1]), found
    subpools.delete_subpool(other, ADMIN, "team", "a")

    assert 409 == house.refused("POST", PATH, {"file": spec()})[0]
    assert ["job-1"] == names(house)


def test_a_setup_that_changes_before_the_commit_counts(known):
    """It was checked before, and each is checked again in its transaction."""
    house, texts = known
    other = Site(house.site.store, house.time, namespace="ns")
    keep = house.site.joined_submissions.keep
    drafts: list[Draft] = []

    def late(store, batch, wake):
        if not drafts:
            subpools.delete_subpool(other, ADMIN, "team", "a")
        drafts.extend(batch)
        return keep(store, batch, wake)

    house.site.joined_submissions.keep = late
    status, message = house.refused("POST", PATH, {"file": spec()})

    assert (409, True) == (status, "team--a is DELETING" in message)
    assert ["job-1"] == names(house)
    # First without a thread, and then with one.
    assert (1, True) == (len(texts), bool(drafts))


def test_a_revoked_token_and_a_lost_role_end_at_once(known):
    house, _ = known
    house.user("ann", "osmo-team-user")
    house.submit(1, "team--a", user="ann")
    house.send("DELETE", "/api/auth/user/ann/roles/osmo-team-user")
    assert 403 == house.refused("POST", PATH, {"file": spec()}, user="ann")[0]
    house.ask("DELETE", "/api/auth/user/ann/access_token/test")
    assert 401 == house.refused("POST", PATH, {"file": spec()}, user="ann")[0]
    assert ["job-1", "job-2"] == names(house)


def test_a_limit_for_each_user_holds_for_many_at_once(known):
    house, _ = known
    house.send(
        "PATCH", "/api/configs/workflow", {"configs_dict": {"max_num_workflows_per_user": 4}}
    )
    codes = at_once(*[lambda: house.ask("POST", PATH, json={"file": spec()}).status_code] * MANY)

    assert (3, 4) == (codes.count(200), len(names(house)))


def test_a_full_disk_refuses_what_is_known_too(known):
    house, _ = known
    full = replace(house.site, refusal=lambda: "The disk is full.")
    house.authenticator.site = full
    status, message = house.refused("POST", PATH, {"file": spec()})
    house.authenticator.site = house.site

    assert (503, "The disk is full.") == (status, message)


@pytest.mark.parametrize(
    ("query", "body"),
    [
        ("dry_run=true", {}),
        ("validation_only=true", {}),
        ("afterok=job-1", {}),
        ("array=0-1", {}),
        ("", {"set_variables": ["a=1"]}),
        ("", {"uploaded_templated_spec": "x: {{ y }}"}),
    ],
)
def test_what_asks_for_more_has_a_thread(known, query, body):
    house, texts = known
    house.send("POST", f"{PATH}?{query}", {"file": spec(), **body})

    assert [spec()] == texts


def test_a_bad_addition_is_refused_as_it_is_with_a_thread(known):
    house, _ = known
    for query, fault in (
        ("label=nothing", "label must be like key=value"),
        ("label=%20=1", "The workflow cannot have this label"),
        ("env_vars=1=2", "The environment cannot have"),
        ("after=No%20Name", "after: "),
        ("workflow_id=", "Send either a workflow in the body or a workflow_id"),
        ("app_uuid=", "app_uuid: there is no app ''"),
    ):
        status, message = house.refused("POST", f"{PATH}?{query}", {"file": spec()})
        assert (400, True) == (status, message.startswith(fault)), message
    assert ["job-1"] == names(house)


def test_a_request_that_ends_early_takes_no_other_with_it(known):
    house, _ = known
    awaited = AwaitedSubmissions(house.site)

    async def run() -> list[str]:
        tasks = [asyncio.create_task(awaited.keep(draft(house))) for _ in range(MANY)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        kept = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(kept[0], asyncio.CancelledError)
        await asyncio.gather(*awaited._tasks)
        assert {} == awaited._waiting
        return [each.workflow.workflow_id for each in kept if isinstance(each, NewSubmission)]

    found = asyncio.run(run())
    assert [f"job-{number}" for number in range(3, MANY + 2)] == sorted(found, key=_number)


def test_one_that_comes_as_the_last_one_is_answered_is_kept(known):
    house, _ = known
    awaited = AwaitedSubmissions(house.site)

    async def client() -> list[object]:
        return [await awaited.keep(draft(house)) for _ in range(4)]

    async def run() -> list[list[object]]:
        return await asyncio.gather(*(client() for _ in range(3)))

    found = [each for kept in asyncio.run(run()) for each in kept]
    assert [f"job-{number}" for number in range(2, 14)] == sorted(
        (each.workflow.workflow_id for each in found if isinstance(each, NewSubmission)),
        key=_number,
    )
    assert {} == awaited._waiting


def test_one_that_comes_after_all_others_were_written_is_written_too(known):
    house, _ = known
    awaited = AwaitedSubmissions(house.site)

    async def run() -> list[object]:
        found: list[object] = []
        for _ in range(2):
            found.append(await asyncio.wait_for(awaited.keep(draft(house)), 30))
            await asyncio.gather(*awaited._tasks)
        return found

    assert all(isinstance(each, NewSubmission) for each in asyncio.run(run()))


def test_where_no_thread_can_begin_each_is_done_alone_and_later_ones_are_written(
    known, monkeypatch
):
    house, _ = known
    awaited = AwaitedSubmissions(house.site)
    really, refusals = to_thread.run_sync, [1]

    async def run_sync(*arguments: object) -> object:
        if refusals:
            refusals.pop()
            raise RuntimeError("can't start new thread")
        return await really(*arguments)

    monkeypatch.setattr(awaited_submissions.to_thread, "run_sync", run_sync)

    async def run() -> list[object]:
        first = [asyncio.create_task(awaited.keep(draft(house))) for _ in range(3)]
        found = await asyncio.wait_for(asyncio.gather(*first), 30)
        return [*found, await asyncio.wait_for(awaited.keep(draft(house)), 30)]

    *alone, later = asyncio.run(run())
    assert ([None] * 3, True) == (alone, isinstance(later, NewSubmission))
    assert {} == awaited._waiting


def test_a_server_that_stops_leaves_none_waiting(known):
    house, _ = known
    awaited = AwaitedSubmissions(house.site)

    async def run() -> list[object]:
        tasks = [asyncio.create_task(awaited.keep(draft(house))) for _ in range(3)]
        await asyncio.sleep(0)
        for each in list(awaited._tasks):
            each.cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    assert {asyncio.CancelledError} == {type(each) for each in asyncio.run(run())}
    assert {} == awaited._waiting


def draft(house: House) -> Draft:
    sent, more = read_submission.Sent(spec()), read_submission.Additions()
    found = submission.draft_known(house.site, ADMIN, "team--a", sent, more, Priority.NORMAL)
    assert found is not None
    return found.draft


def _number(identifier: str) -> int:
    return int(identifier.rpartition("-")[2])
