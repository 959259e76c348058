"""Which file names match a regular expression that a user wrote.

It is applied in a process of its own, which is killed if it takes too long.
"""

from __future__ import annotations

import sys

from bough.backends.local.data.paths import shown
from bough.backends.local.errors import CopyFailed
from bough.model.safe_regex import regex_fault

_TIMEOUT_S = 20
#: Reads the expression and the names, each ended by a zero byte; writes the indices that match.
_PROGRAM = """
import re, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
pattern, *names = sys.stdin.buffer.read().split(b"\\0")[:-1]
found = re.compile(pattern).match
sys.stdout.write(" ".join(str(i) for i, name in enumerate(names) if found(name)))
"""


def matching(regex: str | None, names: list[str], timeout_s: float = _TIMEOUT_S) -> list[int]:
    """The indices of the names that match from their beginning, in order; all without a regex."""
    if regex is None or not names:
        return list(range(len(names)))
    fault = regex_fault(regex)
    if fault is not None:
        raise CopyFailed(f"regex: {fault}")
    import subprocess  # noqa: PLC0415 - see supervisor.fork_server

    given = b"".join(each.encode(errors="surrogateescape") + b"\0" for each in (regex, *names))
    try:
        answer = subprocess.run(  # noqa: S603 - a fixed program
            (sys.executable, "-I", "-S", "-c", _PROGRAM),
            input=given,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _too_slow(regex) from None
    if answer.returncode != 0:
        raise _too_slow(regex)
    return [int(each) for each in answer.stdout.split()]


def _too_slow(regex: str) -> CopyFailed:
    return CopyFailed(f"the regex {shown(regex)} takes too long on the names of the files")
