"""Which unfinished groups were preempted for which others, from the events of their workflows.

For policies by which a gang takes nothing back from the gangs that it gave way to
(`gives_way_once`). The events are stored, so a new loop, or another server, knows it too. It is
dropped when the group ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sqlalchemy as sa

from bough.control.gangs_of_groups import gang_name
from bough.control.scheduling.live_workflows import LiveGroup
from bough.control.workflows.preemptions import PreemptionRecord, preemptions_of
from bough.core.cycle.gave_way import GaveWay
from bough.model.policy import Policy


class GroupsThatGaveWay:
    """Groups that gave way, kept in step with the store; reads nothing if no policy needs it."""

    def __init__(self) -> None:
        #: By group uuid: its gang, and the gangs that it was preempted for.
        self._records: dict[str, tuple[str, list[PreemptionRecord]]] = {}
        self._known: dict[str, tuple[str, ...]] | None = {}

    @property
    def known(self) -> Mapping[str, tuple[str, ...]]:
        """By gang: the gangs that it was preempted for, directly or through others."""
        if self._known is None:
            gave_way = GaveWay()
            for _, (gang, records) in sorted(self._records.items()):
                for each in records:
                    gave_way.add(gang, each.preemptor, each.rule)
            self._known = {gang: gave_way.to(gang) for gang in gave_way}
        return self._known

    def refresh(
        self,
        connection: sa.Connection,
        policy: Policy,
        groups: Mapping[str, LiveGroup],
        touched: Iterable[str] | None,
    ) -> None:
        """Read about the groups in `touched`; `None`: about all."""
        if touched is None or not policy.gives_way_once:
            touched = groups if policy.gives_way_once else ()
            self.clear()
        for uuid in touched:
            if self._records.pop(uuid, None) is not None:
                self._known = None
        ended = {
            uuid: groups[uuid]
            for uuid in touched
            if uuid in groups and _was_told_to_end(groups[uuid])
        }
        if ended:
            self._read(connection, ended)

    def clear(self) -> None:
        """Forget everything."""
        self._records.clear()
        self._known = {}

    def _read(self, connection: sa.Connection, groups: Mapping[str, LiveGroup]) -> None:
        workflows = sorted({each.workflow.workflow_id for each in groups.values()})
        found = preemptions_of(connection, workflows)
        for uuid, each in groups.items():
            records = found.get((each.workflow.workflow_id, each.group.name))
            if records:
                self._records[uuid] = gang_name(each.workflow, each.group), records
                self._known = None


def _was_told_to_end(group: LiveGroup) -> bool:
    """Whether any task has ended before; only such groups may have been preempted."""
    return any(task.retry_id or task.releasing is not None for task in group.tasks)
