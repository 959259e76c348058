"""One group of a workflow: its tasks, its lead, and its gang, as they are written.

How a gang is made up can be said in three ways: in the words of a PodGroup, by tasks that are there
so many times, and by topologies of resources. All end as a PodGroup; whether that is right and what
it means is decided in `core.gang`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from bough.errors import Invalid
from bough.formats.kai.pod_group import GANG_FIELDS, read_gang
from bough.formats.workflow.resources import Arrangement, NamedResources, arrange, unique_name
from bough.formats.workflow.task import ReadTask, read_task
from bough.formats.workflow.values import read_name
from bough.model.pod_group import PodGroup, SubGroupSpec
from bough.model.workflow import GroupSpec, TaskSpec

if TYPE_CHECKING:
    from bough.formats.yaml.fields import Fields

#: The subgroup of the tasks that are there whatever happens, beside those that come and go.
FIXED = "fixed"


class ReadGroup(NamedTuple):
    """A group, and what has to be checked about it elsewhere."""

    spec: GroupSpec
    #: Those of a lone task are the task's own.
    fields: Fields
    members: tuple[ReadTask, ...]
    #: Its gang; `None`: it is not described, and all of its tasks are needed.
    gang: PodGroup | None = None

    @property
    def size(self) -> tuple[int, int]:
        """How many tasks it has, and the bytes that they take where they are kept."""
        return _size(self.members)


#: What a workflow may take where it is kept, all its tasks written out.
MAXIMUM_BYTES = 16 << 20


class WorkflowLimits(NamedTuple):
    """What holds for all tasks of a workflow."""

    wanted: dict[str, NamedResources]
    maximum_tasks: int
    #: Files may still be on the user's machine.
    uploading: bool

    def check(self, count: int, written_bytes: int) -> None:
        """Refuse a workflow that is far too large before all of it is read."""
        if count > self.maximum_tasks:
            raise Invalid(
                f"The workflow has {count} tasks or more; at most {self.maximum_tasks} are allowed."
            )
        if written_bytes > MAXIMUM_BYTES:
            raise Invalid(
                f"The tasks of the workflow take {written_bytes:,} bytes or more, each replica "
                "with its own files, arguments, environment and resources written out; at most "
                f"{MAXIMUM_BYTES:,} are possible."
            )


def read_lone_task(fields: Fields, limits: WorkflowLimits) -> ReadGroup:
    """Read a task outside of groups, which is a group of its own."""
    member = _read_member(fields, limits, lone=True)
    limits.check(member.times, member.written_bytes)
    return _gather(fields, f"{member.task.name}-group", (member,), None)


def read_group(fields: Fields, limits: WorkflowLimits) -> ReadGroup:
    """Read a group of tasks."""
    # Every group starts together, with or without it.
    fields.boolean("barrier", default=True)
    entries = fields.children("tasks")
    limits.check(len(entries), 0)
    members = tuple(_read_member(each, limits, lone=len(entries) == 1) for each in entries)
    limits.check(*_size(members))
    name = read_name(fields)
    leads = sum(member.task.lead for member in members)
    if members and leads != 1:
        fields.error("tasks", f"exactly one task is the lead of a group, not {leads}")
    if not members:
        fields.error("tasks", "a group has at least one task")
    written = _read_gang(fields, name, 2 * limits.maximum_tasks)
    read = _gather(fields, name, members, written)
    ignore = fields.boolean("ignoreNonleadStatus", default=True)
    return read._replace(spec=msgspec.structs.replace(read.spec, ignore_nonlead_status=ignore))


def _size(members: tuple[ReadTask, ...]) -> tuple[int, int]:
    return sum(each.times for each in members), sum(each.written_bytes for each in members)


def _read_gang(fields: Fields, name: str, maximum: int) -> PodGroup | None:
    """What the group says itself; `None`: nothing."""
    said = any(each in fields for each in GANG_FIELDS)
    fields.ignore(*GANG_FIELDS)
    written = read_gang(fields, name) if said else None
    if written is not None and len(written.subgroups) > maximum:
        count = len(written.subgroups)
        fields.error("subGroups", f"are {count}; at most {maximum} are possible")
    return written


def _read_member(fields: Fields, limits: WorkflowLimits, *, lone: bool) -> ReadTask:
    return read_task(
        fields,
        limits.wanted,
        lone=lone,
        uploading=limits.uploading,
        maximum=limits.maximum_tasks,
    )


def _gather(
    fields: Fields, name: str, members: tuple[ReadTask, ...], written: PodGroup | None
) -> ReadGroup:
    """Put the tasks of a group together, and find the one way in which its gang is made up."""
    arrangement = arrange(fields, [each.levels for each in members])
    elastic = [each for each in members if each.replicas is not None and each.replicas.elastic]
    _check_ways(fields, written, elastic, arrangement)
    if written is None or not written.subgroups:
        for each in members:
            if each.task.subgroup is not None:
                each.fields.error("subGroup", f"group {name} has no subGroups")
    if elastic and (written is None or not _counts(written)):
        tasks, gang = _ranges(name, members)
        if written is not None:
            gang = msgspec.structs.replace(
                gang, constraint=written.constraint, constraints=written.constraints
            )
    else:
        tasks, gang = _all_tasks(members), written
    if arrangement.subgroups:
        gang = PodGroup(name, subgroups=_counted(arrangement, members))
        tasks = _placed(members, arrangement.leaves)
    if arrangement.constraint is not None:
        gang = msgspec.structs.replace(
            gang or PodGroup(name, min_member=max(len(tasks), 1)), constraint=arrangement.constraint
        )
    spec = GroupSpec(name, tasks, levels=arrangement.levels)
    return ReadGroup(spec, fields, members, gang)


def _check_ways(
    fields: Fields, written: PodGroup | None, elastic: list[ReadTask], arrangement: Arrangement
) -> None:
    """Refuse what says two things about one gang."""
    if written is not None:
        for each in elastic if _counts(written) else ():
            each.fields.error(
                "replicas",
                "are a range, and the group says itself how many it needs; keep one of them"
                " (a subgroup has minMember)",
            )
        topological = written.constraint or written.constraints.fallback
        if arrangement.levels and (written.subgroups or topological or written.constraints.sets):
            fields.error(
                "tasks",
                "the topology of their resources and what the group says about subGroups or"
                " topology cannot be used together",
            )
    if elastic and arrangement.subgroups:
        elastic[0].fields.error(
            "replicas",
            "are a range, but the topology of the group's resources divides it into several"
            " domains; use subGroups with a minMember each",
        )
    if written is not None and written.min_member is not None and arrangement.subgroups:
        fields.error(
            "minMember",
            "counts tasks, but the topology of the group's resources divides it into several"
            " domains; use subGroups with a minMember each",
        )


def _counts(written: PodGroup) -> bool:
    """Whether a group says itself how much it needs, and not only what must stay together."""
    return bool(written.subgroups) or (written.min_member, written.min_sub_group) != (None, None)


def _all_tasks(members: tuple[ReadTask, ...]) -> tuple[TaskSpec, ...]:
    return tuple(task for each in members for task in each.tasks)


def _ranges(name: str, members: tuple[ReadTask, ...]) -> tuple[tuple[TaskSpec, ...], PodGroup]:
    """Each task with a range counts for itself; all others are always needed."""
    if len(members) == 1 and members[0].replicas is not None:
        return _all_tasks(members), PodGroup(name, min_member=members[0].replicas.least)
    taken: set[str] = set()
    tasks: list[TaskSpec] = []
    subgroups: list[SubGroupSpec] = []
    fixed: list[int] = []
    for each in members:
        if each.replicas is None or not each.replicas.elastic:
            fixed += range(len(tasks), len(tasks) + len(each.tasks))
            tasks += each.tasks
            continue
        subgroup = unique_name(each.task.name, taken)
        subgroups.append(SubGroupSpec(subgroup, min_member=each.replicas.least))
        tasks += [msgspec.structs.replace(task, subgroup=subgroup) for task in each.tasks]
    if fixed:
        subgroup = unique_name(FIXED, taken)
        subgroups.insert(0, SubGroupSpec(subgroup, min_member=len(fixed)))
        for index in fixed:
            tasks[index] = msgspec.structs.replace(tasks[index], subgroup=subgroup)
    return tuple(tasks), PodGroup(name, subgroups=tuple(subgroups))


def _placed(members: tuple[ReadTask, ...], leaves: tuple[str, ...]) -> tuple[TaskSpec, ...]:
    return tuple(
        msgspec.structs.replace(task, subgroup=leaf)
        for each, leaf in zip(members, leaves, strict=True)
        for task in each.tasks
    )


def _counted(arrangement: Arrangement, members: tuple[ReadTask, ...]) -> tuple[SubGroupSpec, ...]:
    """The subgroups with the tasks counted, of which a member may stand for several."""
    counts: dict[str, int] = {}
    for each, leaf in zip(members, arrangement.leaves, strict=True):
        counts[leaf] = counts.get(leaf, 0) + len(each.tasks)
    return tuple(
        msgspec.structs.replace(each, min_member=counts.get(each.name))
        for each in arrangement.subgroups
    )
