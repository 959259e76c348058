"""The init process of a task's process namespace: it passes signals on, and waits for all others.

When it exits, the kernel kills everything else in the namespace, so it exits with the task. Only if
the notice ended the task's first process while others of its group still work, it lets them finish:
they may write a checkpoint, and the supervisor kills them in time.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable

#: The notice: the signal that a task's processes get before they are killed.
NOTICE = signal.SIGTERM
_HEARD = frozenset({signal.SIGCHLD, NOTICE, signal.SIGCONT})


def hold_signals() -> None:
    """Block signals until they are waited for; before the task is forked, so that none is lost.

    The kernel drops signals that an init process neither waits for nor handles.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)


def release_signals() -> None:
    """Unblock signals, in the process that becomes the task."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def watch(task: int, tell: Callable[[int], None]) -> None:
    """Wait for the end of a task, which leads a process group, and pass its status to `tell`.

    Returns when nothing of it has to be waited for any more.
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
            # It came from outside of the namespace, so from the supervisor.
            told = told or heard.si_signo == NOTICE
            with contextlib.suppress(ProcessLookupError):
                os.killpg(task, heard.si_signo)


def ends_by_notice(status: int) -> bool:
    """Whether a process with this status was ended by the notice.

    A shell ends like that at once, while the program that it runs may still save its work.
    """
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status) == NOTICE
    return os.WEXITSTATUS(status) == 128 + NOTICE


def _reap() -> dict[int, int]:
    """Wait for all children that have ended."""
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
