"""Backends that belong to a machine: which server speaks for them, without processes."""

from __future__ import annotations

import pytest

from bough.backends.virtual import VirtualBackend
from bough.control.scheduling.loop import Scheduler
from bough.model.backend import Machine
from bough.model.pool import BackendRecord
from bough.model.workflow import TaskStatus
from bough.model.workflow import WorkflowStatus as Status
from bough.store import nodes as node_store
from tests.store.world import World, big_node


class Owned(VirtualBackend):
    """A virtual backend of one machine."""

    owner = ""

    @property
    def machine(self) -> Machine:
        return Machine(self.owner, f"{self.owner}:/folder")


def owned(world: World, owner: str) -> tuple[Owned, Scheduler]:
    backend = Owned((big_node(8, f"node-{owner}"),), world.time.now_ms)
    backend.owner = owner
    return backend, Scheduler(world.site, (backend,))


def record(world: World) -> BackendRecord:
    with world.site.store.read() as connection:
        found = node_store.find_backend(connection, "default")
    assert found is not None
    return found


@pytest.fixture
def pair(world):
    """Machine a has the backend, and machine b only a server; the own scheduler rests."""
    world.scheduler.release()
    a, first = owned(world, "a")
    b, second = owned(world, "b")
    world.pool("p", 8)
    yield world, (a, first), (b, second)
    first.release()
    second.release()


def cycles(*schedulers: Scheduler) -> None:
    for _ in range(6):
        for each in schedulers:
            each.cycle()


def test_a_server_that_does_not_lead_sees_to_its_own_machine(pair):
    world, (a, first), (b, second) = pair
    cycles(first)
    workflow = world.submit(1, "p")
    cycles(first)
    first.release()
    cycles(second, first)
    assert (True, False) == (second.cycle().leads, first.cycle().leads)
    assert ("a", None) == (record(world).machine, record(world).fault)
    (task,) = world.tasks(workflow)
    assert (TaskStatus.RUNNING, "node-a") == (task.status, task.node)
    more = world.submit(1, "p")
    cycles(second, first)
    assert (2, {}) == (len(a._attempts), b._attempts)
    a.finish(task.name)
    cycles(first, second)
    assert Status.COMPLETED is world.status(more)


def test_a_leader_leaves_the_tasks_of_a_silent_machine_and_plans_nothing_there(pair):
    world, (a, first), (b, second) = pair
    cycles(first)
    workflow = world.submit(1, "p")
    cycles(first)
    first.release()
    cycles(second)
    assert "Machine a:/folder of backend default does not answer." == record(world).fault
    late = world.submit(1, "p")
    cycles(second)
    assert (Status.RUNNING, Status.PENDING) == (world.status(workflow), world.status(late))
    assert ((1, {}), 0) == ((len(a._attempts), b._attempts), world.tasks(workflow)[0].retry_id)


def test_tasks_from_before_machines_had_identities_are_left_to_the_one_that_knows_them(pair):
    world, (a, first), (_, second) = pair
    cycles(first)
    workflow = world.submit(1, "p")
    cycles(first)
    first.release()
    with world.site.store.write() as connection:
        node_store.put_speaker(connection, "default", None, None, None, None)
    if world.site.store.is_sqlite:
        # There is one folder beside the file, and so one server.
        return
    cycles(second)
    assert "has tasks that b:/folder does not know" in (record(world).fault or "")
    assert None is record(world).machine
    cycles(first)
    assert ("a", None) == (record(world).machine, record(world).fault)
    assert (Status.RUNNING, 1) == (world.status(workflow), len(a._attempts))
