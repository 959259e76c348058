"""Running things at the same time, in threads and in processes of their own."""

from __future__ import annotations

import json
import math
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from bough.control.pools import subpools
from bough.control.site import Site
from bough.control.workflows import cancelling, query
from bough.control.workflows.submission import submit
from bough.errors import BoughError
from bough.model.access import Actor
from bough.model.subpool import SubpoolState
from bough.model.workflow import ALIVE
from bough.store import Store
from tests.store.world import World, job
from tests.warm import Program

#: Deletes and submissions that race at the same time, each pair for a subpool of its own.
PAIRS = 8
#: By how much submissions come before half of the deletes, at most.
HEAD_START_S = 0.02
ADMIN = Actor("root", ("osmo-admin", "osmo-default"))


def at_once(*actions: Callable[[], object]) -> list[object]:
    """Do all of these at the same time; what each gave, or the status that it was refused with."""
    barrier = threading.Barrier(len(actions))

    def attempt(action: Callable[[], object]) -> object:
        barrier.wait(30)
        time.sleep(random.random() / 1_000)
        try:
            return action()
        except BoughError as error:
            return error.http_status

    with ThreadPoolExecutor(len(actions)) as executor:
        return list(executor.map(attempt, actions))


def race_deletes_with_submissions(world: World, interleavings: int, pairs: int = PAIRS) -> int:
    """Scenario 104: delete subpools of `team` while others submit to them, several at a time.

    Whatever was accepted is counted, and what is archived is empty; how often one was refused.
    """
    names = [f"s{number}" for number in range(pairs)]
    refused = 0
    for _ in range(math.ceil(interleavings / pairs)):
        world.split(**dict.fromkeys(names, 5))
        results = at_once(*(each for name in names for each in _delete_and_submit(world, name)))
        for name, deleted, accepted in zip(names, results[::2], results[1::2], strict=True):
            alive = _alive(world, name)
            if accepted == 409:
                assert (SubpoolState.ARCHIVED, []) == (deleted, alive)
                refused += 1
            else:
                assert (SubpoolState.DELETING, [accepted]) == (deleted, alive)
                cancelling.cancel(world.site, world.admin, str(accepted))
            assert SubpoolState.ARCHIVED is world.state(name)
        assert {"_shared": 100} == world.leaf_quotas()
        assert world.invariant_holds()
    return refused


def create_in_processes(url: str, names: Sequence[str], quota: int, processes: int) -> list[object]:
    """Create subpools of `team` from several processes, each with several threads."""
    parts = [list(names[number::processes]) for number in range(processes)]
    program = "import sys; from tests.store.racers import main; main(*sys.argv[1:])"
    running = [Program(program, url, str(quota), *part) for part in parts]
    return [result for process in running for result in json.loads(process.output())]


def _delete_and_submit(world: World, name: str) -> tuple[Callable[[], object], ...]:
    def delete() -> object:
        # Submissions that are checked again, as a subpool has changed, come after all deletes that
        # wait: without a start before them none would be accepted on a machine that is idle.
        time.sleep(random.choice((0, HEAD_START_S)) * random.random())
        return world.delete(name).state

    def accept() -> object:
        accepted = submit(world.site, world.admin, f"team--{name}", job(5)).workflow
        return None if accepted is None else accepted.workflow_id

    return delete, accept


def _alive(world: World, name: str) -> list[str]:
    wanted = query.Filter(pools=(f"team--{name}",), statuses=ALIVE)
    found = query.list_workflows(world.site, world.admin, wanted).workflows
    return [each.workflow_id for each in found]


def main(url: str, quota: str, *names: str) -> None:
    """Create these subpools at the same time and say how each went."""
    site = Site(Store.open(url), namespace="ns")

    def create(name: str) -> Callable[[], object]:
        def action() -> object:
            subpools.create_subpool(site, ADMIN, "team", name, int(quota))
            return "created"

        return action

    results = at_once(*(create(name) for name in names))
    site.store.close()
    sys.stdout.write(json.dumps(results))
