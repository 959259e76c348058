"""Stops a process at the moment at which it has executed another program (`ptrace`).

So it is known that all programs of a gang could be started before any of them does anything. Where
the machine does not allow tracing, nothing is stopped.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import struct

_SEIZE, _CONTINUE, _DETACH = 0x4206, 7, 17
_EVENT_EXECUTED = 4
_OPTION_EXECUTED, _OPTION_KILL_WITH_TRACER = 1 << _EVENT_EXECUTED, 1 << 20
_CREDENTIALS = struct.Struct("iii")

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
_LIBC.ptrace.restype = ctypes.c_long

#: The wait status of a process that is stopped after it has executed a program.
EXECUTED = signal.SIGTRAP | _EVENT_EXECUTED << 8


def seize(pid: int) -> bool:
    """Trace it: it stops after `exec`, and dies with this process; whether that is possible."""
    options = _OPTION_EXECUTED | _OPTION_KILL_WITH_TRACER
    return _LIBC.ptrace(_SEIZE, pid, None, options) == 0


def go_on(pid: int, status: int) -> None:
    """Continue it after it was stopped by a signal."""
    number = status & 0xFF
    _LIBC.ptrace(_CONTINUE, pid, None, None if status >> 8 or number == signal.SIGTRAP else number)


def release(pid: int) -> None:
    """Stop tracing it, and let it run."""
    _LIBC.ptrace(_DETACH, pid, None, None)


def learn_senders(channel: socket.socket) -> None:
    """Have the kernel add the sender's process id to what comes through a channel."""
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)


def receive(channel: socket.socket, size: int) -> tuple[bytes, int]:
    """What came, and the process id of its sender as it is here, outside of namespaces."""
    try:
        content, extra, _, _ = channel.recvmsg(size, socket.CMSG_SPACE(_CREDENTIALS.size))
    except ConnectionError:
        # It was killed before it had read everything.
        return b"", 0
    for level, kind, value in extra:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
            return content, _CREDENTIALS.unpack(value[: _CREDENTIALS.size])[0]
    return content, 0


def is_held(found: os.waitid_result) -> bool:
    """Whether a process is stopped, and has not ended."""
    return found.si_code in (os.CLD_TRAPPED, os.CLD_STOPPED)
