"""A backend on a disk that becomes full: `python -m tests.local.full_disk FOLDER`; prints JSON.

The folder is a small disk of its own.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from pathlib import Path

from bough.model.backend import Sight
from bough.model.task_template import FileSpec
from tests.local.bench import Bench, processes_of, until

#: Fills the disk to the last byte, and says so when there is no room for that.
_FILL = "cat /dev/zero > fill 2> /dev/null; cat /dev/zero > more 2> /dev/null; "


class SupervisorProcess(logging.Handler):
    """Keeps what the server's log says."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def main(folder: Path) -> None:
    kept = SupervisorProcess()
    logging.getLogger("bough").addHandler(kept)
    bench = Bench(folder)
    result: dict[str, object] = {}
    script = "echo before; " + _FILL + "seq 3000; exit 4"
    first = bench.run_shell(script)
    over = bench.wait_over(first)
    result["exit"] = [over.sight.value, over.exit_code]
    result["lines"] = bench.texts(first)

    # What a task wrote for itself is removed after its end.
    until(lambda: not _is_full(folder))
    second = bench.run_shell("trap '' TERM; echo ready; " + _FILL + "sleep 1000")
    until(lambda: "ready" in bench.texts(second))
    until(lambda: _is_full(folder))
    third = bench.shell("echo third")
    try:
        bench.start(third)
        result["refused"] = ""
    except OSError as error:
        result["refused"] = error.strerror
    bench.stop(second)
    over = bench.wait_over(second)
    result["stopped"] = [over.sight.value, over.exit_code, processes_of(second)]
    until(lambda: not _is_full(folder))
    bench.start(third)
    result["again"] = [bench.wait_over(third.attempt).sight.value, bench.texts(third.attempt)]
    result["forgotten"] = _forget(bench, first)
    result["large"] = _start_too_large(bench)
    result["tight"] = _start_with_little_room(bench, folder / "filler")
    result["warnings"] = kept.lines
    bench.end()
    json.dump(result, sys.stdout)


def _start_too_large(bench: Bench) -> list[str]:
    """A file that there is room for once, as it was sent, but not twice."""
    large = FileSpec("large", "x" * (7 * 2**19))
    attempt = bench.run("cat", "large", files=(large,))
    over = bench.wait_over(attempt)
    return [over.sight.value, over.message]


def _start_with_little_room(bench: Bench, filler: Path) -> list[str]:
    """It is taken on, and started as soon as there is room."""

    def room() -> int:
        found = os.statvfs(filler.parent)
        return found.f_bavail * found.f_frsize

    # What was written before is removed by now, or soon.
    until(lambda: room() > 2**20)
    filler.write_bytes(bytes(room() - 2**19))
    launch = bench.shell("echo fourth")
    bench.start(launch)
    time.sleep(6)
    before = bench.wait(launch.attempt, *Sight)
    filler.unlink()
    return [before.sight.value, before.message, bench.wait_over(launch.attempt).sight.value]


def _forget(bench: Bench, attempt: str) -> bool:
    bench.backend.forget((attempt,))
    return all(each.attempt != attempt for each in bench.backend.observe())


def _is_full(folder: Path) -> bool:
    try:
        (folder / "probe").write_bytes(b"x" * 65_536)
    except OSError:
        return True
    finally:
        (folder / "probe").unlink(missing_ok=True)
    return False


if __name__ == "__main__":
    main(Path(sys.argv[1]))
