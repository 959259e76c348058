"""A small world for scenarios: a site with its own time, a virtual cluster, and short verbs."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path

from bough.backends.virtual import VirtualBackend
from bough.control.people import users
from bough.control.pools import cohorts, pools, quotas, subpool_drain, subpools
from bough.control.pools.quotas import PoolRow
from bough.control.scheduling.loop import CycleResult, Scheduler
from bough.control.site import Site
from bough.control.workflows import cancelling, query
from bough.control.workflows.submission import submit
from bough.errors import BoughError
from bough.model.access import Actor
from bough.model.cluster import Resources
from bough.model.pool import OfferedNode
from bough.model.subpool import Subpool, SubpoolState
from bough.model.workflow import (
    GroupSpec,
    Priority,
    TaskSpec,
    Workflow,
    WorkflowSpec,
    WorkflowStatus,
)
from bough.store import Store, migrations
from bough.store import pools as pool_store

START_MS = 1_700_000_000_000
MINUTE_MS = 60_000


def newest_revision() -> str:
    """The last of the steps that bring a database up to date, by the names of their files."""
    folder = Path(migrations.__file__).parent / "versions"
    return max(each.name.split("_")[1] for each in folder.glob("revision_*.py"))


class Time:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.ms = START_MS

    def now_ms(self) -> int:
        return self.ms

    def pass_minutes(self, minutes: float) -> None:
        self.ms += int(minutes * MINUTE_MS)


class Names:
    """Identities that are the same in every run."""

    def __init__(self, given: int = 0) -> None:
        """given:  how many there were before."""
        self._numbers = count(given + 1)

    def uuid(self) -> str:
        return f"{next(self._numbers):032x}"

    def secret(self) -> str:
        return f"secret-{next(self._numbers)}"

    def given(self) -> int:
        """How many there were, with one more."""
        return next(self._numbers)


def one_group(gpus: int, tasks: int = 1, name: str = "group", **fields: object) -> GroupSpec:
    """A group of equal tasks that ask for so many GPUs together."""
    each = gpus // tasks
    members = tuple(
        TaskSpec(f"{name}-task-{number}", Resources(gpus=each), lead=number == 0)
        for number in range(tasks)
    )
    return GroupSpec(name, members, **fields)  # type: ignore[arg-type]


def job(gpus: int, name: str = "job", tasks: int = 1) -> WorkflowSpec:
    """A workflow of one group."""
    return WorkflowSpec(name, (one_group(gpus, tasks),), text=f"workflow: {{name: {name}}}\n")


class World:
    """A site, an administrator, a cluster and its scheduler."""

    def __init__(
        self, store: Store, gpus: int = 100, namespace: str = "ns", names: Names | None = None
    ) -> None:
        self.time = Time()
        self.names = names or Names()
        self.site = Site(store, self.time, self.names, namespace=namespace)
        self.admin = Actor("root", ("osmo-admin", "osmo-default"), origin="127.0.0.1")
        self.backend = VirtualBackend((big_node(gpus),), self.time.now_ms)
        self.scheduler = Scheduler(self.site, (self.backend,))
        self._after: list[World] = []

    def close(self) -> None:
        """Release the lease, here and in all servers that came after a restart."""
        for world in (*self._after, self):
            world.scheduler.release()

    # Configuration

    def pool(self, name: str = "team", quota: int = 100, **fields: object) -> None:
        gpu = {
            "guarantee": quota,
            "maximum": fields.pop("maximum", -1),
            "weight": fields.pop("weight", 1),
        }
        config = {"resources": {"gpu": gpu}, **fields}
        pools.put_pools(self.site, self.admin, {name: config})

    def create(self, name: str, quota: object, parent: str = "team") -> Subpool:
        change = subpools.create_subpool(self.site, self.admin, parent, name, quota)
        assert change.view.subpool is not None
        return change.view.subpool

    def update(self, name: str, quota: object, parent: str = "team") -> Subpool:
        change = subpools.update_subpool(self.site, self.admin, parent, name, {"quota": quota})
        assert change.view.subpool is not None
        return change.view.subpool

    def delete(self, name: str, parent: str = "team") -> Subpool:
        change = subpools.delete_subpool(self.site, self.admin, parent, name)
        assert change.view.subpool is not None
        return change.view.subpool

    def split(self, **quotas_by_name: int) -> None:
        """Create several subpools, as `T3` has them."""
        for name, quota in quotas_by_name.items():
            self.create(name, quota)

    def cohort(self, name: str, **fields: object) -> None:
        cohorts.create_cohort(self.site, self.admin, name, fields)

    def user(self, name: str, *roles: str) -> Actor:
        users.create_user(self.site, self.admin, name, roles)
        return Actor(name, tuple(sorted({*roles, "osmo-default"})))

    # Work

    def submit(
        self,
        gpus: int,
        pool: str = "team",
        priority: Priority = Priority.HIGH,
        actor: Actor | None = None,
        spec: WorkflowSpec | None = None,
    ) -> Workflow:
        wanted = spec or job(gpus)
        accepted = submit(self.site, actor or self.admin, pool, wanted, priority)
        assert accepted.workflow is not None
        return accepted.workflow

    def run(self, gpus: int, pool: str = "team", priority: Priority = Priority.HIGH) -> Workflow:
        """Submit, and let it start."""
        workflow = self.submit(gpus, pool, priority)
        self.settle()
        assert self.status(workflow) is WorkflowStatus.RUNNING
        return workflow

    def settle(self) -> CycleResult:
        """Let the scheduler work until nothing changes any more."""
        for _ in range(50):
            cycle = self.scheduler.cycle()
            assert cycle.leads
            if not cycle.applied.changed and not cycle.told:
                return cycle
        raise AssertionError("the scheduler does not come to rest")

    def finish(self, workflow: Workflow, exit_code: int = 0) -> None:
        """Let all that runs of a workflow end by itself."""
        for task in self.tasks(workflow):
            running = self.backend._attempts.get(task.attempt)
            if running is not None and running.ended_ms is None:
                running.ended_ms, running.exit_code = self.time.ms, exit_code
        self.settle()

    def cancel(self, workflow: Workflow) -> None:
        cancelling.cancel(self.site, self.admin, workflow.workflow_id)
        self.settle()

    # Looking

    def get(self, workflow: Workflow) -> Workflow:
        return query.get_workflow(self.site, self.admin, workflow.uuid).workflow

    def status(self, workflow: Workflow) -> WorkflowStatus:
        return self.get(workflow).status

    def tasks(self, workflow: Workflow, *, every: bool = False):
        view = query.get_workflow(self.site, self.admin, workflow.uuid, every_attempt=every)
        return [task for tasks in view.tasks.values() for task in tasks]

    def queue_of(self, workflow: Workflow) -> str:
        return query.get_workflow(self.site, self.admin, workflow.uuid).groups[0].queue

    def queues(self) -> dict[str, tuple[str | None, bool, int | None]]:
        """Parent, leaf and quota of every queue."""
        return {
            each.row.name: (each.row.parent, each.row.leaf, each.row.quota)
            for each in quotas.list_queues(self.site, self.admin)
        }

    def leaf_quotas(self, pool: str = "team") -> dict[str, int | None]:
        """The quotas of the leaves of a pool, by the last part of their names."""
        start = f"osmo-pool-ns-{pool}--"
        return {
            name.removeprefix(start): quota
            for name, (_, leaf, quota) in self.queues().items()
            if leaf and name.startswith(start)
        }

    def rows(self, *names: str) -> dict[str, PoolRow]:
        report = quotas.pool_quotas(self.site, self.admin, names or None)
        return {row.name: row for each in report.node_sets for row in each.rows}

    def numbers(self, name: str = "team") -> tuple[int, int, int]:
        """Quota, used, available, as the list of pools shows them."""
        usage = self.rows()[name].usage
        return usage.quota_limit, usage.quota_used, usage.quota_free

    def state(self, name: str, parent: str = "team") -> SubpoolState:
        view = subpools.get_subpool(self.site, self.admin, parent, name)
        assert view.subpool is not None
        return view.subpool.state

    def invariant_holds(self, pool: str = "team") -> bool:
        with self.site.store.read() as connection:
            found = pool_store.find_pool(connection, pool)
            assert found is not None
            total = found.gpu.guarantee
            assert total is not None
            members = pool_store.list_subpools(connection, pool)
        active = sum(each.counted for each in members)
        shared = self.leaf_quotas(pool)["_shared"]
        assert shared is not None
        return shared >= 0 and shared + active == total and all(m.quota >= 0 for m in members)

    def check_drains(self) -> list[str]:
        return subpool_drain.check_due_drains(self.site)

    def restarted(self) -> World:
        """The same database under a new server, which knows only what was written."""
        self.scheduler.release()
        again = World.__new__(World)
        again.time = self.time
        again.site = replace(self.site)
        again.admin = self.admin
        again.backend = VirtualBackend(self.backend.nodes(), self.time.now_ms)
        again.scheduler = Scheduler(again.site, (again.backend,))
        again._after = []
        self._after.append(again)
        return again


def big_node(gpus: int, name: str = "node-0", **fields: object) -> OfferedNode:
    """One node with all GPUs, so that placement is never what is in the way."""
    return OfferedNode(
        name,
        gpus=gpus,
        cpu_milli=gpus * 32_000,
        memory_bytes=gpus * 2**38,
        storage_bytes=gpus * 2**40,
        **fields,  # type: ignore[arg-type]
    )


def refusal(action, *args, **kwargs) -> tuple[int, str]:
    """The status and the message of a refusal."""
    try:
        action(*args, **kwargs)
    except BoughError as error:
        return error.http_status, error.message
    raise AssertionError("it was not refused")
