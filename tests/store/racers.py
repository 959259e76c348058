"""Running things at the same time, in threads and in processes of their own."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from bough.control import subpools
from bough.control.site import Site
from bough.errors import BoughError
from bough.model.access import Actor
from bough.store import Store

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


def create_in_processes(url: str, names: Sequence[str], quota: int, processes: int) -> list[object]:
    """Create subpools of `team` from several processes, each with several threads."""
    parts = [list(names[number::processes]) for number in range(processes)]
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.store.racers", url, str(quota), *part],
            stdout=subprocess.PIPE,
            text=True,
        )
        for part in parts
    ]
    outputs = [process.communicate(timeout=120)[0] for process in running]
    return [result for output in outputs for result in json.loads(output)]


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


if __name__ == "__main__":
    main(*sys.argv[1:])
