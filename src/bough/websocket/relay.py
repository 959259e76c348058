"""Forwards data between websockets and plain streams, and holds little of it in memory.

A loop has members; each says which of its descriptors it waits for. A member reads from one side
only when the other has taken everything sent before, so a slow reader slows the sender down instead
of filling memory.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
from collections.abc import Callable
from time import monotonic
from typing import Protocol

from bough.websocket.frames import GOING_AWAY, LARGE
from bough.websocket.kernel_pipe import KernelPipe, can_be_spliced
from bough.websocket.peer import Peer
from bough.websocket.pending_writes import SocketOutgoing

#: The most that is moved as one message: below the 1 MiB limit of some clients.
_MOVED_BLOCK = 512 << 10
#: How often a side that gives much is read before others have their turn.
_TURNS = 8
READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Member(Protocol):
    """Something that a loop serves."""

    #: Finished; the loop closes it.
    ended: bool

    def interests(self) -> dict[int, int]:
        """The descriptors that it waits for, and for what."""
        ...

    def ready(self, descriptor: int, events: int) -> None:
        """One of them can be read from or written to."""
        ...

    def tick(self) -> None:
        """A few seconds have passed."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


class Loop:
    """Serves members until there are none, or it is told to stop."""

    def __init__(self, tick_s: float = 5.0, selector: selectors.BaseSelector | None = None) -> None:
        self._selector = selector or selectors.DefaultSelector()
        self._tick_s = tick_s
        self._tick_at = monotonic() + tick_s
        self._members: dict[Member, dict[int, int]] = {}
        self.stopped = False
        #: The loop stops when this member ends.
        self.ends_with: Member | None = None

    @property
    def members(self) -> tuple[Member, ...]:
        """Those that have not ended."""
        return tuple(self._members)

    def add(self, member: Member) -> None:
        """Serve another one."""
        self._members[member] = {}
        self._update(member)

    def run(self) -> None:
        """Serve all members; closes the remaining ones when told to stop."""
        try:
            while self._members and not self.stopped:
                found = self._selector.select(self._tick_s)
                for key, events in found:
                    member: Member = key.data
                    if member in self._members and key.fd in self._members[member]:
                        member.ready(key.fd, events)
                        self._update(member)
                if monotonic() >= self._tick_at:
                    self._tick_at = monotonic() + self._tick_s
                    for member in self.members:
                        member.tick()
                        self.refresh(member)
        finally:
            for member in self.members:
                self._drop(member)

    def refresh(self, member: Member) -> None:
        """Ask a member again what it waits for, after something else changed that."""
        if member in self._members:
            self._update(member)

    def _update(self, member: Member) -> None:
        if member.ended:
            self._drop(member)
            return
        before, now = self._members[member], member.interests()
        if before == now:
            return
        for descriptor in before.keys() - now.keys():
            self._selector.unregister(descriptor)
        for descriptor, events in now.items():
            if descriptor not in before:
                self._selector.register(descriptor, events, member)
            elif before[descriptor] != events:
                self._selector.modify(descriptor, events, member)
        self._members[member] = now

    def _drop(self, member: Member) -> None:
        for descriptor in self._members.pop(member):
            with contextlib.suppress(KeyError, ValueError, OSError):
                self._selector.unregister(descriptor)
        member.close()
        self.stopped = self.stopped or member is self.ends_with


class Listener:
    """Calls back whenever a descriptor is readable; for descriptors that are not streams."""

    def __init__(self, descriptor: int, call: Callable[[Listener], None]) -> None:
        self.ended = False
        self._descriptor = descriptor
        self._call = call

    def interests(self) -> dict[int, int]:
        """To read."""
        return {self._descriptor: READ}

    def ready(self, descriptor: int, events: int) -> None:
        """Call back."""
        del descriptor, events
        self._call(self)

    def tick(self) -> None:
        """Nothing happens by itself."""

    def close(self) -> None:
        """Do nothing: the caller owns the descriptor."""


