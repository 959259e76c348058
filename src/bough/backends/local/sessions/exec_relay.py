"""Connects a command in a task with its client: input, output, sizes, signals, exit code.

With a terminal, the command starts once the size is known. It is ended when its client goes; output
that it wrote before its end is still sent.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable

import msgspec

from bough.backends.local.errors import Unstartable
from bough.backends.local.sessions.task_process import CommandInTask, TaskProcess
from bough.model.session import SERVER_GONE, SessionRequest
from bough.websocket.channels import (
    END,
    ERRORS,
    INPUT,
    MOST_BYTES,
    OUTPUT,
    SIGNAL,
    SIZE,
    STATUS,
    ExitStatus,
    PlainInput,
    TerminalSize,
    read_size,
)
from bough.websocket.frames import GOING_AWAY, PROTOCOL_FAULT, Piece
from bough.websocket.peer import Peer
from bough.websocket.pending_writes import Outgoing
from bough.websocket.relay import READ, WRITE

#: The signals that can be sent to the command.
_SIGNALS = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGCONT")
_CANNOT_START = 127
_END_OF_FILE = b"\x04"

Starter = Callable[[CommandInTask], TaskProcess]


class ExecRelay:
    """Serves the client of one command."""

    def __init__(self, peer: Peer, wanted: SessionRequest, start: Starter) -> None:
        self.ended = False
        self.exit_code: int | None = None
        self.peer = peer
        self._wanted = wanted
        self._start = start
        self._process: TaskProcess | None = None
        self._input: Outgoing | None = None
        #: The command's outputs, and the channel of each.
        self._outputs: dict[int, int] = {}
        self._exited = False
        self._plain = PlainInput()
        #: The channel of the message that is being read; its bytes so far, unless it is a stream.
        self._channel: int | None = None
        self._message = bytearray()
        self._first = bytearray()
        #: The first byte is the channel.
        self._buffer = memoryview(bytearray(peer.block + 1))
        self._closed_before = False
        if not wanted.terminal:
            self._begin(TerminalSize())
        if peer.has_rest:
            self._take()

    def interests(self) -> dict[int, int]:
        """The client is read only while the command takes its input, and the other way round."""
        found: dict[int, int] = {}
        given = self._input
        reads = not self.peer.gone and not (given is not None and given.pending)
        found[self.peer.fileno()] = (READ if reads else 0) | (WRITE if self.peer.pending else 0)
        if self._process is not None and not self._exited:
            found[self._process.ended] = READ
        if not self.peer.pending and not self._exited:
            for each in self._outputs:
                found[each] = READ
        if given is not None and given.pending:
            found[given.descriptor] = found.get(given.descriptor, 0) | WRITE
        return {descriptor: events for descriptor, events in found.items() if events}

    def ready(self, descriptor: int, events: int) -> None:
        """Pass on what there is."""
        if descriptor == self.peer.fileno():
            if events & WRITE:
                self.peer.flush()
            if events & READ:
                self._take()
        elif self._process is not None and descriptor == self._process.ended:
            self._exited = True
        else:
            if events & WRITE and self._input is not None:
                self._input.flush()
            if events & READ and descriptor in self._outputs:
                self._give(descriptor)
        self._settle()

    def tick(self) -> None:
        """Ping if needed; drop the connection if the client takes too long to close it."""
        self.ended = self._closed_before and self.peer.closing
        self._closed_before = self.peer.closing and not self.peer.pending
        self.peer.keep_busy()

    def close(self) -> None:
        """End the command, if it runs, and hang up."""
        self.ended = True
        if self._process is not None and self.exit_code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)
        self.peer.hang_up(GOING_AWAY, SERVER_GONE)

    # From the client

    def _take(self) -> None:
        for piece in self.peer.read():
            if self._wanted.channels:
                self._take_of_channel(piece)
            elif self._process is None:
                self._take_first(piece)
            else:
                self._take_plain(self._plain.feed(bytes(piece.data), last=piece.last))
        self.ended = self.ended or self.peer.gone

    def _take_first(self, piece: Piece) -> None:
        """The first message of a plain client is the size of its terminal."""
        self._first += piece.data
        if not piece.last and len(self._first) <= MOST_BYTES:
            return
        size = read_size(bytes(self._first))
        if size is None:
            self.peer.close(PROTOCOL_FAULT, 'the first message must be like {"Rows":24,"Cols":80}')
        else:
            self._begin(size)

    def _take_plain(self, found: bytes | TerminalSize) -> None:
        if isinstance(found, TerminalSize):
            self._resize(found)
        elif found:
            self._write(found)

    def _take_of_channel(self, piece: Piece) -> None:
        data = piece.data
        if self._channel is None and data:
            self._channel, data = data[0], data[1:]
        if self._channel == INPUT:
            self._write(data)
        elif len(self._message) + len(data) > MOST_BYTES:
            self.peer.close(PROTOCOL_FAULT, f"a message of channel {self._channel} is too long")
        else:
            self._message += data
        if piece.last:
            channel, self._channel = self._channel, None
            message, self._message = bytes(self._message), bytearray()
            self._obey(channel, message)

    def _obey(self, channel: int | None, message: bytes) -> None:
        """Act on a whole message of a channel that is not a stream."""
        if channel == SIZE:
            size = read_size(message)
            if size is not None:
                self._resize(size)
        elif channel == SIGNAL and self._process is not None:
            name = message.decode(errors="replace")
            if name in _SIGNALS:
                self._process.send_signal(getattr(signal, name))
        elif channel == END and message == bytes((INPUT,)):
            if self._wanted.terminal:
                self._write(_END_OF_FILE)
            elif self._input is not None:
                self._input.end()

    def _resize(self, size: TerminalSize) -> None:
        if self._process is None:
            self._begin(size)
        elif self._wanted.terminal:
            self._process.resize(size.rows, size.columns)

    def _write(self, data: bytes | memoryview) -> None:
        if self._input is not None and data:
            self._input.write(data)

    # From the command

    def _begin(self, size: TerminalSize) -> None:
        wanted = self._wanted
        command = CommandInTask(wanted.argv, wanted.terminal, size.rows, size.columns)
        try:
            process = self._process = self._start(command)
        except Unstartable as error:
            self._fail(error.message)
            return
        if process.input is not None:
            # A terminal uses one descriptor for reading and writing.
            descriptor = os.dup(process.input) if wanted.terminal else process.input
            self._input = Outgoing(descriptor)
        self._outputs = dict(zip(process.outputs, (OUTPUT, ERRORS), strict=False))

    def _fail(self, message: str) -> None:
        self.exit_code = _CANNOT_START
        if self._wanted.channels:
            self._tell(ExitStatus(_CANNOT_START, message))
        else:
            self.peer.send(f"{message}\r\n".encode())
        self.peer.close()

    def _give(self, descriptor: int) -> bool:
        """Send what the command has written; returns whether there was anything."""
        try:
            size = os.readv(descriptor, [self._buffer[1:]])
        except BlockingIOError:
            return False
        except OSError:
            # No program has the terminal open any more.
            size = 0
        if not size:
            del self._outputs[descriptor]
            return False
        if self._wanted.channels:
            self._buffer[0] = self._outputs[descriptor]
            self.peer.send(self._buffer[: size + 1])
        else:
            self.peer.send(self._buffer[1 : size + 1])
        return True

    def _settle(self) -> None:
        """Once the command has ended and all its output is sent, send how it ended."""
        if not self._exited or self._process is None or self.ended:
            return
        while not self.peer.pending and any(self._give(each) for each in tuple(self._outputs)):
            pass
        if self.peer.pending or self.exit_code is not None:
            return
        self.exit_code = self._process.wait()
        if self._wanted.channels:
            self._tell(ExitStatus(self.exit_code))
        self.peer.close()

    def _tell(self, status: ExitStatus) -> None:
        self.peer.send(bytes((STATUS,)) + msgspec.json.encode(status))
