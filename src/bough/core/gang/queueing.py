"""Whether the queue that a gang names takes gangs: an existing leaf below existing queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.model.fairqueue import QueueObstacle, QueueObstacleKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bough.model.fairqueue import FairQueue


def queue_obstacle(name: str, queues: Mapping[str, FairQueue]) -> QueueObstacle | None:
    """Why a gang of this queue waits, whatever room there is; `None` where nothing is wrong."""
    if not name:
        return QueueObstacle(QueueObstacleKind.UNNAMED, name)
    queue = queues.get(name)
    if queue is None:
        return QueueObstacle(QueueObstacleKind.MISSING, name)
    below = tuple(child.name for child in queues.values() if child.parent == name)
    if below:
        return QueueObstacle(QueueObstacleKind.INNER, name, below)
    line = [name]
    while queue.parent is not None:
        if queue.parent not in queues:
            return QueueObstacle(QueueObstacleKind.ORPHAN, name, (queue.parent,))
        if queue.parent in line:
            cycle = line[line.index(queue.parent) :]
            return QueueObstacle(QueueObstacleKind.CYCLE, name, tuple(cycle))
        line.append(queue.parent)
        queue = queues[queue.parent]
    return None