class Forwarding:
    """Connects a websocket with a stream socket, in both directions.

    With `halves`, an empty message ends one direction alone; without, the end of either closes
    both, as other clients expect.
    """

    def __init__(self, peer: Peer, stream: socket.socket, *, halves: bool) -> None:
        stream.setblocking(False)
        self.ended = False
        self.peer = peer
        self._stream = stream
        self._halves = halves
        self._out = SocketOutgoing(stream)
        self._buffer = memoryview(bytearray(peer.block))
        self._splices = can_be_spliced(stream)
        #: For large messages, made when the first of them comes.
        self._pipe_in: KernelPipe | None = None
        self._pipe_out: KernelPipe | None = None
        #: The stream has just given much at once.
        self._gives_much = False
        #: The stream has ended.
        self._stream_ended = False
        #: The other end of the websocket has ended its direction.
        self._peer_ended = False
        #: The websocket was closed some seconds ago, with nothing left to send.
        self._closed_before = False
        if peer.has_rest:
            self._take()

    def interests(self) -> dict[int, int]:
        """Each side is read only while the other has taken everything."""
        found: dict[int, int] = {}
        out = self._out
        reads = not self.peer.gone and not out.pending
        wanted = (READ if reads else 0) | (WRITE if self.peer.pending else 0)
        if wanted:
            found[self.peer.fileno()] = wanted
        gives = not self._stream_ended and not self.peer.pending
        wanted = (READ if gives else 0) | (WRITE if out.pending else 0)
        if wanted:
            found[self._stream.fileno()] = wanted
        return found

    def ready(self, descriptor: int, events: int) -> None:
        """Pass on what there is."""
        if descriptor == self.peer.fileno():
            if events & WRITE:
                self.peer.flush()
            if events & READ:
                self._while_much(self._take)
        else:
            if events & WRITE:
                self._out.flush()
            if events & READ:
                self._while_much(self._give)
        self._settle()

    def tick(self) -> None:
        """Ping if needed; drop the connection if the other end takes too long to close it."""
        self.ended = self._closed_before and self.peer.closing
        self._closed_before = self.peer.closing and not self.peer.pending
        self.peer.keep_busy()

    def close(self) -> None:
        """Close both."""
        self.ended = True
        self.peer.hang_up(GOING_AWAY)
        self._stream.close()
        for pipe in (self._pipe_in, self._pipe_out):
            if pipe is not None:
                pipe.close()
        self._pipe_in = self._pipe_out = None

    def _while_much(self, move: Callable[[], bool]) -> None:
        """Move a block, and more while much comes and all of it is taken."""
        for _ in range(_TURNS):
            if not move() or self.peer.pending or self._out.pending:
                return

    def _take(self) -> bool:
        """Pass on what has come from the websocket; whether it was much."""
        before = self.peer.received
        moves = self._pipe_in is not None and self._out.usable
        if not (moves and self.peer.left_as_is):
            self._take_pieces(moves=moves)
        if self.peer.left_as_is and self._splices and self._out.usable and not self._out.pending:
            self._pipe_in = self._pipe_in or KernelPipe.made()
            if self._pipe_in is not None and self.peer.read_into(self._pipe_in):
                self._out.write_from(self._pipe_in)
        if self.peer.gone:
            self._peer_ended = True
        if self._peer_ended:
            self._out.end()
        return self.peer.received - before >= LARGE and not self.peer.gone

    def _take_pieces(self, *, moves: bool) -> None:
        for piece in self.peer.read(moves=moves):
            if piece.data:
                self._out.write(piece.data)
            elif self._halves and piece.last:
                self._peer_ended = True

    def _give(self) -> bool:
        """Pass on what has come from the stream; whether it was much."""
        if self.peer.pending:
            # Since the loop saw the stream readable, a ping was answered, and not all of that sent.
            return False
        pipe = self._pipe_to_give()
        try:
            if pipe is None:
                size = self._stream.recv_into(self._buffer)
            else:
                size = pipe.fill(self._stream.fileno(), _MOVED_BLOCK)
        except BlockingIOError:
            return False
        except OSError:
            # It was cut off, in both directions.
            size = 0
            self._out.break_off()
        self._gives_much = size >= LARGE
        if size:
            if pipe is None:
                self.peer.send(self._buffer[:size])
            else:
                self.peer.send_from(pipe)
            return self._gives_much
        self._stream_ended = True
        if self._halves and not self._peer_ended:
            self.peer.send(b"")
        else:
            self.peer.close()
        return False

    def _pipe_to_give(self) -> KernelPipe | None:
        """A pipe, if the stream has just given much and it can be sent as it is."""
        if not (self._gives_much and self._splices and self.peer.sends_as_is):
            return None
        self._pipe_out = self._pipe_out or KernelPipe.made()
        return self._pipe_out

    def _settle(self) -> None:
        """Update whether this member has ended."""
        if self._out.broken:
            # The stream accepts no more data, but what it sent before can still be read.
            self._peer_ended = True
        if self.peer.gone and not self._out.pending:
            self.ended = True
        elif self._stream_ended and self._peer_ended and not self._out.pending:
            self.peer.close()
            self.ended = not self.peer.pending
