"""The data of pools that tasks name, as the process that decides sees it."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from bough.control.scheduling.data_access import read_spaces
from bough.control.setup_cache import Kept
from bough.model.pool_data import PoolSpace
from bough.model.task_template import OutputSpec, TaskTemplate
from bough.store import tasks as task_store
from tests.store.world import World


@pytest.mark.postgresql
def test_a_pool_that_another_process_has_just_made_is_known(world: World):
    elsewhere = replace(world.site, kept=Kept())
    elsewhere.kept.latest_setup(elsewhere.store)
    world.pool("fresh")
    workflow = world.submit(1, "fresh")
    with world.site.store.read() as connection:
        (group,) = task_store.groups_of(connection, [workflow.uuid])
    (task,) = group.spec.tasks
    launch = TaskTemplate(command=("true",), outputs=(OutputSpec(url="bough://fresh/out"),))
    spec = msgspec.structs.replace(
        group.spec, tasks=(msgspec.structs.replace(task, launch=launch),)
    )
    named = msgspec.structs.replace(group, spec=spec)

    found = read_spaces(elsewhere, [named], {workflow.uuid: workflow})

    assert isinstance(found[workflow.uuid]["fresh"], PoolSpace)
