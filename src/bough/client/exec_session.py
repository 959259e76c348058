"""Runs a command in a task with the streams or the terminal of this process.

The command's output and errors go to the same streams here; its exit code is returned. Without a
terminal, signals that would end this process are passed on to the command.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import sys
from collections.abc import Callable, Generator

import msgspec

from bough.errors import Unavailable
from bough.websocket.channels import (
    END,
    ERRORS,
    INPUT,
    OUTPUT,
    SIGNAL,
    SIZE,
    STATUS,
    ExitStatus,
    TerminalSize,
)
from bough.websocket.frames import Piece
from bough.websocket.peer import Peer
from bough.websocket.relay import READ, WRITE, Listener, Loop

#: Passed on where no terminal makes signals of the keys that are typed.
_PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
_DEFAULT_SIZE = (24, 80)


class ExecSession:
    """The local end of a command in a task."""

    def __init__(self, peer: Peer, *, reads_input: bool, terminal: bool) -> None:
        self.ended = False
        self.peer = peer
        self._terminal = terminal
        #: Standard input; `None` once it has ended.
        self._input: int | None = sys.stdin.fileno() if reads_input else None
        self._channel: int | None = None
        self._status = bytearray()
        self.status: ExitStatus | None = None
        #: The first byte is the channel.
        self._buffer = memoryview(bytearray(peer.block + 1))
        self._buffer[0] = INPUT

    def run(self) -> ExitStatus:
        """Run it until it ends."""
        if self._terminal:
            self._tell_size()
        if self._input is None:
            self._end_input()
        # Unlike epoll, this one accepts plain files.
        loop = Loop(selector=selectors.PollSelector())
        loop.ends_with = self
        with _own_terminal(on=self._terminal), _hearing(self._signalled) as bell:
            loop.add(bell)
            if self.peer.has_rest:
                self._take()
            loop.add(self)
            loop.run()
        if self.status is None:
            reason = "" if self.peer.closed_by_other is None else self.peer.closed_by_other[1]
            raise Unavailable(f"The session was cut off{f': {reason}' if reason else ''}.")
        return self.status

    def interests(self) -> dict[int, int]:
        """Standard input is read only while the server takes it."""
        found = {self.peer.fileno(): READ | (WRITE if self.peer.pending else 0)}
        if self._input is not None and not self.peer.pending:
            found[self._input] = READ
        return found

    def ready(self, descriptor: int, events: int) -> None:
        """Pass on what there is."""
        if descriptor == self.peer.fileno():
            if events & WRITE:
                self.peer.flush()
            if events & READ:
                self._take()
        else:
            self._give()

    def tick(self) -> None:
        """Ping if needed."""
        self.peer.keep_busy()

    def close(self) -> None:
        """Hang up."""
        self.ended = True
        self.peer.hang_up()

    def _take(self) -> None:
        for piece in self.peer.read():
            self._take_piece(piece)
        self.ended = self.peer.gone

    def _take_piece(self, piece: Piece) -> None:
        data = piece.data
        if self._channel is None and data:
            self._channel, data = data[0], data[1:]
        if self._channel == OUTPUT:
            _write(sys.stdout.fileno(), data)
        elif self._channel == ERRORS:
            _write(sys.stderr.fileno(), data)
        elif self._channel == STATUS:
            self._status += data
        if piece.last:
            if self._channel == STATUS:
                self.status = msgspec.json.decode(bytes(self._status), type=ExitStatus)
            self._channel = None

    def _give(self) -> None:
        if self._input is None:
            return
        try:
            size = os.readv(self._input, [self._buffer[1:]])
        except OSError:
            size = 0
        if size:
            self.peer.send(self._buffer[: size + 1])
        else:
            self._input = None
            self._end_input()

    def _end_input(self) -> None:
        self.peer.send(bytes((END, INPUT)))

    def _tell_size(self) -> None:
        try:
            columns, rows = os.get_terminal_size(sys.stdin.fileno())
        except OSError:
            rows, columns = _DEFAULT_SIZE
        size = msgspec.json.encode(TerminalSize(rows, columns))
        self.peer.send(bytes((SIZE,)) + size)

    def _signalled(self, number: int) -> None:
        if number == signal.SIGWINCH:
            if self._terminal:
                self._tell_size()
        else:
            self.peer.send(bytes((SIGNAL,)) + signal.Signals(number).name.encode())


def _write(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of it; if the reader has gone, the command is still waited for."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            continue
        except OSError:
            return


@contextlib.contextmanager
def _own_terminal(*, on: bool) -> Generator[None]:
    """Put this terminal into raw mode, so that keys reach the command's; restore it at the end."""
    if not on or not sys.stdin.isatty():
        yield
        return
    import termios  # noqa: PLC0415  only for terminals
    import tty  # noqa: PLC0415

    before = termios.tcgetattr(sys.stdin)
    try:
        # Keep what was typed before.
        tty.setraw(sys.stdin, termios.TCSADRAIN)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _hearing(call: Callable[[int], None]) -> Generator[Listener]:
    """Receive signals in the event loop."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    names = ("SIGWINCH", *_PASSED_ON)
    before = {each: signal.signal(each, _leave) for each in map(_number, names)}
    previous = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)

    def hear(_: Listener) -> None:
        for number in ours.recv(64):
            call(number)

    try:
        yield Listener(ours.fileno(), hear)
    finally:
        signal.set_wakeup_fd(previous)
        for number, handler in before.items():
            signal.signal(number, handler)
        ours.close()
        theirs.close()


def _number(name: str) -> signal.Signals:
    return signal.Signals[name]


def _leave(number: int, frame: object) -> None:
    """Do nothing: the event loop learns of the signal from its wakeup descriptor."""
    del number, frame
