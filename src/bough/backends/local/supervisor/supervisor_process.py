"""A supervisor's process: takes attempts, runs them, and waits for the next ones.

It serves one start at a time, so that its crash loses the tasks of one start only. It waits for
another start only if nothing of the last one is left: no child, no open file, and no secret that a
later start could find. The fork server tells it when it is no longer needed.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import resource
import signal
import socket
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

from bough.backends.local.attempt_folder import Folders, folders_at
from bough.backends.local.attempt_state import AttemptEnd, AttemptLock, SupervisorProcess
from bough.backends.local.errors import lacks_room
from bough.backends.local.order_lease import counts
from bough.backends.local.sandbox.limits import remove_parents
from bough.backends.local.supervisor.instructions import (
    Setup,
    SupervisorRequest,
    decode_order,
    decode_request,
)
from bough.backends.local.supervisor.processes import start_of
from bough.backends.local.supervisor.supervised_task import SupervisedTask
from bough.backends.local.supervisor.supervisor import Supervisor
from bough.model.backend import Sight

#: The longest request to a waiting supervisor.
REQUEST_BYTES = 65_536
#: How many starts one process serves, in case each leaves something in its memory.
_STARTS = 1_000
#: How long to wait for children that end by themselves, such as the gateway of a network.
_CHILDREN_S = 0.25
_LINE = 3
#: What it tells the fork server: that its tasks run or their start is uncertain; that it is idle.
SETTLED, WAITING = b"-", b"+"


def be_supervisor(setup: Setup, text: bytes, line: socket.socket) -> NoReturn:
    """Run as a supervisor; `line` is the connection to the fork server."""
    try:
        os.dup2(line.detach(), _LINE, inheritable=False)
        os.closerange(_LINE + 1, os.sysconf("SC_OPEN_MAX"))
        # A process group and not a session: the kernel shares the CPU between sessions, and a
        # hundred of them would leave little for the server.
        os.setpgid(0, 0)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
        requests = socket.socket(fileno=_LINE)
        opened = _open_files()
        for _ in range(_STARTS):
            supervise = partial(_serve, setup, decode_request(text), limit)
            if not supervise(partial(_tell, requests)) or not _has_let_go(opened):
                break
            requests.send(WAITING)
            text = requests.recv(REQUEST_BYTES)
            if not text:
                break
    except BaseException:  # nothing runs that would have to be ended
        with contextlib.suppress(OSError):
            traceback.print_exc()
    if setup.limits is not None:
        remove_parents(setup.limits)
    os._exit(0)


def take(setup: Setup, request: SupervisorRequest) -> list[SupervisedTask]:
    """Take the tasks that have no supervisor and were not started, all at once.

    Takes none if another server may have taken over since they were requested.
    """
    folders = folders_at(setup.options.folder)
    taken: list[SupervisedTask] = []
    with _alone(folders.taking):
        for name in request.names if counts(folders, request.lease) else ():
            task = _take_one(setup, folders, name)
            if task is not None:
                taken.append(task)
    return taken


def _take_one(setup: Setup, folders: Folders, name: str) -> SupervisedTask | None:
    folder = folders.of(name)
    try:
        lock = AttemptLock(folder.state)
    except FileNotFoundError:
        return None
    state = lock.read() if lock.take() else None
    if state is None or state.begun is not None or state.end is not None:
        lock.close()
        return None
    order = decode_order(folder.launch.read_bytes())
    own_network = setup.network is not None and not order.shares_host_network
    lock.write(SupervisorProcess(os.getpid(), start_of(os.getpid()), own_network))
    return SupervisedTask(folder, lock, state.accepted, order, setup.options.log_bytes)


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _tell(requests: socket.socket) -> None:
    """Tell the fork server, if it is still there, that this supervisor has finished starting."""
    with contextlib.suppress(OSError):
        requests.send(SETTLED, socket.MSG_DONTWAIT)


def _serve(
    setup: Setup,
    request: SupervisorRequest,
    limit: tuple[int, int],
    settled: Callable[[], None],
) -> bool:
    """Run some attempts to their end; returns whether this process can serve another start."""
    supervisor = None
    try:
        tasks = take(setup, request)
        if not tasks:
            return True
        has_secrets = any(task.folder.secrets.exists() for task in tasks)
        with _something_runs(setup):
            supervisor = Supervisor(setup, tasks, limit, settled)
            supervisor.run()
            supervisor.close()
    except BaseException as error:  # any error is reported as the end of the tasks
        with contextlib.suppress(OSError):
            traceback.print_exc()
        message = f"The supervisor of the task failed: {type(error).__name__}: {error}"
        # A task that was not begun can be retried when the disk has room; else it fails again.
        unstarted = Sight.LOST if lacks_room(error) else Sight.UNSTARTABLE
        if supervisor is not None:
            supervisor.give_up(message, unstarted)
        else:
            os.closerange(_LINE + 1, os.sysconf("SC_OPEN_MAX"))
            _refuse(setup, request.names, AttemptEnd(unstarted.value, _now_ms(), message=message))
        return False
    return not has_secrets


@contextlib.contextmanager
def _something_runs(setup: Setup) -> Iterator[None]:
    """Hold a lock that all supervisors with tasks share, so that others see that tasks run."""
    path = folders_at(setup.options.folder).running
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    yield
    # After an error the process exits, and the lock is held until then.
    os.close(descriptor)


def _has_let_go(opened: list[str]) -> bool:
    """Whether nothing of the last start is left in this process: no child and no open file."""
    until = time.monotonic() + _CHILDREN_S
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < until:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.002)
        return False
    if opened != _open_files():
        # Objects that hold each other close their files here.
        gc.collect()
    return opened == _open_files()


def _open_files() -> list[str]:
    """All open descriptors."""
    return sorted(os.listdir("/proc/self/fd"))


def _refuse(setup: Setup, names: Sequence[str], end: AttemptEnd) -> None:
    """Record that these attempts cannot be supervised, except those that have a supervisor."""
    for name in names:
        with contextlib.suppress(OSError):
            lock = AttemptLock(folders_at(setup.options.folder).of(name).state)
            state = lock.read() if lock.take() else None
            if state is not None and state.begun is None and state.end is None:
                lock.write(end)
            lock.close()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
