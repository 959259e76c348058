"""What a cycle may keep for the next one: the working copy, and the last plan.

The working copy is brought into step with a snapshot by what changed since the last one, compared
by identity first; what a cycle tries on it is undone. So a memo never changes a plan.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import msgspec

from bough.core.cycle.working_copy import WorkingCopy
from bough.model.gang import Gang
from bough.model.plan import Plan
from bough.model.policy import Policy
from bough.model.snapshot import Snapshot

Gangs = tuple[Gang, ...]

#: How many differences between two rows of gangs are looked for one by one.
MOST_EDITS = 24
#: Stretches of so many gangs are compared at once, then longer ones; a shorter one, gang by gang.
SHORTEST_STEP = 16
#: How far ahead to look for where a row continues after a difference.
LOOK_AHEAD = 8


class Memo:
    """Carried from cycle to cycle by the caller of `plan`; one for each series of snapshots."""

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None
        self._policy: Policy | None = None
        self._copy: WorkingCopy | None = None
        self._gangs: dict[str, Gangs] = {}
        self._plan: Plan | None = None

    def recall(self, snapshot: Snapshot, policy: Policy) -> Plan | None:
        """The last plan, if nothing that it depends on has changed."""
        before, plan, copy = self._snapshot, self._plan, self._copy
        if before is None or plan is None or copy is None or not self._is_policy(policy):
            return None
        if not _same_frame(before, snapshot) or not _same_gangs(before.gangs, snapshot.gangs):
            return None
        if not _same_context(before, snapshot):
            return None
        if before.now_ms != snapshot.now_ms and copy.time_matters:
            return None
        return msgspec.structs.replace(plan, version=snapshot.version)

    @property
    def copy(self) -> WorkingCopy | None:
        """The working copy as it was before the last plan; `None`: nothing is kept."""
        return self._copy

    def refresh(self, snapshot: Snapshot, policy: Policy) -> WorkingCopy:
        """The working copy, in step with a snapshot."""
        copy = self._copy
        # Until everything is in step again, there is no copy that could be used.
        self._copy = self._plan = None
        if copy is not None:
            # What comes and goes between cycles is never undone.
            copy.log.forget()
        if copy is None or not self._is_policy(policy) or not _follows(copy, snapshot):
            copy = WorkingCopy(snapshot, policy)
            self._gangs = {}
        _step(copy, self._gangs, snapshot.gangs)
        copy.begin(snapshot)
        self._policy, self._snapshot = policy, snapshot
        self._gangs = snapshot.gangs
        self._copy = copy
        return copy

    @contextmanager
    def dropped_on_error(self) -> Generator[None]:
        """Keep nothing of a cycle that was broken off: its working copy is half done."""
        try:
            yield
        except BaseException:
            self._copy = self._plan = None
            raise

    def remember(self, plan: Plan) -> Plan:
        """Keep the plan for as long as nothing changes."""
        self._plan = plan
        return plan

    def _is_policy(self, policy: Policy) -> bool:
        return self._policy is policy or self._policy == policy


def _same_frame(before: Snapshot, after: Snapshot) -> bool:
    """Whether queues and nodes are the same."""
    return _same_tree(before, after) and before.nodes == after.nodes


def _same_tree(before: Snapshot, after: Snapshot) -> bool:
    return (
        before.cohorts == after.cohorts
        and before.queues == after.queues
        and before.topologies == after.topologies
    )


def _follows(copy: WorkingCopy, after: Snapshot) -> bool:
    """Bring nodes into step; return whether queues and nodes are the same, but for cordons."""
    before = copy.snapshot
    if not _same_tree(before, after):
        return False
    return before.nodes == after.nodes or copy.take_nodes(before.nodes, after.nodes)


def _same_context(before: Snapshot, after: Snapshot) -> bool:
    """Whether everything else that decisions depend on is equal."""
    return (
        before.progress == after.progress
        and before.parked == after.parked
        and before.flavors == after.flavors
        and before.local_queues == after.local_queues
        and before.namespaces == after.namespaces
        and before.closed == after.closed
        and before.owner_gpu_limits == after.owner_gpu_limits
    )


def _same_gangs(before: dict[str, Gangs], after: dict[str, Gangs]) -> bool:
    return before is after or (
        before.keys() == after.keys() and all(before[queue] is after[queue] for queue in before)
    )


def _step(copy: WorkingCopy, before: dict[str, Gangs], after: dict[str, Gangs]) -> None:
    """Let gangs that are gone, or are not what they were, leave; then let the new ones enter."""
    left: dict[str, Gang] = {}
    come: list[Gang] = []
    for queue, old in before.items():
        if queue not in after:
            left.update((gang.name, gang) for gang in old)
    for queue, new in after.items():
        old = before.get(queue, ())
        if old is not new:
            fewer, more = difference(old, new)
            left.update([(gang.name, gang) for gang in fewer])
            come += more
    fresh: list[Gang] = []
    for gang in come:
        if left.get(gang.name) is gang:
            # It is only elsewhere in its row.
            del left[gang.name]
        else:
            fresh.append(gang)
    for name in left:
        copy.leave(name)
    for gang in fresh:
        copy.enter(gang)


def difference(old: Gangs, new: Gangs) -> tuple[list[Gang], list[Gang]]:
    """Which gangs are only in the one, and which only in the other.

    Long stretches that are the same are passed over at the speed of comparing tuples; in between
    gangs may have come, gone, or be replaced. Where more than a few did, the rest is compared
    whole. A gang that is elsewhere in the row may be among both.
    """
    gone: list[Gang] = []
    come: list[Gang] = []
    left = right = 0
    while left < len(old) and right < len(new):
        if old[left] == new[right]:
            same = _common(old, left, new, right)
            left, right = left + same, right + same
        elif len(gone) + len(come) >= MOST_EDITS:
            return _difference_of_rest(old[left:], new[right:], gone, come)
        else:
            fewer, more = _steps(old, left, new, right)
            gone += old[left : left + fewer]
            come += new[right : right + more]
            left, right = left + fewer, right + more
    gone += old[left:]
    come += new[right:]
    return gone, come


def _steps(old: Gangs, left: int, new: Gangs, right: int) -> tuple[int, int]:
    """How many gangs are gone, and have come, where two rows differ: one of each, if unclear."""
    first, other = old[left], new[right]
    if first.name == other.name:
        return 1, 1
    for step, gang in enumerate(old[left + 1 : left + 1 + LOOK_AHEAD], 1):
        if gang is other:
            return step, 0
    for step, gang in enumerate(new[right + 1 : right + 1 + LOOK_AHEAD], 1):
        if gang is first:
            return 0, step
    return 1, 1


def _difference_of_rest(
    old: Gangs, new: Gangs, gone: list[Gang], come: list[Gang]
) -> tuple[list[Gang], list[Gang]]:
    before = dict(zip(map(id, old), old, strict=True))
    after = dict(zip(map(id, new), new, strict=True))
    left = [before[key] for key in before.keys() - after.keys()]
    fresh = [after[key] for key in after.keys() - before.keys()]
    # By name, as identities come in any order.
    return [*gone, *sorted(left, key=_name)], [*come, *sorted(fresh, key=_name)]


def _common(old: Gangs, left: int, new: Gangs, right: int) -> int:
    """How many gangs are the same from two places on: by growing steps, then by smaller ones.

    The first is known to be. Usually all that follow are the same, too.
    """
    most, others = len(old) - left, len(new) - right
    if most == others and old[left:] == new[right:]:
        return most
    most = min(most, others)
    same, step = 1, SHORTEST_STEP
    while same < most:
        end = min(same + step, most)
        if old[left + same : left + end] != new[right + same : right + end]:
            break
        same, step = end, 4 * step
    else:
        return most
    while step > SHORTEST_STEP:
        step //= 4
        while old[left + same : left + same + step] == new[right + same : right + same + step]:
            same += step
    while old[left + same] == new[right + same]:
        same += 1
    return same


def _name(gang: Gang) -> str:
    return gang.name
