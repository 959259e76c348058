"""Short workflows whose tasks tell a witness when they start and end."""

from __future__ import annotations

import json
from random import Random
from typing import NamedTuple

#: Between two lines that a task prints; it notices a signal as late as that.
PAUSE_S = 0.05
#: Lines that a task prints at once, right before its end.
LAST_LINES = 50
#: How a task says that it ended because it was told to.
TOLD_TO_END = 75

# The shell's own commands alone: a child would hold the connection open after its parent's end.
# What the witness is told at the end, how many lines were printed, is what the log must have.
_SCRIPT = """\
exec 3<>/dev/tcp/127.0.0.1/{port} || exit 99
i=0 word=done code={code}
trap 'word=told code={told}' TERM
echo "start $BOUGH_ATTEMPT ${{CUDA_VISIBLE_DEVICES:-none}} {job} {task} $EPOCHREALTIME" >&3
while [ $i -lt {lines} ] && [ $word = done ]; do
  read -r -t {pause} -u 3 _
  i=$((i + 1))
  echo "line $i"
done
trap '' TERM
if [ $word = done ]; then
  while [ $i -lt {all_lines} ]; do i=$((i + 1)); echo "line $i"; done
fi
echo "$word $i $EPOCHREALTIME" >&3
exit $code
"""


class TaskPlan(NamedTuple):
    """One task: what it holds, for how long, and how it ends."""

    name: str
    gpus: int = 1
    lines: int = 4
    exit_code: int = 0
    lead: bool = True


class GroupPlan(NamedTuple):
    """A gang; it may wait for another."""

    name: str
    tasks: tuple[TaskPlan, ...]
    after: str | None = None


class Job(NamedTuple):
    """A workflow to submit."""

    name: str
    pool: str
    priority: str
    groups: tuple[GroupPlan, ...]

    @property
    def fails(self) -> bool:
        """Whether it ends badly when it is left alone."""
        return any(task.exit_code for group in self.groups for task in group.tasks)

    @property
    def tasks(self) -> dict[str, TaskPlan]:
        """All its tasks, by name."""
        return {task.name: task for group in self.groups for task in group.tasks}

    def text(self, port: int) -> str:
        """The workflow as it is submitted; its tasks talk to a witness at a port."""
        sizes = sorted({task.gpus for task in self.tasks.values()})
        resources = {f"g{gpus}": {"gpu": gpus, "cpu": 0, "memory": "0Gi"} for gpus in sizes}
        groups = [self._group(group, port) for group in self.groups]
        # JSON is YAML, and leaves nothing to guess about quotes.
        return json.dumps(
            {"workflow": {"name": self.name, "resources": resources, "groups": groups}}
        )

    def _group(self, group: GroupPlan, port: int) -> dict[str, object]:
        return {
            "name": group.name,
            "tasks": [self._task(task, group.after, port) for task in group.tasks],
        }

    def _task(self, task: TaskPlan, after: str | None, port: int) -> dict[str, object]:
        script = _SCRIPT.format(
            port=port,
            job=self.name,
            task=task.name,
            lines=task.lines,
            all_lines=task.lines + LAST_LINES,
            pause=PAUSE_S,
            code=task.exit_code,
            told=TOLD_TO_END,
        )
        document: dict[str, object] = {
            "name": task.name,
            "lead": task.lead,
            "image": "any",
            "resource": f"g{task.gpus}",
            "command": ["bash", "-c"],
            "args": [script],
        }
        if after is not None:
            document["inputs"] = [{"task": after}]
        return document


def make_job(random: Random, name: str, pool: str) -> Job:
    """Any of the kinds: a single task, a gang, one group after another; a few of them fail."""
    priority = random.choice(("HIGH", "NORMAL", "NORMAL", "LOW", "LOW", "LOW"))
    code = 3 if random.random() < 0.1 else 0
    kind = random.choice(("single", "single", "gang", "line"))
    if kind == "single":
        groups = (
            GroupPlan("one", (TaskPlan("main", random.choice((1, 1, 2)), _lines(random), code),)),
        )
    elif kind == "gang":
        groups = (GroupPlan("all", _gang(random, "rank", code)),)
    else:
        first = GroupPlan("first", (TaskPlan("before", 1, _lines(random)),))
        groups = (first, GroupPlan("second", _gang(random, "after", code, 2), after="before"))
    return Job(name, pool, priority, groups)


def _gang(random: Random, name: str, code: int, most: int = 4) -> tuple[TaskPlan, ...]:
    lines = _lines(random)
    size = random.randint(2, most)
    lead = TaskPlan(f"{name}-0", 1, lines, code)
    return (lead, *(TaskPlan(f"{name}-{n}", 1, lines, lead=False) for n in range(1, size)))


def _lines(random: Random) -> int:
    """From 0.1 to 2 seconds, most of them short."""
    return random.choice((2, 2, 4, 4, 8, 16, 40))
