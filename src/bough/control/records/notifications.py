"""Notifies users of ends, preemptions and drains: collects from events, sends, then deletes.

Collecting reads events from where it stopped last and stores notifications, in one transaction;
sending happens outside of any. So none is lost, and none is sent for a change that was rolled back.
If a server dies between sending and deleting, a user is told twice.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

import sqlalchemy as sa

from bough.control.people.profiles import target_of
from bough.control.site import Site
from bough.model.access import Profile
from bough.model.change_record import EventKind, StoredEvent
from bough.model.notification import Channel, Notification, Receiver, Sender
from bough.model.pool import Json
from bough.model.workflow import ExitCode, Workflow, WorkflowStatus
from bough.store import arrays as array_store
from bough.store import event_order
from bough.store import notifications as notification_store
from bough.store import people as people_store
from bough.store import settings as setting_store
from bough.store import workflows as workflow_store

LOG = logging.getLogger(__name__)

#: The setting with the number of the last event that was read.
POSITION = "notified"
AT_ONCE = 500
#: Events older than this, from a time when nothing was sent, are skipped.
OLDEST_MS = 3_600_000
#: How long sending one may take, how long to wait after failures, and how many attempts.
CLAIM_MS = 120_000
FIRST_PAUSE_MS, LONGEST_PAUSE_MS = 5_000, 1_800_000
MOST_ATTEMPTS = 30
#: Notifications that could not be sent for so long are given up, however often they were tried.
LONGEST_MS = 86_400_000
_LONGEST_ERROR = 200


def collect(site: Site) -> int:
    """Store notifications for the events since the last time; returns how many."""
    with site.store.read() as connection:
        position = setting_store.get(connection, POSITION)
        last = event_order.last_event(connection)
        if isinstance(position, int) and last <= position:
            return 0
    with site.store.write() as connection:
        # Locked until the end, so that only one of several servers collects.
        position = setting_store.claim(connection, POSITION, last)
        after = position if isinstance(position, int) else last
        events = event_order.events_after(connection, after, until=last, limit=AT_ONCE)
        if not events:
            return 0
        found = list(_notifications(site, connection, events))
        notification_store.insert(connection, found)
        setting_store.put(connection, POSITION, events[-1].number)
    return len(found)


def _notifications(
    site: Site, connection: sa.Connection, events: list[StoredEvent]
) -> Iterator[Notification]:
    now_ms = site.clock.now_ms()
    told = [(event, kind) for event in events if (kind := _kind(event)) is not None]
    told = [(event, kind) for event, kind in told if now_ms - event.at_ms < OLDEST_MS]
    names = sorted({event.subject for event, _ in told})
    workflows = {each.workflow_id: each for each in workflow_store.named(connection, names)}
    users = sorted({each.submitted_by for each in workflows.values()})
    profiles = {each.user: each for each in notification_store.chosen_by(connection, users)}
    for event, kind in told:
        workflow = workflows.get(event.subject)
        profile = None if workflow is None else profiles.get(workflow.submitted_by)
        if workflow is None or profile is None:
            continue
        said = _say(connection, event, kind, workflow)
        if said is None:
            continue
        title, data = said
        for channel in channels_of(profile):
            yield Notification(profile.user, channel, title, data, now_ms, now_ms)


def channels_of(profile: Profile) -> list[Channel]:
    """The channels that a user chose."""
    wants = {
        Channel.EMAIL: profile.email_notification,
        Channel.SLACK: profile.slack_notification,
        Channel.WEBHOOK: profile.webhook_notification,
    }
    return [channel for channel, wanted in wants.items() if wanted]


def _kind(event: StoredEvent) -> str | None:
    """The kind of notification for an event; `None`: users are not told of it."""
    data = event.data if isinstance(event.data, Mapping) else {}
    if event.kind is EventKind.WORKFLOW_STATUS:
        after = data.get("after")
        ended = isinstance(after, str) and WorkflowStatus(after).finished
        return "ended" if ended else None
    if event.kind is EventKind.PREEMPTED:
        return "preempted"
    if event.kind is EventKind.TASK_STATUS and data.get("exit_code") == ExitCode.EVICTED:
        return "evicted"
    return None


def _say(
    connection: sa.Connection, event: StoredEvent, kind: str, workflow: Workflow
) -> tuple[str, dict[str, Json]] | None:
    """The title, and the whole event for programs; `None`: it is told with its array."""
    data = event.data if isinstance(event.data, Mapping) else {}
    name, status, message = workflow.workflow_id, str(workflow.status), data.get("message")
    if kind == "ended":
        message = workflow.failure_message
        if workflow.array_id is not None:
            ended = _array_end(connection, workflow)
            if ended is None:
                return None
            name, status = ended
            message = None
        title = f"{name} is {status}"
    else:
        what = f"task {data.get('task')} of {name}" if data.get("task") else name
        title = f"{what} was {kind}"
    told: dict[str, Json] = {
        "event": kind,
        "workflow": name,
        "status": status,
        "pool": workflow.pool,
        "user": workflow.submitted_by,
        "message": message if isinstance(message, str) else "",
        "at_ms": event.at_ms,
    }
    return title, told


def _array_end(connection: sa.Connection, workflow: Workflow) -> tuple[str, str] | None:
    """The array that ended with this element; `None`: it goes on, or was told already."""
    array = array_store.find(connection, workflow.array_id or "")
    if array is None:
        return None
    counts = array_store.counts_of(connection, [array.array_id])[array.array_id]
    status = array.status(counts)
    if not status.finished or not array_store.tell_end(connection, array):
        return None
    return array.array_id, str(status)


def receivers(site: Site) -> list[Receiver]:
    """The receivers of notifications that are due now, longest waiting first."""
    with site.store.read() as connection:
        return notification_store.receivers(connection, site.clock.now_ms(), AT_ONCE)


def deliver(site: Site, sender: Sender, receiver: Receiver, limit: int = 50) -> int:
    """Send some due notifications to one receiver, until one fails; returns how many were sent."""
    with site.store.read() as connection:
        found = notification_store.due(connection, site.clock.now_ms(), receiver, limit)
    sent = 0
    for each in found:
        outcome = _deliver(site, sender, each)
        if outcome is None:
            break
        sent += outcome
    return sent


def _deliver(site: Site, sender: Sender, found: Notification) -> bool | None:
    """Whether it was sent; `None`: that failed, and the next one would fail, too."""
    now_ms = site.clock.now_ms()
    with site.store.write() as connection:
        if not notification_store.claim(connection, found, now_ms + CLAIM_MS):
            return False
        target = _target(site, connection, found)
        if target is None:
            # It was switched off, or is no longer allowed.
            notification_store.remove(connection, found.number)
            return False
    try:
        sender.send(found.channel, target, found.title, found.data)
    except (OSError, ValueError) as error:
        _fail(site, found, error)
        return None
    with site.store.write() as connection:
        notification_store.remove(connection, found.number)
    return True


def _target(site: Site, connection: sa.Connection, found: Notification) -> str | None:
    """The address for a notification, by what is chosen and allowed now."""
    profile = people_store.find_profile(connection, found.user)
    if found.channel not in channels_of(profile):
        return None
    return target_of(site, connection, found.user, found.channel)[0]


def _fail(site: Site, found: Notification, error: OSError | ValueError) -> None:
    attempts = found.attempts + 1
    text = f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]
    receiver = Receiver(found.user, found.channel)
    now_ms = site.clock.now_ms()
    pause_ms = min(FIRST_PAUSE_MS << min(attempts, 20), LONGEST_PAUSE_MS)
    with site.store.write() as connection:
        if attempts >= MOST_ATTEMPTS:
            notification_store.remove(connection, found.number)
        else:
            notification_store.postpone(connection, found.number, now_ms + pause_ms, text)
        # The others would fail as well, and each would take its time to do so.
        notification_store.hold(connection, receiver, now_ms + pause_ms)
        notification_store.remove_old(connection, receiver, now_ms - LONGEST_MS)
    if attempts in (1, MOST_ATTEMPTS):
        what = "is given up" if attempts >= MOST_ATTEMPTS else "is tried again"
        LOG.warning("a notification by %s to %s %s: %s", found.channel, found.user, what, text)
