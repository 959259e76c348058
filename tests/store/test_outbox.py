"""What backends are told: attempts by name, and what they are made of only at that moment."""

from __future__ import annotations

import msgspec
import pytest

from bough.control.credential_keys import CredentialKeys
from bough.errors import Unavailable
from bough.model.access import CredentialType
from bough.model.cluster import Resources
from bough.model.task_template import CredentialUse, TaskTemplate
from bough.model.workflow import GroupSpec, Priority, TaskSpec, TaskStatus, WorkflowSpec
from bough.model.workflow import WorkflowStatus as Status
from tests.store.backends import grudging
from tests.store.scheduling import cluster, later
from tests.store.usecases import cancelling, credentials, pools, query, record_store, settings

pytestmark = pytest.mark.postgresql

NORMAL, LOW = Priority.NORMAL, Priority.LOW
TEMPLATE = TaskTemplate(
    command=("train",),
    environment={"STEPS": "a-long-spec"},
    credentials=(CredentialUse("store", mount="/keys"), CredentialUse("hub")),
)


@pytest.fixture
def p(world):
    cluster(world, 8, p=8)
    grudging(world)
    return world


def secretive(world, actor):
    """A gang of which one task sees credentials."""
    tasks = (
        TaskSpec("train", Resources(gpus=1, cpu_milli=500), lead=True, launch=TEMPLATE),
        TaskSpec("watch", Resources(gpus=1)),
    )
    spec = WorkflowSpec("secretive", (GroupSpec("group", tasks),))
    return world.submit(0, "p", NORMAL, actor=actor, spec=spec)


def messages(world):
    with world.site.store.read() as connection:
        return record_store.list_outbox(connection, ["default"])


def test_an_outbox_message_carries_neither_specs_nor_secrets(p):
    ann = p.user("ann", "osmo-p-user")
    for name in ("store", "hub"):
        payload = {"key": f"secret of {name}"}
        credentials.set_credential(p.site, ann, name, CredentialType.GENERIC, payload)
    workflow = secretive(p, ann)
    p.scheduler._decide()

    (message,) = messages(p)
    text = msgspec.json.encode(message).decode()
    assert "secret of" not in text
    assert "a-long-spec" not in text
    attempts = {task.attempt: "node-0" for task in p.tasks(workflow)}
    assert attempts == message.payload["attempts"]
    p.settle()

    (start,) = p.backend.starts
    train, watch = start.launches
    assert ("ann", 500, TEMPLATE) == (train.user, train.cpu_milli, train.spec)
    expected = {"store": {"key": "secret of store"}, "hub": {"key": "secret of hub"}}
    assert (expected, {}) == (train.secrets, watch.secrets)


def test_a_credential_that_is_gone_ends_the_gang_before_it_starts(p):
    ann = p.user("ann", "osmo-p-user")
    credentials.set_credential(p.site, ann, "store", CredentialType.GENERIC, {"key": "x"})
    workflow = secretive(p, ann)
    p.settle()

    assert [] == p.backend.starts
    ended = p.get(workflow)
    text = "Credential hub of ann does not exist."
    assert (Status.FAILED_START_ERROR, text) == (ended.status, ended.failure_message)
    assert [] == messages(p)


def test_a_credential_that_goes_while_its_task_runs_is_not_missed_after_a_restart(p):
    ann = p.user("ann", "osmo-p-user")
    for name in ("store", "hub"):
        credentials.set_credential(p.site, ann, name, CredentialType.GENERIC, {"key": "x"})
    workflow = secretive(p, ann)
    p.settle()
    credentials.delete_credential(p.site, ann, "hub")

    again = p.restarted()
    again.settle()

    assert Status.RUNNING is again.status(workflow)


def test_what_was_told_to_end_before_it_was_started_is_not_started(p):
    workflow = later(p, 1, "p", NORMAL)
    p.scheduler._decide()
    cancelling.cancel(p.site, p.admin, workflow.workflow_id)
    p.settle()

    assert [] == p.backend.starts
    assert Status.FAILED_CANCELED is p.status(workflow)


