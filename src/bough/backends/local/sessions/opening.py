"""The server's side of sessions: opens a session at the door of an attempt.

It needs only the folder of the attempts, so any process of the machine can do it.
"""

from __future__ import annotations

import errno
import os
import socket

import msgspec

from bough.backends.local.attempt_folder import Folders, folder_name
from bough.errors import Conflict, Unavailable
from bough.model.session import SessionNews, SessionRequest

_ANSWER_S = 20.0
_LINE_BYTES = 64 << 10
_NOT_RUNNING = "The task does not run, or was started by an older version that lets nothing in."


def open_session(folders: Folders, attempt: str, wanted: SessionRequest) -> int:
    """Open a session; returns the line to it, the descriptor of a Unix packet socket.

    The line delivers `SessionNews`, and connections are handed over on it. Closing it ends the
    session.
    """
    line = _connect(folders, attempt)
    try:
        line.settimeout(_ANSWER_S)
        line.send(msgspec.json.encode(wanted))
        content = line.recv(_LINE_BYTES)
        news = msgspec.json.decode(content, type=SessionNews) if content else SessionNews()
    except TimeoutError:
        line.close()
        raise Unavailable("The supervisor of the task does not answer.") from None
    except OSError:
        line.close()
        raise Conflict(_NOT_RUNNING) from None
    if not news.ready:
        line.close()
        raise Conflict(_sentence(news.fault) if news.fault else _NOT_RUNNING)
    line.setblocking(False)
    return line.detach()


def _connect(folders: Folders, attempt: str) -> socket.socket:
    folder = folders.of(folder_name(attempt))
    line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    line.settimeout(_ANSWER_S)
    try:
        above = os.open(folder.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # The path of a Unix socket has to be short.
            line.connect(f"/proc/self/fd/{above}/{folder.sessions.name}")
        finally:
            os.close(above)
    except OSError as error:
        line.close()
        if error.errno in (errno.ENOENT, errno.ECONNREFUSED):
            raise Conflict(_NOT_RUNNING) from None
        raise Unavailable(f"The task cannot be reached: {error.strerror}.") from None
    return line


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
