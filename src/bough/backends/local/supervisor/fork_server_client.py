"""The server's side of the fork server: starts its process, and asks it for supervisors."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bough.backends.local.options import RUNNER_VARIABLES
from bough.backends.local.order_lease import OrderLease
from bough.backends.local.supervisor.group_network import GroupAddress
from bough.backends.local.supervisor.instructions import (
    CONNECT,
    ConnectAnswer,
    ConnectRequest,
    Setup,
    SupervisorRequest,
    encode,
)
from bough.errors import Unavailable

_MODULE = "bough.backends.local.supervisor.fork_server"
#: How long the process may take to read a request before it counts as lost.
_SEND_S = 10.0
_EXIT_S = 5.0
_LOG_BYTES = 2**20
_ANSWER_BYTES = 4_096
#: What it needs to find programs, and what container runners need; tasks get none of it.
_PASSED_VARIABLES = ("PATH", *RUNNER_VARIABLES)


class ForkServer:
    """Asks for supervisors, and replaces the process if it is lost."""

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
                self._send(CONNECT + msgspec.json.encode(asked) + b"\n")
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


def _environment() -> dict[str, str]:
    """The part of the server's environment, which may hold secrets, that is passed on."""
    passed = {each: os.environ[each] for each in _PASSED_VARIABLES if each in os.environ}
    # Absolute, because the process starts in another folder.
    search_path = os.pathsep.join(os.path.abspath(each) for each in sys.path if each)
    return {"PATH": os.defpath} | passed | {"PYTHONPATH": search_path}