def test_what_is_left_of_the_grace_is_told_after_a_restart(p):
    low = later(p, 8, "p", LOW)
    p.settle()
    later(p, 8, "p", NORMAL)
    p.settle()
    p.time.ms += 12_000
    p.scheduler.release()
    p.backend.stops.clear()
    p.backend.starts.clear()

    p.scheduler.cycle()

    (stop,) = p.backend.stops
    assert ((p.tasks(low)[0].attempt,), "preempt", 18) == (
        stop.attempts,
        stop.reason,
        stop.grace_s,
    )
    assert [] == p.backend.starts


def test_order_is_kept_when_a_backend_does_not_answer(p):
    backend = p.backend
    start, failures = backend.start, [Unavailable("not now"), OSError("nor now")]

    def moody(order):
        if failures:
            raise failures.pop()
        start(order)

    backend.start = moody
    first, second = later(p, 1, "p", NORMAL), later(p, 1, "p", NORMAL)
    p.scheduler.cycle()
    assert {TaskStatus.INITIALIZING} == {p.tasks(each)[0].status for each in (first, second)}
    assert 2 == len(messages(p))
    p.settle()

    assert [first.workflow_id, second.workflow_id] == [s.workflow_id for s in backend.starts]


def test_data_belongs_to_a_pool_with_its_subpools_through_renames_and_to_no_later_one(team):
    grudging(team)
    team.split(a=30)
    team.pool("other", 10)

    def identity(pool: str) -> str:
        workflow = team.submit(1, pool, NORMAL)
        team.settle()
        (launch,) = team.backend.starts[-1].launches
        cancelling.cancel(team.site, team.admin, workflow.workflow_id)
        team.settle()
        team.backend.let_go()
        team.settle()
        return launch.pool

    first = identity("team")
    assert first
    assert first == identity("team--a")
    other = identity("other")
    assert first != other
    pools.rename_pool(team.site, team.admin, "other", "renamed")
    team.pool("other", 10)
    assert other == identity("renamed")
    again = identity("other")
    assert again not in {"", first, other}
    pools.delete_pool(team.site, team.admin, "other")
    team.pool("other", 10)
    assert identity("other") not in {"", first, other, again}


def test_what_uses_a_credential_waits_while_the_server_has_not_its_key_and_others_start(p):
    ann = p.user("ann", "osmo-p-user")
    for name in ("store", "hub"):
        credentials.set_credential(p.site, ann, name, CredentialType.GENERIC, {"key": name})
    keys = p.site.credential_keys
    right, keys._keys = keys._keys, CredentialKeys()._keys
    waits = secretive(p, ann)
    other = p.submit(1, "p", NORMAL)
    p.settle()

    assert [other.workflow_id] == [each.workflow_id for each in p.backend.starts]
    assert Status.RUNNING is p.status(other)
    assert not p.status(waits).finished
    (message,) = messages(p)
    assert waits.workflow_id == message.subject

    keys._keys = right
    p.time.pass_minutes(10)
    p.settle()
    assert Status.RUNNING is p.status(waits)
    (start,) = (each for each in p.backend.starts if each.workflow_id == waits.workflow_id)
    assert {"store": {"key": "store"}, "hub": {"key": "hub"}} == start.launches[0].secrets


def test_pods_have_labels_with_the_prefix_of_that_time_where_it_makes_labels(p):
    labels = {"team": "sim", "example.org/role": "lead"}
    tasks = (TaskSpec("train", Resources(gpus=1), lead=True),)
    spec = WorkflowSpec("labelled", (GroupSpec("group", tasks),), labels=labels)
    workflow = p.submit(0, "p", NORMAL, spec=spec)
    changes = {"labels_config": {"pod_label_prefix": "example.com/"}}
    settings.patch_workflow_settings(p.site, p.admin, changes)
    p.settle()

    (launch,) = p.backend.starts[-1].launches
    assert {"example.com/team": "sim", "example.org/role": "lead"} == launch.labels
    assert labels == query.get_workflow(p.site, p.admin, workflow.workflow_id).workflow.labels
