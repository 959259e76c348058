"""Whatever happens to a site, in whatever order: nothing is lost, run twice or kept in part."""

from __future__ import annotations

import pytest

from tests.store.histories import History

STEPS = 50


@pytest.mark.parametrize("seed", range(2))
def test_every_workflow_comes_to_its_end_and_no_law_is_broken(world, seed):
    history = History(world, seed)
    for _ in range(STEPS):
        history.go_on()

    assert [] == history.end()

    for workflow in history.submitted:
        for task in world.tasks(workflow, every=True):
            began_ms = task.started_ms or task.scheduled_ms or 0
            assert not task.status.finished or began_ms <= (task.ended_ms or 0)
