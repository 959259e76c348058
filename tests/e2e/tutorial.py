"""The tutorial, lived through: its scripts are run, its commands are run and what they print held
against the page.

Blocks fenced as `sh` are run whole; the one that starts a server is started, on a free port. Blocks
fenced as `shell-session` have commands and what they print. A command that only looks is repeated
until it prints what the page says, since a reader is slower than a test.

    python -m tests.e2e.tutorial --write     put what was printed into the page
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import gethostname
from typing import NamedTuple

from tests.docs.blocks import PROMPT, find_fences

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
PROGRAMS = Path(sys.executable).parent
PATIENCE_S = 90
#: How long an answer must stay the same before it is put into the page.
REST_S = 3
#: The address that the page speaks of.
ADDRESS = "http://127.0.0.1:8265"
#: The name that the page has for the machine.
NODE = "gpu-1"
_SERVE = "bough serve"
_LOOKS = re.compile(
    r"bough (pool list|queue list|usage|workflow (list|query|why|logs|events)|pool subpool (list"
    r"|show|history)|resource list|node list)\b"
)
#: What differs each time: when something happened, how far a task came, how long it took.
_VARYING = (
    (re.compile(r"[A-Z][a-z]{2} \d\d, \d{4} \d\d:\d\d UTC"), "Jan 01, 2026 10:00 UTC"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?"), "2026-01-01T10:00:00"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?"), "2026-01-01 10:00"),
    (re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d"), "2026/01/01 10:00:00"),
    (re.compile(r"(?<= )\d+[smh](\d+[sm])?(?=\s|$)"), "5s"),
    (re.compile(r"step \d+"), "step 7"),
    (re.compile(r"\d+[MG]i of (memory|disk)"), r"1Gi of \1"),
    (re.compile(r"\b\d+\.\d+\b"), "0.01"),
)


class Step(NamedTuple):
    """A script, or a command with what it prints."""

    text: str
    #: `None`: a script.
    printed: str | None
    #: Where in the page: the first line of what is printed, and the one after it.
    start: int
    end: int


def read_steps(lines: list[str]) -> list[Step]:
    """What the page does, in order."""
    steps: list[Step] = []
    for fence in find_fences(lines):
        first, last = fence.opening + 1, fence.closing
        if fence.language == "sh":
            steps.append(Step("\n".join(lines[first:last]), None, first, last))
        elif fence.language == "shell-session":
            starts = [n for n in range(first, last) if lines[n].startswith(PROMPT)]
            for start, end in zip(starts, [*starts[1:], last], strict=True):
                printed = "\n".join(lines[start + 1 : end])
                steps.append(Step(lines[start].removeprefix(PROMPT), printed, start + 1, end))
    return steps


class Reader:
    """A reader who follows the page in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._prelude = f"export PATH={PROGRAMS}:$PATH LC_ALL=C.UTF-8 TZ=UTC COLUMNS=100\n"
        self._prelude += f"export XDG_CONFIG_HOME={folder}\n"
        self._address = ADDRESS
        self._server: subprocess.Popen[str] | None = None

    def follow(self, step: Step, *, rest: bool = False) -> str:
        """Do one step; what it printed, in the words of the page."""
        if step.printed is None:
            self._script(step.text)
            return ""
        deadline = time.monotonic() + PATIENCE_S
        wanted = settled(step.printed)
        printed = self._run(step.text)
        if not _LOOKS.match(step.text):
            return printed
        quiet = time.monotonic() + REST_S
        while time.monotonic() < (quiet if rest else deadline):
            if not rest and settled(printed) == wanted:
                break
            time.sleep(0.3)
            before, printed = printed, self._run(step.text)
            if settled(before) != settled(printed):
                quiet = time.monotonic() + REST_S
        return printed

    def close(self) -> None:
        """End the server that was started."""
        if self._server is not None:
            self._server.terminate()
            self._server.communicate(timeout=PATIENCE_S)

    def _script(self, text: str) -> None:
        if text.startswith(_SERVE):
            self._serve(text)
            return
        done = self._bash(text)
        assert 0 == done.returncode, f"{text}\n{done.stdout}"
        self._prelude += "".join(
            f"{line}\n" for line in text.splitlines() if line.startswith("export ")
        ).replace(ADDRESS, self._address)

    def _serve(self, text: str) -> None:
        with (self._folder / "server.log").open("w") as log:
            self._server = subprocess.Popen(
                ["/bin/bash", "-c", f"{self._prelude} exec {text} --port 0"],
                cwd=self._folder,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._server.stdout is not None
        first = self._server.stdout.readline()
        assert first.startswith("Bough listens on "), (self._folder / "server.log").read_text()
        self._address = first.split()[-1]

    def _run(self, text: str) -> str:
        output = self._bash(text).stdout.replace(self._address, ADDRESS).rstrip("\n")
        return re.sub(rf"\b{re.escape(gethostname())}$", NODE, output, flags=re.MULTILINE)

    def _bash(self, text: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/bash", "-c", self._prelude + text.replace(ADDRESS, self._address)],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S * 2,
            check=False,
        )


@contextmanager
def reading(folder: Path) -> Iterator[Reader]:
    """A reader who follows the page, and cleans up."""
    reader = Reader(folder)
    try:
        yield reader
    finally:
        reader.close()


def settled(text: str) -> str:
    """What is printed, without what differs each time."""
    for pattern, instead in _VARYING:
        text = pattern.sub(instead, text)
    # A column is as wide as what stands in it.
    return "\n".join(re.sub(r"  +|[-=]{3,}", "  ", line).rstrip() for line in text.splitlines())


def write() -> None:
    """Live through the page, and put what was printed into it."""
    lines = PAGE.read_text(encoding="utf-8").split("\n")
    printed: list[tuple[Step, str]] = []
    with tempfile.TemporaryDirectory() as folder, reading(Path(folder)) as reader:
        for step in read_steps(lines):
            printed.append((step, reader.follow(step, rest=True)))
            sys.stderr.write(f"$ {step.text.splitlines()[0]}\n{printed[-1][1]}\n")
    shown = [(step, text) for step, text in printed if step.printed is not None]
    # All of one run or nothing, so that its times and steps follow each other.
    if any(settled(step.printed or "") != settled(text) for step, text in shown):
        for step, text in reversed(shown):
            lines[step.start : step.end] = text.splitlines()
        PAGE.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    write()
