"""`python -m tests.crash.disk FOLDER SEED`: a server whose disk becomes full under load.

Run in a mount namespace of its own (`unshare --mount`), in which the data folder is a small disk.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tests.crash.crashes import Scene, scene
from tests.crash.jobs import GroupPlan, Job, TaskPlan
from tests.crash.laws import FOLLOWED_OR_LOST
from tests.crash.load import POOL, Answer
from tests.crash.server import until

SIZE = "24m"
#: How long the load goes on before the disk is full, while it is, and after that.
PART_S = 4.0


def main(folder: Path, seed: int) -> None:
    """Fill the disk, see that nothing is taken that cannot be kept, and go on with more room."""
    data = folder / "data"
    data.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(data)]
    subprocess.run(mount, check=True)
    with scene(folder, seed) as now:
        with now.load.running():
            time.sleep(PART_S)
            filler = data / "filler"
            _fill(filler)
            # A little can still be written where something else was before.
            until(lambda: _submit_alone(now, "full").status == 503, "it is refused")
            time.sleep(PART_S)
            filler.unlink()
            until(lambda: _submit_alone(now, "room").kind == "done", "there is room again")
            time.sleep(PART_S)
        now.settle(FOLLOWED_OR_LOST, lines_may_be_lost=True)


def _fill(path: Path) -> None:
    """Leave nothing, down to the last byte."""
    with path.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


def _submit_alone(now: Scene, name: str) -> Answer:
    job = Job(name, POOL, "NORMAL", (GroupPlan("one", (TaskPlan("main"),)),))
    number = sum(each.startswith(name) for each in now.load.jobs)
    job = job._replace(name=f"{name}-{number}")
    return now.load.submit(now.server.client(), job)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
