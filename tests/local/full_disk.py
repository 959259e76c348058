"""A backend on a disk that becomes full: `python -m tests.local.full_disk FOLDER`; prints JSON.

The folder is a small disk of its own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.local.bench import Bench, processes_of, until

#: Fills the disk to the last byte, and says so when there is no room for that.
_FILL = "cat /dev/zero > fill 2> /dev/null; cat /dev/zero > more 2> /dev/null; "


def main(folder: Path) -> None:
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
    bench.end()
    json.dump(result, sys.stdout)


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
