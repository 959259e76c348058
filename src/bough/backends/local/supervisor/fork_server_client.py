"""The server's side of the warden (see wardenship.py): starts it, and asks it for keepers.

Must not know what keepers do.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bough.backends.local.options import RUNNER_VARIABLES
from bough.backends.local.supervisor.instructions import Setup, encode

#: How long to wait for a warden to take a few words before it counts as lost.
_TIMEOUT_S = 10.0
_STOP_S = 5.0
_PROCESS = "bough.backends.local.supervisor.fork_server"
_LOG_BYTES = 2**20
#: Where programs are found, and what container runners need; tasks have none of it.
_PASSED = ("PATH", *RUNNER_VARIABLES)


class Warden:
    """The server's side: asks for keepers, and starts another warden when one is lost."""

    def __init__(self, setup: Setup, log: Path) -> None:
        self._setup = setup
        #: Where wardens and keepers write what nobody expected.
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None

    @property
    def alive(self) -> bool:
        """Whether it is there."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, in the place of one that is lost."""
        self.close()
        ours, theirs = socket.socketpair()
        if self._log.exists() and self._log.stat().st_size > _LOG_BYTES:
            self._log.unlink()
        with theirs, self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - Python itself
                [sys.executable, "-m", _PROCESS, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                # Not the server's own, which somebody may read to their end.
                stdout=log,
                stderr=log,
                pass_fds=(theirs.fileno(),),
                env=_environment(),
                cwd="/",
                start_new_session=True,
            )
        ours.settimeout(_TIMEOUT_S)
        self._line = ours
        ours.sendall(encode(self._setup) + b"\n")

    def keep(self, names: Sequence[str]) -> None:
        """Have a keeper for some attempts."""
        text = json.dumps(names).encode() + b"\n"
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
        """Let it end; what it has forked goes on."""
        if self._line is not None:
            self._line.close()
            self._line = None
        if self._process is not None:
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None


def _environment() -> dict[str, str]:
    """What of the server's environment, which may have secrets, goes further."""
    passed = {each: os.environ[each] for each in _PASSED if each in os.environ}
    return {"PATH": os.defpath} | passed | {"PYTHONPATH": _search_path()}


def _search_path() -> str:
    """Where Python finds its modules, also from elsewhere."""
    return os.pathsep.join(os.path.abspath(each) for each in sys.path if each)
