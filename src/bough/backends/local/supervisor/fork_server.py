"""The fork server: a small process without threads that forks supervisors, each in a millisecond.

The server cannot fork them itself, because it has threads, and starting Python for each would take
too long. `ForkServer` is the server's side: it starts the process and asks it for supervisors. The
process itself is `python -m` this module. It exits with its server; supervisors go on.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bough.backends.local.attempt_folder import Folders
from bough.backends.local.attempt_state import AttemptEnd, AttemptLock, SupervisorProcess
from bough.backends.local.errors import lacks_room
from bough.backends.local.options import RUNNER_VARIABLES
from bough.backends.local.order_lease import OrderLease, counts
from bough.backends.local.supervisor.group_network import GroupAddress, connect_into
from bough.backends.local.supervisor.instructions import (
    Setup,
    SupervisorRequest,
    decode_order,
    decode_request,
    decode_setup,
    encode,
)
from bough.backends.local.supervisor.processes import find_process
from bough.backends.local.supervisor.supervised_task import SupervisedTask
from bough.backends.local.supervisor.supervisor import Supervisor
from bough.errors import BoughError, Unavailable
from bough.model.backend import Sight

_MODULE = "bough.backends.local.supervisor.fork_server"
#: How long the process may take to read a request before it counts as lost.
_SEND_S = 10.0
_EXIT_S = 5.0
_LOG_BYTES = 2**20
_ANSWER_BYTES = 4_096
#: Lines that ask for a connection begin with it; others ask for a supervisor.
_CONNECT = b"connect "
#: What it needs to find programs, and what container runners need; tasks get none of it.
_PASSED_VARIABLES = ("PATH", *RUNNER_VARIABLES)


class ConnectRequest(msgspec.Struct, frozen=True):
    """The server wants a connection into the network of a group."""

    number: int
    wanted: GroupAddress
    timeout_s: float


class ConnectAnswer(msgspec.Struct, frozen=True):
    """The connection comes with it, or it says why there is none."""

    number: int
    fault: str = ""


class ForkServer:
    """The server's side: asks for supervisors, and replaces the process if it is lost."""

    def __init__(self, setup: Setup, log: Path) -> None:
        self._setup = setup
        #: Where the process and its supervisors write unexpected errors.
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._sending = threading.Lock()
        #: One connection is asked for at a time, and its answer recognised by its number.
        self._connecting = threading.Lock()
        self._connections = 0

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process, in place of one that is lost."""
        self.close()
        ours, theirs = socket.socketpair()
        if self._log.exists() and self._log.stat().st_size > _LOG_BYTES:
            self._log.unlink()
        with theirs, self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - Python itself
                [sys.executable, "-m", _MODULE, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                # Not the server's own, which a caller may read until they are closed.
                stdout=log,
                stderr=log,
                pass_fds=(theirs.fileno(),),
                env=_environment(),
                cwd="/",
                start_new_session=True,
            )
        ours.settimeout(_SEND_S)
        self._line = ours
        ours.sendall(encode(self._setup) + b"\n")

    def supervise(self, names: Sequence[str], lease: OrderLease) -> None:
        """Fork a supervisor for some attempts, by the names of their folders."""
        self._send(encode(SupervisorRequest(tuple(names), lease)) + b"\n")

    def connect(self, wanted: GroupAddress, timeout_s: float) -> socket.socket:
        """A connection to an address within the network of a group.

        It is made by a forked process, because one with threads cannot enter every network.
        """
        with self._connecting:
            self._connections += 1
            number = self._connections
            asked = ConnectRequest(number, wanted, timeout_s)
            try:
                self._send(_CONNECT + msgspec.json.encode(asked) + b"\n")
                return self._read_connection(number, time.monotonic() + timeout_s + _SEND_S)
            except OSError as error:
                fault = f"The network of group {wanted.group} cannot be reached: {error}."
                raise Unavailable(fault) from None

    def _read_connection(self, number: int, until: float) -> socket.socket:
        """Read the answer to a request; one that came too late for an earlier one is dropped."""
        while self._line is not None and time.monotonic() < until:
            content, descriptors, _, _ = socket.recv_fds(self._line, _ANSWER_BYTES, 1)
            if not content:
                break
            # What comes with descriptors is the last line, because reading ends after them.
            answer = msgspec.json.decode(content.splitlines()[-1], type=ConnectAnswer)
            if answer.number == number and descriptors:
                return socket.socket(fileno=descriptors[0])
            for each in descriptors:
                os.close(each)
            if answer.number == number:
                raise Unavailable(answer.fault)
        raise TimeoutError("it did not answer in time")

    def _send(self, text: bytes) -> None:
        with self._sending:
            self._send_alone(text)

    def _send_alone(self, text: bytes) -> None:
        for again in (True, False):
            try:
                if self._line is None or not self.alive:
                    self.start()
                if self._line is not None:
                    self._line.sendall(text)
                return
            except OSError:
                self.close()
                if not again:
                    raise

    def close(self) -> None:
        """Let the process exit; the supervisors that it forked go on."""
        if self._line is not None:
            self._line.close()
            self._line = None
        if self._process is not None:
            try:
                self._process.wait(_EXIT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None


def main(descriptor: int) -> None:
    """Fork a supervisor for each line, until the server closes its end."""
    # Supervisors are woken by SIGUSR1: it must not kill one that does not handle it yet.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    # Supervisors are not waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    line = socket.socket(fileno=descriptor)
    line.set_inheritable(False)
    with line.makefile("rb") as file:
        setup = decode_setup(file.readline())
        # Memory is shared with all supervisors for as long as it is not written to.
        gc.collect()
        gc.freeze()
        for text in file:
            if text.endswith(b"\n") and os.fork() == 0:
                if text.startswith(_CONNECT):
                    _be_connector(setup, text.removeprefix(_CONNECT), line)
                _be_supervisor(setup, decode_request(text), line)


def take(setup: Setup, request: SupervisorRequest) -> list[SupervisedTask]:
    """The tasks that have no supervisor and were not begun, taken all at once.

    None of them where another server may decide since they were requested.
    """
    folders = Folders(setup.options.folder)
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
    own = find_process(os.getpid())
    order = decode_order(folder.launch.read_bytes())
    own_network = setup.network is not None and not order.shares_host_network
    since = 0 if own is None else own.since
    lock.write(SupervisorProcess(os.getpid(), since, own_network))
    return SupervisedTask(folder, lock, state.accepted, order, setup.options.log_bytes)


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _be_supervisor(setup: Setup, request: SupervisorRequest, line: socket.socket) -> None:
    """Run as the supervisor of some attempts; never returns."""
    supervisor = None
    try:
        line.detach()
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        # A process group and not a session: the kernel shares the CPU between sessions, and a
        # hundred of them would leave little for the server.
        os.setpgid(0, 0)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
        tasks = take(setup, request)
        if tasks:
            _say_that_something_runs(setup)
            supervisor = Supervisor(setup, tasks, limit)
            supervisor.run()
    except BaseException as error:  # any error is reported as the end of the tasks
        with contextlib.suppress(OSError):
            traceback.print_exc()
        message = f"The supervisor of the task failed: {type(error).__name__}: {error}"
        # A task that was not begun can be retried when the disk has room; else it fails again.
        unstarted = Sight.LOST if lacks_room(error) else Sight.UNSTARTABLE
        if supervisor is not None:
            supervisor.give_up(message, unstarted)
        else:
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            _refuse(setup, request.names, AttemptEnd(unstarted.value, _now_ms(), message=message))
    os._exit(0)


def _be_connector(setup: Setup, text: bytes, line: socket.socket) -> None:
    """Make one connection for the server, and exit."""
    asked = msgspec.json.decode(text, type=ConnectRequest)
    try:
        folders = Folders(setup.options.folder)
        own_network = setup.network is not None
        made = connect_into(folders, asked.wanted, asked.timeout_s, own_network=own_network)
        answer, descriptors = ConnectAnswer(asked.number), [made.fileno()]
    except (OSError, BoughError) as error:
        wanted = asked.wanted
        reason = getattr(error, "strerror", None) or str(error)
        fault = f"Cannot connect to {wanted.host}:{wanted.port} in group {wanted.group}: {reason}."
        answer, descriptors = ConnectAnswer(asked.number, fault), []
    with contextlib.suppress(OSError):
        socket.send_fds(line, [msgspec.json.encode(answer) + b"\n"], descriptors)
    os._exit(0)


def _say_that_something_runs(setup: Setup) -> None:
    """Hold a lock with all other supervisors, until this process ends, however it does."""
    path = Folders(setup.options.folder).running
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_SH)


def _refuse(setup: Setup, names: Sequence[str], end: AttemptEnd) -> None:
    """Record that these cannot be supervised; those that have a supervisor are left alone."""
    for name in names:
        with contextlib.suppress(OSError):
            lock = AttemptLock(Folders(setup.options.folder).of(name).state)
            state = lock.read() if lock.take() else None
            if state is not None and state.begun is None and state.end is None:
                lock.write(end)
            lock.close()


def _environment() -> dict[str, str]:
    """The part of the server's environment, which may hold secrets, that is passed on."""
    passed = {each: os.environ[each] for each in _PASSED_VARIABLES if each in os.environ}
    # Absolute, because the process starts in another folder.
    search_path = os.pathsep.join(os.path.abspath(each) for each in sys.path if each)
    return {"PATH": os.defpath} | passed | {"PYTHONPATH": search_path}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    main(int(sys.argv[1]))
