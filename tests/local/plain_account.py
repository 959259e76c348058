"""Work as an account without rights, for tests that run as root."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

from bough.backends.local.sandbox import syscalls

#: The account that owns nothing.
PLAIN = 65_534


def as_plain_account(work: Callable[[], str]) -> str:
    """What some work answers in a process of that account, or how it failed."""
    # Never removed with what is in it: Python itself is mounted there for a while.
    kept = tempfile.mkdtemp()

    def plain() -> str:
        _show_python(kept)
        os.setgroups([])
        os.setresgid(PLAIN, PLAIN, PLAIN)
        os.setresuid(PLAIN, PLAIN, PLAIN)
        os.environ["HOME"] = "/nonexistent"
        os.chdir("/")
        return work()

    try:
        return in_another_process(plain)
    finally:
        os.rmdir(kept)


def in_another_process(work: Callable[[], str]) -> str:
    """What some work answers in a forked process, or how it failed."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer = work()
        except BaseException:
            answer = traceback.format_exc()
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        answer = file.read()
    os.waitpid(pid, 0)
    return answer


def _show_python(kept: str) -> None:
    """Let the account run Python where that is installed in the home of root."""
    home = Path.home().resolve()
    installed = Path(sys.base_prefix).resolve()
    if not installed.is_relative_to(home) or home == Path("/"):
        return
    syscalls.unshare(syscalls.CLONE_NEWNS)
    syscalls.mount("none", "/", "", syscalls.MS_REC | syscalls.MS_PRIVATE)
    syscalls.mount(str(installed), kept, "", syscalls.MS_BIND)
    syscalls.mount("none", str(home), "tmpfs", 0, "mode=755")
    installed.mkdir(parents=True)
    syscalls.mount(kept, str(installed), "", syscalls.MS_BIND)
