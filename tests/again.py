"""Runs a suite, and its few failed tests once more, alone; names loudly those that pass only then.

For the suites of real processes on machines that others keep busy: `python -m tests.again
tests/e2e -n 2`. More than FEW failures are no matter of the machine, and count at once. A test
that is named here twice is a bug of the test, or of Bough.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

FEW = 3


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        first = pytest(cache, *arguments)
        failed = failures(cache)
        if first != 1 or not 0 < len(failed) <= FEW:
            return first
        tell("These failed, and are run once more, alone:", failed)
        second = pytest(cache, *failed)
        if second == 0:
            tell("PASSED ONLY THE SECOND TIME (please find out why):", failed)
        return second


def pytest(cache: Path, *arguments: str) -> int:
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *arguments]
    return subprocess.run(command, check=False).returncode


def failures(cache: Path) -> list[str]:
    written = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(written.read_text())) if written.exists() else []


def tell(headline: str, names: list[str]) -> None:
    lines = ["", "!" * 88, headline, *(f"  {name}" for name in names), "!" * 88, ""]
    sys.stdout.write("\n".join(lines))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
