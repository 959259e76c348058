"""The fork server: a small process without threads that forks supervisors, each in a millisecond.

The server cannot fork them itself, because it has threads, and starting Python for each would take
too long. The process is `python -m` this module; `fork_server_client` is the server's side. It
exits with its server; supervisors go on.

A supervisor whose tasks have ended waits for the next ones: a process that has done everything once
needs less than half of the processor's time for them.

All that is imported here is in the memory of every fork, and `threading` has work to do in each of
them before anything else. So what few tasks need is imported where it is used.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import select
import signal
import socket
import sys
import time

import msgspec

from bough.backends.local.attempt_folder import Folders
from bough.backends.local.sandbox.executing import CHANGED_SIGNALS
from bough.backends.local.supervisor.group_network import connect_into
from bough.backends.local.supervisor.instructions import (
    CONNECT,
    ConnectAnswer,
    ConnectRequest,
    Setup,
    decode_request,
    decode_setup,
)
from bough.backends.local.supervisor.supervisor_process import (
    REQUEST_BYTES,
    SETTLED,
    WAITING,
    be_supervisor,
)
from bough.backends.local.task_command import SandboxKind
from bough.errors import BoughError

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
    known = decode_setup(setup)
    _load_what_starts_programs(known)
    # Memory is shared with all supervisors for as long as it is not written to.
    gc.collect()
    gc.freeze()
    _Forker(known, line).run(text)


def _load_what_starts_programs(setup: Setup) -> None:
    """Load `subprocess`, with `threading`, only if supervisors have to start programs often."""
    has_network = setup.network is not None and (
        setup.network.slirp is not None or setup.sandbox is SandboxKind.BUBBLEWRAP
    )
    if has_network or setup.options.container_runner is not None:
        import subprocess  # noqa: F401, PLC0415


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
        #: Requests without a supervisor yet, by the names of their attempts and in their order, and
        #: when one last got any. A server that waits for long asks again, under the lease that it
        #: has then; it is still one request, and the earlier lease may have expired meanwhile.
        self._requests: dict[tuple[str, ...], bytes] = {}
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
        if not text.startswith(CONNECT):
            self._moved_at = self._moved_at if self._requests else time.monotonic()
            self._requests[decode_request(text).names] = text
        elif os.fork() == 0:
            _be_connector(self._setup, text.removeprefix(CONNECT), self._line)

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
            names, request = next(iter(self._requests.items()))
            if self._hand_on(request):
                self._moved_at = now
            elif len(self._starting) < _MOST_STARTING:
                self._fork(request)
                self._moved_at = now
            elif now < self._moved_at + _HOLD_S:
                return
            else:
                # The starting ones hang, so requests no longer wait for them.
                self._fork(request)
            del self._requests[names]

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


if __name__ == "__main__":
    main(int(sys.argv[1]))
