"""The archive of finished workflows: what goes there, in small parts, and what is found there.

A workflow is in one transaction taken from the tables that lists and cycles read, and put into
the archive. So it is always in one of them, and in no more than one.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

import sqlalchemy as sa

from bough.control.config.settings import read_workflow_settings
from bough.control.site import Site
from bough.errors import BoughError, Invalid, NotFound, NotLeading
from bough.model.past_workflow import PastWorkflow
from bough.store import archive as archive_store
from bough.store import arrays as array_store
from bough.store import workflows as workflow_store
from bough.store.database import again_if_given_up

LOG = logging.getLogger(__name__)

#: What is moved in one transaction, so that others get their turn: so many workflows, and no more
#: than so many attempts unless a single workflow has more.
AT_ONCE = 50
MOST_ATTEMPTS = 500
#: How long the loop does other things after a part; and where there was nothing to move.
PAUSE_MS = 1_000
IDLE_MS = 60_000


class Archiver:
    """Moves finished workflows of a set age, a part each second; none unless an age is set."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._next_ms = 0
        self._failed = False

    def work(self) -> int:
        """Move a part if it is time; how many workflows that were.

        What goes wrong here stops nothing else: it is logged once, and tried again later. Nothing
        is moved while the disk is nearly full, as moving needs some room itself.
        """
        now_ms = self._site.clock.now_ms()
        if now_ms < self._next_ms:
            return 0
        moved = 0
        try:
            if not self._site.refusal():
                moved = archive_due(self._site)
            self._failed = False
        except NotLeading:
            raise
        except BoughError as error:
            if not self._failed:
                LOG.warning("finished workflows cannot be archived now: %s", error)
            self._failed = True
        self._next_ms = now_ms + (PAUSE_MS if moved else IDLE_MS)
        return moved


@again_if_given_up
def archive_due(site: Site) -> int:
    """Move some of the workflows that ended as long ago as is configured; how many."""
    with site.store.read() as connection:
        age_s = read_workflow_settings(connection).archive_after_s
        if age_s is None:
            return 0
        until_ms = site.clock.now_ms() - age_s * 1_000
        due = [each.uuid for each in archive_store.settled(connection, until_ms, AT_ONCE)]
        due = _as_many(due, archive_store.count_attempts(connection, due))
    if not due:
        return 0
    with site.store.write() as connection:
        workflows = workflow_store.lock_all(connection, due)
        past = archive_store.collect(connection, workflows)
        archive_store.move_in(connection, past, site.clock.now_ms())
    return len(past)


def _as_many(uuids: list[str], attempts: dict[str, int]) -> list[str]:
    """The first of these, as far as they have not too many attempts together."""
    found: list[str] = []
    total = 0
    for uuid in uuids:
        total += attempts.get(uuid, 0)
        if found and total > MOST_ATTEMPTS:
            break
        found.append(uuid)
    return found


class Archived(NamedTuple):
    """A workflow of the archive, and since when it is there."""

    past: PastWorkflow
    at_ms: int


def read_archived(connection: sa.Connection, name: str) -> Archived:
    """An archived workflow by identifier or uuid; or why there is none."""
    found = archive_store.find(connection, name)
    if found is None:
        raise not_found(connection, name)
    if found.past is None:
        raise NotFound(
            f"Workflow {found.workflow_id} was exported and dropped from the archive.",
            hint="an administrator has the file; its events and its GPU-hours are still here",
        )
    return Archived(found.past, found.archived_ms)


def not_found(connection: sa.Connection, name: str) -> NotFound:
    """That there is no such workflow; if it is an array, that its elements are workflows."""
    array = array_store.find(connection, name)
    if array is None:
        return NotFound(f"Workflow {name} not found.")
    return NotFound(
        f"{array.array_id} is an array of {array.count} workflows; name one of them.",
        hint=f"they are listed by: bough workflow query {array.array_id}",
    )


def missing(connection: sa.Connection, name: str) -> BoughError:
    """Why a workflow cannot be changed that is not among those that can be."""
    found = archive_store.find(connection, name)
    if found is None:
        return not_found(connection, name)
    return Invalid(
        f"Workflow {found.workflow_id} is in the archive: it can be read, and not changed.",
        hint="to run it again, submit what `workflow spec` prints" if found.past else "",
    )
