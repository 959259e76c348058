"""Arrays and notifications on both databases."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

from bough.control.records import notifications
from bough.control.workflows import arrays
from bough.formats.workflow.array import parse_array
from bough.model.notification import Channel, EmailSender, NotificationRules
from bough.model.workflow import Predecessor, WorkflowSpec
from bough.model.workflow import WorkflowStatus as Status
from tests.store.scheduling import cluster
from tests.store.usecases import pools, profiles, submit
from tests.store.world import one_group

pytestmark = pytest.mark.postgresql


def array(world, text: str, **fields):
    spec = WorkflowSpec("sweep", (one_group(1),), array=parse_array(text), **fields)
    accepted = submit(world.site, world.admin, "p", spec)
    assert accepted.array is not None
    return accepted.array.array_id


def counts(world, name: str) -> dict[Status, int]:
    return arrays.get_array(world.site, world.admin, name).counts


def test_an_array_is_made_renamed_with_its_pool_and_cancelled(world):
    cluster(world, 4, p=4)
    first = array(world, "0-9%2")
    after = world.submit(
        0, "p", spec=WorkflowSpec("next", (one_group(1),), after=(Predecessor(first),))
    )
    world.settle()
    assert {Status.RUNNING: 2} == counts(world, first)
    pools.rename_pool(world.site, world.admin, "p", "q")
    world.settle()
    assert "q" == arrays.get_array(world.site, world.admin, first).array.pool
    assert Status.PENDING is world.status(after)
    arrays.cancel(world.site, world.admin, first)
    world.settle()
    view = arrays.get_array(world.site, world.admin, first)
    assert ({Status.FAILED_CANCELED: 2}, Status.FAILED_CANCELED) == (view.counts, view.status)
    assert Status.RUNNING is world.status(after)


class Outgoing:
    """Remembers what is sent; fails as often as it is told."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.sent: list[tuple[Channel, str, str]] = []

    def send(self, channel, target, title, data) -> None:
        del data
        if self.failures:
            self.failures -= 1
            raise ConnectionError("refused")
        self.sent.append((channel, target, title))


def test_the_end_of_an_array_is_kept_until_it_was_told_once(world):
    cluster(world, 4, p=4)
    rules = NotificationRules(EmailSender("mail.example.com", "b@example.com", ("example.com",)))
    site = dataclasses.replace(world.site, notifications=rules)
    profiles.set_profile(site, world.admin, {"email_notification": True})
    notifications.collect(site)
    name, outgoing = array(world, "0-1"), Outgoing(failures=1)
    world.settle()
    for element in _elements(world, name):
        world.finish(element)
    for _ in range(3):
        notifications.collect(site)
        for each in notifications.receivers(site):
            notifications.deliver(site, outgoing, each)
        world.time.ms += notifications.LONGEST_PAUSE_MS
    address = f"{world.admin.name}@example.com"
    assert [(Channel.EMAIL, address, f"{name} is COMPLETED")] == outgoing.sent


def _elements(world, name: str):
    from bough.store import workflows

    with world.site.store.read() as connection:
        return workflows.search(connection, workflows.Filter(array=name))


def test_two_arrays_of_alike_names_share_no_number(world):
    cluster(world, 4, p=4)
    spec = WorkflowSpec("sweep-1", (one_group(1),))
    taken = world.submit(0, "p", spec=spec)
    first = array(world, "0-2")
    world.settle()
    later = world.submit(0, "p", spec=msgspec.structs.replace(spec))
    names = [each.workflow_id for each in _elements(world, first)]
    assert 5 == len({taken.workflow_id, later.workflow_id, *names})
