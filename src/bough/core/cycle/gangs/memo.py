"""What a cycle over gangs may keep for the next one: the working copy, and the last plan.

The working copy is brought in step with a snapshot by what changed between two of them, which is
seen by identity; what a cycle tries on it is undone. So a memo never changes a plan. Must not know
what is decided.
"""

from __future__ import annotations

import msgspec

from bough.core.cycle.gangs.world import World
from bough.model.gang import Gang
from bough.model.gangrules import GangRules
from bough.model.plan import Plan
from bough.model.snapshot import Snapshot


class GangMemo:
    """Carried from cycle to cycle by whoever calls `plan`."""

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None
        self._rules: GangRules | None = None
        self._world: World | None = None
        self._gangs: dict[str, tuple[Gang, ...]] = {}
        self._plan: Plan | None = None

    def recall(self, snapshot: Snapshot, rules: GangRules) -> Plan | None:
        """The last plan, if nothing that it depends on has changed."""
        before, plan, world = self._snapshot, self._plan, self._world
        if before is None or plan is None or world is None or rules != self._rules:
            return None
        if not _same_frame(before, snapshot) or not _same_gangs(before.gangs, snapshot.gangs):
            return None
        if before.progress != snapshot.progress:
            return None
        if before.now_ms != snapshot.now_ms and world.time_matters:
            return None
        return msgspec.structs.replace(plan, version=snapshot.version)

    def refresh(self, snapshot: Snapshot, rules: GangRules) -> World:
        """The working copy, in step with a snapshot."""
        world = self._world
        if world is None or rules != self._rules or not _same_frame(self._snapshot, snapshot):
            world = World(snapshot, rules)
            self._gangs = {}
        _step(world, self._gangs, snapshot.gangs)
        world.begin(snapshot)
        self._world, self._rules, self._snapshot = world, rules, snapshot
        self._gangs = snapshot.gangs
        self._plan = None
        return world

    def remember(self, plan: Plan) -> Plan:
        """Keep the plan for as long as nothing changes."""
        self._plan = plan
        return plan


def _same_frame(before: Snapshot | None, after: Snapshot) -> bool:
    """Whether queues and nodes are the very same."""
    return (
        before is not None
        and before.cohorts is after.cohorts
        and before.queues is after.queues
        and before.nodes is after.nodes
        and before.topologies is after.topologies
    )


def _same_gangs(before: dict[str, tuple[Gang, ...]], after: dict[str, tuple[Gang, ...]]) -> bool:
    return before is after or (
        before.keys() == after.keys() and all(before[queue] is after[queue] for queue in before)
    )


def _step(
    world: World, before: dict[str, tuple[Gang, ...]], after: dict[str, tuple[Gang, ...]]
) -> None:
    """Let gangs that are gone, or are not what they were, leave; then let the new ones enter."""
    fresh: list[Gang] = []
    for queue in sorted({*before, *after}):
        old, new = before.get(queue, ()), after.get(queue, ())
        if old is new:
            continue
        known = {id(gang) for gang in old}
        kept = {id(gang) for gang in new}
        for gang in old:
            if id(gang) not in kept:
                world.leave(gang.name)
        fresh += [gang for gang in new if id(gang) not in known]
    for gang in fresh:
        world.enter(gang)
