"""The first process of a task's own process namespace: it passes signals on, and waits for all.

When it ends, the kernel ends everything else in the namespace; so it ends with the task. Only where
a notice has ended the task's first process, and others that had it too are still at work, it lets
them finish: they write a checkpoint, and whoever gave the notice ends them in time. Must not know
what the task is.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable

#: What a task's processes are told in time before they have to go.
NOTICE = signal.SIGTERM
_HEARD = frozenset({signal.SIGCHLD, NOTICE, signal.SIGCONT})


def hold_signals() -> None:
    """Let signals wait until they are asked for; before the task is forked, so that none is lost.

    The kernel drops what a first process of a namespace neither waits for nor handles.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)


def release_signals() -> None:
    """Let signals come as usual: in the process that becomes the task."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def watch(task: int, tell: Callable[[int], None]) -> None:
    """Wait for the end of a task, which leads a process group, and tell with which status it came.

    Returns when nothing of it is to be waited for any more.
    """
    told = False
    status: int | None = None
    while status is None or (told and ends_by_notice(status) and _is_there(task)):
        heard = signal.sigwaitinfo(_HEARD)
        if heard.si_signo == signal.SIGCHLD:
            ended = _reap()
            if task in ended:
                status = ended[task]
                tell(status)
        elif heard.si_pid == 0:
            # It came from outside of the namespace, so it is the supervisor's.
            told = told or heard.si_signo == NOTICE
            with contextlib.suppress(ProcessLookupError):
                os.killpg(task, heard.si_signo)


def ends_by_notice(status: int) -> bool:
    """Whether a process with this status did not know what to do with a notice.

    A shell that runs a program ends like that at once, while the program may still save its work.
    """
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status) == NOTICE
    return os.WEXITSTATUS(status) == 128 + NOTICE


def _reap() -> dict[int, int]:
    """Wait for all that has ended."""
    ended: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = found[1]
    return ended


def _is_there(group: int) -> bool:
    """Whether a process group has processes."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
