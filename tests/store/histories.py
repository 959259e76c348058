"""Random histories of a whole site, under a backend with moods, and the laws that hold in all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from random import Random

from bough.control.config import settings
from bough.control.nodes import node_cordon, node_list
from bough.control.scheduling.loop import Scheduler
from bough.control.workflows import cancelling, query
from bough.control.workflows.restarting import restart
from bough.control.workflows.submission import submit
from bough.errors import BoughError, Conflict
from bough.model.backend import Launch, Observation, Sight, Start, Stop
from bough.model.cluster import Resources
from bough.model.pool import OfferedNode
from bough.model.workflow import (
    Group,
    GroupSpec,
    Priority,
    Task,
    TaskSpec,
    TaskStatus,
    Workflow,
    WorkflowSpec,
)
from bough.store import tasks as task_store
from tests.store.world import World, big_node

#: Longer than a gang may run without what it needs, with a cycle before and after.
STALE_MS = 100_000
ACTIONS = ({}, {"RESCHEDULE": "3"}, {"RESCHEDULE": "3,3003"}, {"FAIL": "3006"})


class Run:
    """One attempt on a node."""

    def __init__(self, launch: Launch | None, sight: Sight, now_ms: int) -> None:
        self.launch = launch
        self.sight = sight
        self.at_ms = now_ms
        self.exit_code: int | None = None
        #: When it is killed, once it was told to end.
        self.due_ms: int | None = None

    @property
    def alive(self) -> bool:
        return self.sight in (Sight.STARTING, Sight.RUNNING)


class Moody:
    """Tasks that start, end, fail, vanish and obey at random."""

    name = "default"
    machine = None

    def __init__(self, random: Random, now_ms: Callable[[], int], offered: Iterable[OfferedNode]):
        self.random = random
        self.now_ms = now_ms
        self.offered = tuple(offered)
        self.runs: dict[str, Run] = {}
        #: Nothing goes wrong any more, and everything ends soon.
        self.calm = False

    def nodes(self) -> tuple[OfferedNode, ...]:
        return self.offered

    def read_log(self, attempt: str, position: int = 0, *, last_lines: int | None = None) -> None:
        """It writes nothing."""

    def open_session(self, attempt: str, wanted: object) -> int:
        raise Conflict(f"nothing of {attempt} can be entered: {wanted}")

    def used_by_others(self) -> dict[str, object]:
        return {}

    def lead(self, leadership: object) -> None:
        """It obeys every server: a history has one at a time."""

    def start(self, start: Start) -> None:
        for launch in start.launches:
            if launch.attempt in self.runs:
                continue
            lost = launch.started_ms is not None
            twice = [each for each in self.runs if self.runs[each].alive and _same(each, launch)]
            assert lost or not twice, f"{launch.attempt} runs beside {twice}"
            sight = Sight.LOST if lost else Sight.STARTING
            self.runs[launch.attempt] = Run(launch, sight, self.now_ms())

    def stop(self, stop: Stop) -> None:
        due_ms = self.now_ms() + stop.grace_s * 1_000
        for attempt in stop.attempts:
            run = self.runs.setdefault(attempt, Run(None, Sight.ENDED, self.now_ms()))
            run.due_ms = due_ms if run.due_ms is None else min(run.due_ms, due_ms)

    def observe(self) -> tuple[Observation, ...]:
        return tuple(
            Observation(attempt, run.sight, run.at_ms, run.exit_code)
            for attempt, run in self.runs.items()
        )

    def forget(self, attempts: tuple[str, ...]) -> None:
        for attempt in attempts:
            self.runs.pop(attempt, None)

    def step(self) -> None:
        """Let a little time pass."""
        for run in self.runs.values():
            if run.alive:
                self._move(run, self.random.random())

    def lose(self, node: str, *, quietly: bool) -> None:
        """A node is gone, and perhaps even what was known of its tasks."""
        self.offered = tuple(each for each in self.offered if each.name != node)
        for attempt, run in list(self.runs.items()):
            if run.launch is not None and run.launch.node == node and run.alive:
                self._see(run, Sight.LOST)
                if quietly:
                    del self.runs[attempt]

    def _move(self, run: Run, mood: float) -> None:
        if run.due_ms is not None:
            if self.now_ms() >= run.due_ms:
                self._see(run, Sight.ENDED, 137)
            elif mood < 0.3:
                self._see(run, Sight.ENDED, self.random.choice((0, 1, 143)))
        elif run.sight is Sight.STARTING:
            if mood < 0.7:
                self._see(run, Sight.RUNNING)
            elif mood < 0.72 and not self.calm:
                self._see(run, Sight.UNSTARTABLE)
        elif mood < (0.5 if self.calm else 0.05):
            self._see(run, Sight.ENDED, 0)
        elif mood < 0.08 and not self.calm:
            self._see(run, Sight.ENDED, self.random.choice((1, 3)))
        elif mood < 0.085 and not self.calm:
            self._see(run, Sight.LOST)

    def _see(self, run: Run, sight: Sight, exit_code: int | None = None) -> None:
        run.sight, run.at_ms, run.exit_code = sight, self.now_ms(), exit_code


def _same(attempt: str, launch: Launch) -> bool:
    return attempt.rpartition("/")[0] == launch.attempt.rpartition("/")[0]


class History:
    """A site to which things happen."""

    def __init__(self, world: World, seed: int) -> None:
        self.random = random = Random(seed)
        self.world = world
        self.all_nodes = [big_node(random.choice((2, 4)), f"n{each}") for each in range(3)]
        self.gpus = sum(each.gpus for each in self.all_nodes)
        self.backend = Moody(random, world.time.now_ms, self.all_nodes)
        self.submitted: list[Workflow] = []
        self._stale: dict[str, int] = {}
        self._start_server()
        world.pool("p", self.gpus // 2)
        world.pool("q", self.gpus - self.gpus // 2)
        retries = {"max_retry_per_task": random.choice((0, 1, 3))}
        settings.patch_workflow_settings(world.site, world.admin, retries)

    def go_on(self) -> None:
        """Something happens, and the scheduler sees it sooner or later."""
        self.world.time.ms += self.random.choice((1, 500, 3_000, 10_000))
        happening = self.random.choices(
            (self._submit, self._cancel, self._drain, self._uncordon, self._lose, self._find,
             self._start_server, self._restart, lambda: None),
            (35, 5, 3, 7, 3, 5, 3, 2, 37),
        )[0]  # fmt: skip
        # A request that cannot be met is refused, and changes nothing.
        with suppress(BoughError):
            happening()
        if self.random.random() < 0.2:
            # A plan that does not know what has ended meanwhile.
            self.backend.step()
            self.world.scheduler._decide()
        self.cycle()

    def cycle(self) -> None:
        self.backend.step()
        self.world.scheduler.cycle()
        self._check()

    def end(self) -> list[str]:
        """Let everything come to its end; the workflows that do not."""
        self.backend.calm = True
        self._find()
        self.cycle()
        self._uncordon()
        left = [each for each in self.submitted if self._fits(each)]
        for _ in range(30):
            for _ in range(10):
                self.world.time.ms += 2_000
                self.cycle()
            left = [each for each in left if not self.world.status(each).finished]
            if not left and not any(run.alive for run in self.backend.runs.values()):
                break
        return [each.workflow_id for each in left]

    # What happens

    def _submit(self) -> None:
        spec = WorkflowSpec(
            f"w{len(self.submitted)}",
            tuple(self._group(number) for number in range(self.random.choice((1, 1, 2, 3)))),
            exec_timeout_s=self.random.choice((None, 120)),
            queue_timeout_s=self.random.choice((None, None, 300)),
        )
        pool, priority = self.random.choice("pq"), self.random.choice(list(Priority))
        found = submit(self.world.site, self.world.admin, pool, spec, priority).workflow
        assert found is not None
        self.submitted.append(found)

    def _group(self, number: int) -> GroupSpec:
        random = self.random
        count, gpus = random.choice((1, 1, 2, 3, 4)), random.choice((0, 1, 1, 2))
        tasks = tuple(
            TaskSpec(
                f"g{number}-t{each}",
                Resources(gpus=gpus),
                lead=each == 0,
                exit_actions=random.choice(ACTIONS),
            )
            for each in range(count)
        )
        return GroupSpec(
            f"g{number}",
            tasks,
            upstream=tuple(f"g{each}" for each in range(number) if random.random() < 0.5),
            ignore_nonlead_status=random.random() < 0.6,
            minimum=random.choice((None, random.randint(1, count))),
        )

    def _cancel(self) -> None:
        if self.submitted:
            name, force = self.random.choice(self.submitted).uuid, self.random.random() < 0.3
            cancelling.cancel(self.world.site, self.world.admin, name, force=force)

    def _restart(self) -> None:
        if self.submitted:
            name = self.random.choice(self.submitted).workflow_id
            again = restart(self.world.site, self.world.admin, name).workflow
            assert again is not None
            self.submitted.append(again)

    def _drain(self) -> None:
        name, leave = self.random.choice(self.all_nodes).name, self.random.random() < 0.3
        node_cordon.drain_node(self.world.site, self.world.admin, name, leave=leave)

    def _uncordon(self) -> None:
        site, admin = self.world.site, self.world.admin
        for each in node_list.list_nodes(site, admin):
            node_cordon.set_cordoned(site, admin, each.node.name, cordoned=False)

    def _lose(self) -> None:
        quietly = self.random.random() < 0.5
        self.backend.lose(self.random.choice(self.all_nodes).name, quietly=quietly)

    def _find(self) -> None:
        self.backend.offered = tuple(self.all_nodes)

    def _start_server(self) -> None:
        self.world.scheduler.release()
        self.world.scheduler = Scheduler(self.world.site, (self.backend,))

    # Laws

    def _check(self) -> None:
        with self.world.site.store.read() as connection:
            holding = task_store.holding(connection)
            groups = task_store.unfinished_groups(connection)
            tasks = task_store.tasks_of_unfinished_groups(connection)
        self._check_nodes(holding)
        latest: dict[str, dict[str, Task]] = {}
        for task in tasks:
            latest.setdefault(task.group_uuid, {})[task.name] = task
        for group in groups:
            self._check_group(group, list(latest[group.uuid].values()))

    def _check_nodes(self, holding: list[Task]) -> None:
        """No GPU is given twice; what runs is known, and what is known runs."""
        for node in self.all_nodes:
            assert node.gpus >= sum(task.gpus for task in holding if task.node == node.name)
        known = {task.attempt: task for task in holding}
        for attempt, run in self.backend.runs.items():
            if run.alive:
                assert run.due_ms is not None or attempt in known, f"{attempt} was forgotten"
        for attempt, task in known.items():
            told = self.backend.runs[attempt].due_ms is not None
            assert told == (task.releasing is not None), (task, "was told something else")

    def _check_group(self, group: Group, latest: list[Task]) -> None:
        """A gang is whole or absent, but for a while after it has lost something."""
        holding = [task for task in latest if task.status.holds_node]
        assert group.status is not TaskStatus.SCHEDULING or not holding
        over = sum(task.status.finished for task in latest)
        minimum = len(latest) if group.spec.minimum is None else group.spec.minimum
        if holding and len(holding) < minimum - over and not any(t.releasing for t in holding):
            since_ms = self._stale.setdefault(group.uuid, self.world.time.ms)
            assert self.world.time.ms - since_ms <= STALE_MS, (group, latest)
        else:
            self._stale.pop(group.uuid, None)

    def _fits(self, workflow: Workflow) -> bool:
        """Whether it can ever run: what may borrow is accepted however large it is."""
        view = query.get_workflow(self.world.site, self.world.admin, workflow.uuid)
        return all(
            (group.spec.minimum or len(group.spec.tasks)) * group.spec.tasks[0].requests.gpus
            <= self.gpus
            for group in view.groups
        )
