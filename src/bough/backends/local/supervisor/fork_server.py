"""A small process that does nothing but fork keepers, which costs it a millisecond.

The server cannot do so itself: it has threads, and to start Python anew takes too long. The warden
ends with its server; keepers go on. Must not know what keepers do.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import resource
import signal
import socket
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from bough.backends.local.attempt_folder import Folders
from bough.backends.local.attempt_state import Hold, Kept, Over
from bough.backends.local.errors import lacks_room
from bough.backends.local.supervisor.instructions import Setup, decode_order, decode_setup
from bough.backends.local.supervisor.processes import find_process
from bough.backends.local.supervisor.supervised_task import KeptTask
from bough.backends.local.supervisor.supervisor import Keeper
from bough.model.backend import Sight


def main(descriptor: int) -> None:
    """Fork a keeper for each line, until there is nobody to write one."""
    # The last one is for keepers, and must not end one that does not listen yet.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    # Nobody waits for keepers.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    line = socket.socket(fileno=descriptor)
    line.set_inheritable(False)
    with line.makefile("rb") as file:
        setup = decode_setup(file.readline())
        # What is here is shared with every keeper, as long as nobody touches it.
        gc.collect()
        gc.freeze()
        for text in file:
            if text.endswith(b"\n") and os.fork() == 0:
                _be_keeper(setup, json.loads(text), line)


def take(setup: Setup, names: Sequence[str]) -> list[KeptTask]:
    """The tasks that nobody keeps or has begun, taken all at once."""
    folders = Folders(setup.options.folder)
    taken: list[KeptTask] = []
    with _alone(folders.taking):
        for name in names:
            task = _take_one(setup, folders, name)
            if task is not None:
                taken.append(task)
    return taken


def _take_one(setup: Setup, folders: Folders, name: str) -> KeptTask | None:
    folder = folders.of(name)
    try:
        hold = Hold(folder.state)
    except FileNotFoundError:
        return None
    state = hold.read() if hold.take() else None
    if state is None or state.begun is not None or state.over is not None:
        hold.close()
        return None
    own = find_process(os.getpid())
    hold.write(Kept(os.getpid(), 0 if own is None else own.since))
    order = decode_order(folder.launch.read_bytes())
    return KeptTask(folder, hold, state.accepted, order, setup.options.log_bytes)


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _be_keeper(setup: Setup, names: Sequence[str], line: socket.socket) -> None:
    """Never returns."""
    keeper = None
    try:
        line.detach()
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        # Not a session: to the kernel each is one that has its share of the processor, and with a
        # hundred of them little is left for the server.
        os.setpgid(0, 0)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
        tasks = take(setup, names)
        if tasks:
            keeper = Keeper(setup, tasks, limit)
            keeper.run()
    except BaseException as error:  # whatever it is, it is told, and ends here
        with contextlib.suppress(OSError):
            traceback.print_exc()
        message = f"What keeps the task has failed: {type(error).__name__}: {error}"
        # What was not begun can be tried again when there is room; else it fails again.
        unstarted = Sight.LOST if lacks_room(error) else Sight.UNSTARTABLE
        if keeper is not None:
            keeper.give_up(message, unstarted)
        else:
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            _refuse(setup, names, Over(unstarted.value, _now_ms(), message=message))
    os._exit(0)


def _refuse(setup: Setup, names: Sequence[str], over: Over) -> None:
    """Have it written that nobody can keep these; what somebody does keep is left alone."""
    for name in names:
        with contextlib.suppress(OSError):
            hold = Hold(Folders(setup.options.folder).of(name).state)
            state = hold.read() if hold.take() else None
            if state is not None and state.begun is None and state.over is None:
                hold.write(over)
            hold.close()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    main(int(sys.argv[1]))
