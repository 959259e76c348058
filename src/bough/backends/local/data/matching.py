"""Regular expressions that others wrote.

They are tried in a process of their own, so that one that would never end is ended. Must not know
what the names are.
"""

from __future__ import annotations

import re
import subprocess
import sys

from bough.backends.local.data.paths import shown
from bough.backends.local.errors import CopyFailed

_TIMEOUT_S = 20
_LONGEST = 1_000
#: Reads the expression and the names, each ended by a zero byte; writes the numbers that match.
_PROGRAM = """
import re, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
pattern, *names = sys.stdin.buffer.read().split(b"\\0")[:-1]
found = re.compile(pattern).match
sys.stdout.write(" ".join(str(i) for i, name in enumerate(names) if found(name)))
"""


def matching(regex: str | None, names: list[str], timeout_s: float = _TIMEOUT_S) -> list[int]:
    """The numbers of the names that match from their beginning, in order; all without a regex."""
    if regex is None or not names:
        return list(range(len(names)))
    fault = regex_fault(regex)
    if fault is not None:
        raise CopyFailed(fault)
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
        raise _endless(regex) from None
    if answer.returncode != 0:
        raise _endless(regex)
    return [int(each) for each in answer.stdout.split()]


def regex_fault(regex: str) -> str | None:
    """What is wrong with a regular expression; `None`: nothing is."""
    if len(regex) > _LONGEST:
        return f"the regex {shown(regex)} is longer than {_LONGEST} characters"
    if not regex.isprintable():
        return f"the regex {shown(regex)} has characters that cannot be shown"
    try:
        re.compile(regex.encode())
    except (re.error, OverflowError, RecursionError) as error:
        return f"the regex {shown(regex)} is not valid: {error}"
    return None


def _endless(regex: str) -> CopyFailed:
    return CopyFailed(f"the regex {shown(regex)} takes too long on the names of the files")
