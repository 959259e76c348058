"""A server that is killed: starts gangs as GPUs become free, until all of them are over.

`python -m tests.local.crashing FOLDER MARKS GANGS`. It keeps nothing in mind; what an earlier one
has started it is told again, as a real server is by its database.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from bough.backends.local.backend import LocalBackend
from bough.backends.local.options import LocalOptions
from bough.model.backend import Launch, Sight, Start
from bough.model.task_template import TaskTemplate
from tests.local.bench import OVER, now_ms

GPUS = 8
GANG = 2
GPUS_EACH = 2
#: Says that it runs, takes its GPUs for itself alone (or fails), and gives them back.
SCRIPT = """
echo "$CUDA_VISIBLE_DEVICES" >> "$MARKS/ran-$BOUGH_TASK"
for gpu in $(echo $CUDA_VISIBLE_DEVICES | tr , ' '); do
    mkdir "$MARKS/gpu-$gpu" || exit 66
done
echo "$BOUGH_TASK"
sleep 0.0$((RANDOM_LIKE % 10))
for gpu in $(echo $CUDA_VISIBLE_DEVICES | tr , ' '); do rmdir "$MARKS/gpu-$gpu"; done
"""


def options(folder: Path) -> LocalOptions:
    return LocalOptions(folder=folder, gpus=GPUS, private=False, limits=False)


def gang(number: int, node: str, marks: Path) -> Start:
    launches = tuple(
        Launch(
            attempt=f"crash-{number}-{member}/0",
            name=f"task-{number}-{member}",
            node=node,
            gpus=GPUS_EACH,
            spec=TaskTemplate(
                command=("/bin/sh", "-c", SCRIPT),
                environment={"MARKS": str(marks), "RANDOM_LIKE": str(number * 7 + member * 3)},
            ),
        )
        for member in range(GANG)
    )
    return Start(f"flow-{number}", "group", launches)


def drive(backend: LocalBackend, bell: threading.Event, marks: Path, gangs: int) -> None:
    """Start gang after gang as there is room, and let them end."""
    node = backend.nodes()[0].name
    starts = [gang(number, node, marks) for number in range(gangs)]
    reminded: set[str] = set()
    while True:
        seen = {each.attempt: each.sight for each in backend.observe()}
        used = GPUS_EACH * sum(sight not in OVER for sight in seen.values())
        for start in starts:
            sights = [seen.get(launch.attempt) for launch in start.launches]
            if all(sight in OVER for sight in sights):
                continue
            new = sights.count(None) * GPUS_EACH
            again = start.workflow_id not in reminded and Sight.STARTING in sights
            if (new and used + new <= GPUS) or again:
                backend.start(start)
                reminded.add(start.workflow_id)
                used += new
        if len(seen) == gangs * GANG and all(sight in OVER for sight in seen.values()):
            return
        bell.wait(0.05)
        bell.clear()


def main(folder: Path, marks: Path, gangs: int) -> None:
    bell = threading.Event()
    backend = LocalBackend(options(folder), now_ms, bell.set)
    drive(backend, bell, marks, gangs)
    backend.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
