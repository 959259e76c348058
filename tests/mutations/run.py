"""Makes each mutation in a copy of the tree, and runs the tests that must fail then."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from tests.mutations import engine, kubernetes, server, tasks
from tests.mutations.mutation import Mutation

ROOT = Path(__file__).parents[2]
PARTS = ("src", "tests", "scenarios", "scripts", "conformance", "docs", "pyproject.toml")
#: The exit code of pytest where tests ran and some of them failed.
NOTICED = 1
#: Tests that take longer, on a very busy machine, are ended and say nothing about their mutation.
LONGEST_S = 2_400
MUTATIONS = (
    *engine.MUTATIONS,
    *server.MUTATIONS,
    *tasks.MUTATIONS,
    *kubernetes.MUTATIONS,
)


def main() -> int:
    only = os.environ.get("ONLY", "")
    chosen = [each for each in MUTATIONS if only in each.name]
    missed = 0
    with tempfile.TemporaryDirectory(prefix="bough-mutations-") as folder:
        copy = Path(folder)
        for part in PARTS:
            source = ROOT / part
            copying = shutil.copytree if source.is_dir() else shutil.copyfile
            copying(source, copy / part)
        for mutation in chosen:
            start_s = time.monotonic()
            ended = run(copy, mutation)
            # Below 0: a signal that the broken program sent has ended the tests.
            noticed = ended is not None and (ended == NOTICED or ended < 0)
            word = "noticed" if noticed else f"MISSED ({_reason(ended)})"
            missed += not noticed
            say(f"{word}: {mutation.name} [{time.monotonic() - start_s:.0f} s]")
    say(f"{len(chosen) - missed} of {len(chosen)} noticed")
    return 1 if missed else 0


def _reason(ended: int | None) -> str:
    return "the tests took too long" if ended is None else f"pytest ended with {ended}"


def run(copy: Path, mutation: Mutation) -> int | None:
    """How pytest ended with one thing wrong; `None`: it took too long. The copy is put back."""
    sources = read_sources(copy)
    path = find(sources, mutation)
    text = sources[path]
    path.write_text(text.replace(mutation.before, mutation.after), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    # As in `make laws`: few examples need not have a rare one among them.
    environment.setdefault("HYPOTHESIS_PROFILE", "laws")
    try:
        done = subprocess.run(
            [*command, *mutation.tests.split()],
            cwd=copy,
            env=environment,
            capture_output=True,
            check=False,
            timeout=LONGEST_S,
        )
        return done.returncode
    except subprocess.TimeoutExpired:
        return None
    finally:
        path.write_text(text, encoding="utf-8")


def read_sources(root: Path) -> dict[Path, str]:
    """The text of every module of the program."""
    paths = sorted((root / "src" / "bough").rglob("*.py"))
    return {path: path.read_text(encoding="utf-8") for path in paths}


def find(sources: Mapping[Path, str], mutation: Mutation) -> Path:
    """The one module that has the text."""
    found = [
        (path, count) for path, text in sources.items() if (count := text.count(mutation.before))
    ]
    if len(found) != 1 or found[0][1] != 1:
        places = ", ".join(f"{count} in {path}" for path, count in found)
        sys.exit(f"the text of '{mutation.name}' must stand once: {places or 'it is not there'}")
    return found[0][0]


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
