"""Several streams, an exit code and the size of a terminal on one websocket.

The first byte of each message is its channel, with the numbers that Kubernetes gives them (its
protocol v5.channel.k8s.io), so that a session of a pod can be passed on as it is. Clients that do
not offer this protocol get the plain terminal protocol of OSMO's clients: the first message is the
terminal's size, all others are input and output.
"""

from __future__ import annotations

import msgspec

PROTOCOL = "v1.channel.bough"
INPUT, OUTPUT, ERRORS, STATUS, SIZE, SIGNAL = 0, 1, 2, 3, 4, 5
#: Ends the channel that the next byte names.
END = 255
#: In the plain form, begins a new size.
RESIZE = b"\x00RESIZE:"
#: The longest message on a channel that is not a stream.
MOST_BYTES = 4_096


class TerminalSize(msgspec.Struct, frozen=True):
    """The size of a terminal; the names are those of OSMO's clients."""

    rows: int = msgspec.field(default=24, name="Rows")
    columns: int = msgspec.field(default=80, name="Cols")

    @property
    def possible(self) -> bool:
        """Whether a terminal can have this size."""
        return 0 <= self.rows < 1 << 16 and 0 <= self.columns < 1 << 16


class ExitStatus(msgspec.Struct, frozen=True):
    """How the command of a session has ended."""

    exit_code: int
    #: Where the exit code does not say everything.
    message: str = ""


def read_size(data: bytes) -> TerminalSize | None:
    """Read a size, or return `None`; clients capitalise its field names or not."""
    try:
        found = msgspec.json.decode(data)
    except msgspec.DecodeError:
        return None
    if not isinstance(found, dict):
        return None
    named = {str(name).lower(): value for name, value in found.items()}
    rows, columns = named.get("rows"), named.get("cols")
    if not isinstance(rows, int) or not isinstance(columns, int):
        return None
    size = TerminalSize(rows, columns)
    return size if size.possible else None


class PlainInput:
    """Tells typed input from terminal sizes in the plain protocol."""

    def __init__(self) -> None:
        #: What a message that may be a size has so far.
        self._held = b""
        self._begins = True

    def feed(self, data: bytes, *, last: bool) -> bytes | TerminalSize:
        """Take a piece of a message; it is a size only if the whole message is one, else input."""
        held, self._held = self._held + data, b""
        may_be_size = self._begins and held.startswith(RESIZE[: len(held)])
        if may_be_size and not last and len(held) <= MOST_BYTES:
            self._held = held
            return b""
        self._begins = last
        size = read_size(held.removeprefix(RESIZE)) if may_be_size else None
        return held if size is None else size
