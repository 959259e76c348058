"""The fork server: a small process without threads that forks supervisors, each in a millisecond.

The server cannot fork them itself, because it has threads, and starting Python for each would take
too long. `ForkServer` is the server's side: it starts the process and asks it for supervisors. The
process itself is `python -m` this module. It exits with its server; supervisors go on.

A supervisor whose tasks have ended waits for the next ones: a process that has done everything once
needs less than half of the processor's time for them.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bough.backends.local.attempt_folder import Folders
from bough.backends.local.options import RUNNER_VARIABLES
from bough.backends.local.order_lease import OrderLease
from bough.backends.local.sandbox.executing import CHANGED_SIGNALS
from bough.backends.local.supervisor.group_network import GroupAddress, connect_into
from bough.backends.local.supervisor.instructions import (
    Setup,
    SupervisorRequest,
    decode_setup,
    encode,
)
from bough.backends.local.supervisor.supervisor_process import (
    REQUEST_BYTES,
    SETTLED,
    WAITING,
    be_supervisor,
)
from bough.errors import BoughError, Unavailable

_MODULE = "bough.backends.local.supervisor.fork_server"
#: How long the process may take to read a request before it counts as lost.
_SEND_S = 10.0
_EXIT_S = 5.0
_LOG_BYTES = 2**20
_ANSWER_BYTES = 4_096
_READ_BYTES = 65_536
#: How many idle supervisors to keep at most, and for how long.
_MOST_WAITING = 8
_IDLE_S = 30.0
#: How many supervisors start tasks at once: more would only slow each other down, and reusing one
#: that has just finished is faster. And after how long a standstill more are forked.
_MOST_STARTING = max(4, 2 * (os.cpu_count() or 1))
_HOLD_S = 1.0
#: A running task may end within this time, and then its supervisor takes the next request.
_SOON_S = 0.03
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
    """Find a supervisor for each request, until the server closes its end."""
    # A plain shell, for example, starts a server in the background with SIGQUIT ignored.
    usual = {signal.SIGKILL, signal.SIGSTOP, *CHANGED_SIGNALS}
    for number in signal.valid_signals() - usual:
        signal.signal(number, signal.SIG_DFL)
    # Supervisors are woken by SIGUSR1: it must not kill one that does not handle it yet.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    # Supervisors are not waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    line = socket.socket(fileno=descriptor)
    line.set_inheritable(False)
    text = b""
    while b"\n" not in text:
        text += line.recv(_READ_BYTES) or sys.exit()
    setup, _, text = text.partition(b"\n")
    # Memory is shared with all supervisors for as long as it is not written to.
    gc.collect()
    gc.freeze()
    _Forker(decode_setup(setup), line).run(text)


class _Forker:
    """The fork server itself: hands requests to idle supervisors, or to new ones."""

    def __init__(self, setup: Setup, line: socket.socket) -> None:
        self._setup = setup
        self._line = line
        self._poll = select.poll()
        #: The supervisors, by the descriptor of the socket to each.
        self._supervisors: dict[int, socket.socket] = {}
        #: Idle supervisors and since when, the most recent last.
        self._waiting: dict[int, float] = {}
        #: Supervisors that start tasks, or may soon be idle, and until when to count on that.
        self._starting: dict[int, float] = {}
        #: Requests without a supervisor yet, and when one last got any.
        self._requests: deque[bytes] = deque()
        self._moved_at = 0.0

    def run(self, text: bytes) -> None:
        """Serve requests until the server closes its end."""
        self._poll.register(self._line, select.POLLIN)
        while True:
            *lines, text = text.split(b"\n")
            for each in lines:
                self._note(each)
            self._serve()
            for descriptor, _ in self._poll.poll(self._timeout_ms()):
                if descriptor != self._line.fileno():
                    self._hear(descriptor)
                elif part := self._line.recv(_READ_BYTES):
                    text += part
                else:
                    return
            self._dismiss(time.monotonic() - _IDLE_S)

    def _note(self, text: bytes) -> None:
        if not text.startswith(_CONNECT):
            self._moved_at = self._moved_at if self._requests else time.monotonic()
            self._requests.append(text)
        elif os.fork() == 0:
            _be_connector(self._setup, text.removeprefix(_CONNECT), self._line)

    def _timeout_ms(self) -> float | None:
        if self._requests:
            next_s = min([self._moved_at + _HOLD_S, *self._starting.values()]) - time.monotonic()
            return max(0.0, next_s * 1_000)
        return _IDLE_S * 1_000 if self._waiting else None

    def _serve(self) -> None:
        """Find a supervisor for each request; if many are starting, wait for one of these."""
        now = time.monotonic()
        self._starting = {each: until for each, until in self._starting.items() if until > now}
        while self._requests:
            if self._hand_on(self._requests[0]):
                self._moved_at = now
            elif len(self._starting) < _MOST_STARTING:
                self._fork(self._requests[0])
                self._moved_at = now
            elif now < self._moved_at + _HOLD_S:
                return
            else:
                # The starting ones hang, so requests no longer wait for them.
                self._fork(self._requests[0])
            self._requests.popleft()

    def _hand_on(self, text: bytes) -> bool:
        """Give a request to the most recent idle supervisor; returns whether there was one."""
        while self._waiting and len(text) <= REQUEST_BYTES:
            descriptor, _ = self._waiting.popitem()
            try:
                self._supervisors[descriptor].send(text)
            except OSError:
                # It was killed.
                self._drop(descriptor)
            else:
                self._starting[descriptor] = math.inf
                return True
        return False

    def _fork(self, text: bytes) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork() == 0:
            self._line.detach()
            be_supervisor(self._setup, text, theirs)
        theirs.close()
        # A stopped supervisor reads nothing, and others must not wait for it.
        ours.setblocking(False)
        self._supervisors[ours.fileno()] = ours
        self._starting[ours.fileno()] = math.inf
        self._poll.register(ours, select.POLLIN)

    def _hear(self, descriptor: int) -> None:
        """Note that a supervisor's tasks run, that it is idle, or that it has ended."""
        try:
            said = self._supervisors[descriptor].recv(1)
        except OSError:
            said = b""
        self._starting.pop(descriptor, None)
        self._moved_at = time.monotonic()
        if said == SETTLED:
            self._starting[descriptor] = time.monotonic() + _SOON_S
        elif said == WAITING and (self._requests or len(self._waiting) < _MOST_WAITING):
            self._waiting[descriptor] = time.monotonic()
        else:
            self._drop(descriptor)

    def _dismiss(self, before: float) -> None:
        """Let supervisors exit that were idle for long."""
        for descriptor in [each for each, since in self._waiting.items() if since < before]:
            self._drop(descriptor)

    def _drop(self, descriptor: int) -> None:
        """Close the socket to a supervisor, which exits then if it waits."""
        self._waiting.pop(descriptor, None)
        self._starting.pop(descriptor, None)
        self._poll.unregister(descriptor)
        self._supervisors.pop(descriptor).close()


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


def _environment() -> dict[str, str]:
    """The part of the server's environment, which may hold secrets, that is passed on."""
    passed = {each: os.environ[each] for each in _PASSED_VARIABLES if each in os.environ}
    # Absolute, because the process starts in another folder.
    search_path = os.pathsep.join(os.path.abspath(each) for each in sys.path if each)
    return {"PATH": os.defpath} | passed | {"PYTHONPATH": search_path}


if __name__ == "__main__":
    main(int(sys.argv[1]))
