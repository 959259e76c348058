"""The history of a site, to be kept elsewhere: finished workflows page by page, and dropped.

Pages are in the order in which workflows ended, whether these are archived or not. That order
never changes, and each page is read at one moment: so none is missed and none comes twice,
although the loop moves workflows to the archive meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import merge
from itertools import islice
from typing import Any

import msgspec
import sqlalchemy as sa

from bough.control.change_recording import audit
from bough.control.people.access import authorise
from bough.control.site import Site
from bough.errors import Invalid, NotFound
from bough.model.access import Action, Actor
from bough.model.past_workflow import HistoryPlace, PastWorkflow
from bough.store import archive as archive_store
from bough.store import change_records as record_store
from bough.store import workflows as workflow_store

#: A page has at most so many workflows; and it ends once it has so many attempts.
MOST_WORKFLOWS = 200
MOST_ATTEMPTS = 2_000
#: How many are dropped in one transaction.
MOST_DROPPED = 200
#: How many events of one workflow are exported; no workflow has nearly as many.
MOST_EVENTS = 10_000


class PastPage(msgspec.Struct, frozen=True):
    """A part of the history."""

    #: As the file of an export has them, in the order in which they ended.
    workflows: list[dict[str, Any]]
    #: Where the next page begins; `None`: there is none.
    after: HistoryPlace | None


def read_page(
    site: Site, actor: Actor, until_ms: int, after: HistoryPlace | None, limit: int
) -> PastPage:
    """Some of the workflows that ended before a time, after a place in their order."""
    authorise(actor, Action.HISTORY_READ, names=site.role_names)
    if until_ms > site.clock.now_ms():
        raise Invalid("History: until must not be in the future.")
    limit = min(limit, MOST_WORKFLOWS)
    with site.store.read() as connection:
        here = archive_store.settled(connection, until_ms, limit, after)
        there = archive_store.kept(connection, until_ms, limit, after)
        places = list(islice(merge(here, there), limit))
        shown = _as_many(_collect(connection, places), places)
        documents = [_document(connection, each) for each in shown]
    more = len(shown) < len(places) or len(places) == limit
    return PastPage(documents, places[len(shown) - 1] if more and shown else None)


def drop(site: Site, actor: Actor, uuids: Sequence[str]) -> int:
    """Forget finished workflows but for what usage, events and audit need; how many were not.

    Nothing changes unless each of them is finished, so a mistake in a file is no loss.
    """
    authorise(actor, Action.HISTORY_DROP, names=site.role_names)
    wanted = sorted(set(uuids))
    if len(wanted) > MOST_DROPPED:
        raise Invalid(
            f"History: at most {MOST_DROPPED} workflows are dropped at once, not {len(wanted)}."
        )
    with site.store.write() as connection:
        workflows = workflow_store.lock_all(connection, wanted)
        unknown = set(wanted) - {each.uuid for each in workflows}
        unknown -= archive_store.known(connection, sorted(unknown))
        if unknown:
            raise NotFound(f"Workflow {min(unknown)[:80]} not found; nothing was dropped.")
        past = archive_store.collect(connection, workflows)
        for each in past:
            _check_over(each)
        archive_store.move_in(connection, past, site.clock.now_ms(), whole=False)
        dropped = len(past) + archive_store.drop(connection, wanted)
        if dropped:
            after = {"dropped": dropped, "first": wanted[0], "last": wanted[-1]}
            audit(connection, site, actor, Action.HISTORY_DROP, "history", after=after)
    return dropped


def _collect(connection: sa.Connection, places: Sequence[HistoryPlace]) -> list[PastWorkflow]:
    """Workflows with everything, from wherever they are."""
    uuids = [each.uuid for each in places]
    found = archive_store.read(connection, uuids)
    here = workflow_store.of_uuids(connection, [each for each in uuids if each not in found])
    found |= {each.workflow.uuid: each for each in archive_store.collect(connection, here)}
    return [found[each] for each in uuids]


def _as_many(past: list[PastWorkflow], places: Sequence[HistoryPlace]) -> list[PastWorkflow]:
    """The first of these, as far as they have not too many attempts together."""
    total = 0
    for number in range(len(places)):
        total += len(past[number].tasks)
        if number and total > MOST_ATTEMPTS:
            return past[:number]
    return past


def _document(connection: sa.Connection, past: PastWorkflow) -> dict[str, Any]:
    """A workflow as the file of an export has it: as it is archived, with its events."""
    name = past.workflow.workflow_id
    events = record_store.events_of(connection, name, limit=MOST_EVENTS)
    return {**msgspec.to_builtins(past), "events": msgspec.to_builtins(events)}


def _check_over(past: PastWorkflow) -> None:
    workflow = past.workflow
    left = [task for task in past.tasks if not task.status.finished]
    if workflow.status.finished and workflow.ended_ms is not None and not left:
        return
    raise Invalid(
        f"Workflow {workflow.workflow_id} is {workflow.status}, not finished; nothing was dropped."
    )
