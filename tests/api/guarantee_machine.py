"""Random histories of a divided pool over HTTP, and the laws of the guarantee that hold in all."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.api.house import House

#: What the pool has at most, and all GPUs, so that the nodes have a place whenever the quota has.
QUOTA, GPUS = 12, 16
NAMES = ("a", "b", "c")
POOLS = ("other", "team", *(f"team--{name}" for name in NAMES))
#: Of a gang: tasks, GPUs of each, and how many tasks it needs at least.
Shape = tuple[int, int, int]
SHAPES = ((1, 1, 1), (1, 2, 1), (1, 3, 1), (2, 1, 2), (3, 1, 3), (2, 2, 2), (3, 1, 1), (3, 1, 2))
RANKS = {"HIGH": 2, "NORMAL": 1}


def check_guarantee(databases: Any, examples: int, steps: int) -> None:
    """Play so many histories of so many steps, each in a fresh database."""
    run_state_machine_as_test(
        lambda: GuaranteeMachine(databases),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            database=None,
        ),
    )


class Row(NamedTuple):
    """A pool or subpool as `pool list` shows it."""

    state: str | None
    quota: int
    used: int

    @property
    def active(self) -> bool:
        return self.state == "ACTIVE"

    @property
    def promised(self) -> int:
        return max(self.quota, self.used) if self.active else self.used


class Job(msgspec.Struct):
    """A workflow that was accepted, with what it needs to start."""

    name: str
    pool: str
    priority: str
    gpus: int
    number: int
    status: str = "PENDING"

    @property
    def guaranteed(self) -> bool:
        return self.priority in RANKS

    @property
    def place(self) -> tuple[int, int]:
        return -RANKS[self.priority], self.number


class GuaranteeMachine(RuleBasedStateMachine):
    """One pool that people divide again and again, while many submit to all its parts."""

    def __init__(self, databases: Any) -> None:
        super().__init__()
        self.databases, self.address = databases, databases.make()
        self.store = databases.open(self.address)
        self.house = House(self.store, gpus=GPUS)
        self.house.__enter__()
        self.house.pool("team", QUOTA)
        self.house.pool("other", GPUS - QUOTA)
        self.jobs: list[Job] = []
        for name, quota in zip(NAMES, (4, 4, 2), strict=True):
            self._ask("POST", "/api/configs/pool/team/subpool", {"name": name, "quota": quota})
        # A full pool with lines before it: where the laws are at stake.
        for pool in ("team--a", "team--b"):
            self._submit(pool, "NORMAL", (1, 2, 1), times=4)
        self._settle()

    def teardown(self) -> None:
        try:
            self._end()
        finally:
            self.house.__exit__(None, None, None)
            self.databases.give_back(self.address)

    # What people do

    @rule(name=st.sampled_from(NAMES), quota=st.integers(0, 8))
    def create(self, name: str, quota: int) -> None:
        self._ask("POST", "/api/configs/pool/team/subpool", {"name": name, "quota": quota})
        self._settle()

    @rule(name=st.sampled_from(NAMES), quota=st.integers(0, 8))
    def resize(self, name: str, quota: int) -> None:
        self._ask("PATCH", f"/api/configs/pool/team/subpool/{name}", {"quota": quota})
        self._settle()

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        self._ask("DELETE", f"/api/configs/pool/team/subpool/{name}")
        self._settle()

    @rule(quota=st.integers(4, QUOTA))
    def resize_pool(self, quota: int) -> None:
        body = {"configs_dict": {"resources": {"gpu": {"guarantee": quota}}}}
        self._ask("PATCH", "/api/configs/pool/team", body)
        self._settle()

    @rule(
        pool=st.sampled_from(POOLS),
        priority=st.sampled_from(("HIGH", "NORMAL", "LOW")),
        shape=st.sampled_from(SHAPES),
        times=st.integers(1, 4),
    )
    def submit(self, pool: str, priority: str, shape: Shape, times: int) -> None:
        self._submit(pool, priority, shape, times)
        self._settle()

    @rule(pool=st.sampled_from(POOLS[1:]), gpus=st.integers(1, 6))
    def submit_guaranteed(self, pool: str, gpus: int) -> None:
        self._submit(pool, "HIGH", (1, gpus, 1), times=2)
        self._settle()

    @precondition(lambda self: self._running())
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self._running()), label="finished")
        self.house.time.ms += 1
        _end_tasks(self.house, job.name)
        self._settle()

    @precondition(lambda self: self._waiting())
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self._waiting()), label="cancelled")
        self._ask("POST", f"/api/workflow/{job.name}/cancel")
        self._settle()

    @precondition(lambda self: self._waiting())
    @rule(
        data=st.data(),
        pool=st.sampled_from(POOLS),
        priority=st.sampled_from(("HIGH", "NORMAL", "LOW")),
    )
    def move(self, data: st.DataObject, pool: str, priority: str) -> None:
        job = data.draw(st.sampled_from(self._waiting()), label="moved")
        body = {"pool": pool, "priority": priority}
        if self._ask("PATCH", f"/api/workflow/{job.name}", body) is not None:
            job.pool, job.priority = pool, priority
        self._settle()

    def _submit(self, pool: str, priority: str, shape: Shape, times: int) -> None:
        _, gpus, minimum = shape
        for _ in range(times):
            self.house.time.ms += 1
            path = f"/api/pool/{pool}/workflow?priority={priority}"
            answer = self._ask("POST", path, {"file": _spec(*shape)})
            if answer is not None:
                number = len(self.jobs)
                self.jobs.append(Job(answer["name"], pool, priority, gpus * minimum, number))

    # The laws

    def _settle(self) -> None:
        """Let the scheduler come to rest: what it started must be lawful, and all that could be."""
        before, was_running = self._rows(), {job.name for job in self._running()}
        self.house.settle()
        self._look()
        after = self._rows()
        started = [job for job in self._running() if job.name not in was_running]
        assert _twice(after) <= _twice(before), "a start promised something twice"
        if any(job.guaranteed and self._in_rest(job, after) for job in started):
            assert 0 == _twice(after), "a start in the shared part took what is promised"
        self._check_lines(after, started)

    def _check_lines(self, rows: dict[str, Row], started: list[Job]) -> None:
        parts = [{name} for name, row in rows.items() if row.active]
        parts.append({name for name, row in rows.items() if not row.active})
        for pools in parts:
            inside = [job for job in self.jobs if job.pool in pools and job.guaranteed]
            quota = sum(rows[name].quota for name in pools)
            # What is larger than its part has no turn to lose, until people divide it otherwise.
            waiting = [job for job in inside if job.status == "PENDING" and job.gpus <= quota]
            if not waiting:
                continue
            head = min(waiting, key=lambda job: job.place)
            assert not self._fits(head, rows), f"{head} waits, though it fits: {rows}"
            passed = [job for job in started if job in inside and job.place > head.place]
            assert not passed, f"{passed} overtook {head}"

    def _fits(self, job: Job, rows: dict[str, Row]) -> bool:
        row = rows[job.pool]
        if row.active:
            used = sum(each.used for each in rows.values())
            return job.gpus <= row.quota - row.used and used + job.gpus <= self._whole(rows)
        return sum(each.promised for each in rows.values()) + job.gpus <= self._whole(rows)

    def _end(self) -> None:
        """Drains end: what runs does so, what could never start is moved or given up."""
        for _ in range(100):
            running = self._running()
            if not running:
                break
            for job in running:
                _end_tasks(self.house, job.name)
            self.house.settle()
            self._look()
        rows = self._rows()
        shared = rows["team"].quota
        for job in self._waiting():
            row = rows.get(job.pool)
            quota = row.quota if row is not None and row.active else shared
            assert job.pool == "other" or job.gpus > quota, f"{job} never started: {rows}"
            self._ask("POST", f"/api/workflow/{job.name}/cancel")
        self.house.settle()
        assert not [name for name, row in self._rows().items() if row.state == "DELETING"]

    # Looking

    def _in_rest(self, job: Job, rows: dict[str, Row]) -> bool:
        return job.pool != "other" and not (job.pool in rows and rows[job.pool].active)

    def _rows(self) -> dict[str, Row]:
        """The parts of the pool."""
        answer = self.house.get("/api/pool_quota?pools=team")
        found = {}
        for each in answer["node_sets"]:
            for row in each["pools"]:
                usage = row["resource_usage"]
                quota, used = int(usage["quota_limit"]), int(usage["quota_used"])
                found[row["name"]] = Row(row["subpool_state"], quota, used)
        return found

    def _whole(self, rows: dict[str, Row]) -> int:
        return sum(row.quota for row in rows.values())

    def _look(self) -> None:
        path = "/api/workflow?all_users=True&all_pools=True&limit=1000"
        known = {each["name"]: each["status"] for each in self.house.get(path)["workflows"]}
        for job in self.jobs:
            job.status = known[job.name]

    def _running(self) -> list[Job]:
        return [job for job in self.jobs if job.status == "RUNNING"]

    def _waiting(self) -> list[Job]:
        return [job for job in self.jobs if job.status == "PENDING"]

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        """What is asked for; people are refused now and then, and then nothing happens."""
        options = {} if body is None else {"json": body}
        response = self.house.ask(method, path, **options)
        assert response.status_code < 500, response.text
        return response.json() if response.status_code < 400 else None


def _twice(rows: dict[str, Row]) -> int:
    """What the pool has promised twice."""
    whole = sum(row.quota for row in rows.values())
    return max(0, sum(row.promised for row in rows.values()) - whole)


def _end_tasks(house: House, name: str) -> None:
    for group in house.get(f"/api/workflow/{name}")["groups"]:
        for task in group["tasks"]:
            running = house.backend._attempts.get(f"{task['task_uuid']}/{task['retry_id']}")
            if running is not None and running.ended_ms is None:
                running.ended_ms, running.exit_code = house.time.ms, 0


def _spec(tasks: int, gpus: int, minimum: int) -> str:
    lines = ["workflow:", "  name: job", "  resources:"]
    lines += [f"    default: {{gpu: {gpus}, cpu: 1, memory: 1Gi, storage: 1Gi}}", "  groups:"]
    lines += ["  - name: all"]
    if minimum < tasks:
        lines += [f"    minMember: {minimum}"]
    lines += ["    ignoreNonleadStatus: false", "    tasks:"]
    for task in range(tasks):
        lead = "true" if task == 0 else "false"
        lines += [f"    - {{name: task-{task}, image: i, lead: {lead}}}"]
    return "\n".join(lines) + "\n"
