"""Of which server, and of which lease, the orders are that count in a folder; older ones do not.

The file `leader` has two numbers: how often a server has opened the folder, and the number of the
lease under which it gives orders. Both only rise, the second one for each opening anew: a database
that was restored begins again with an earlier number. Supervisors read it before they begin.
"""

from __future__ import annotations

import time

import msgspec

from bough.backends.local.attempt_folder import Folders
from bough.durable_files import write_whole
from bough.errors import NotLeading
from bough.model.backend import Leadership


class OrderLease(msgspec.Struct, frozen=True):
    """What an order is given under."""

    opening: int = 0
    number: int = 0
    #: In milliseconds of CLOCK_BOOTTIME; `None`: it does not expire.
    until_ms: int | None = None

    @property
    def expired(self) -> bool:
        """Whether the server may have lost its lease meanwhile, without knowing it."""
        if self.until_ms is None:
            return False
        return since_boot_ms() >= self.until_ms


def since_boot_ms() -> int:
    """The clock that all processes of a machine share, and that is never set."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def open_orders(folders: Folders) -> OrderLease:
    """Be the server whose orders count; none of an earlier one does any more."""
    opened = OrderLease(_read(folders)[0] + 1)
    _write(folders, opened)
    return opened


def follow(folders: Folders, held: OrderLease, leadership: Leadership) -> OrderLease:
    """Give orders under a lease from now on; refused where they were under a later one."""
    if leadership.number < held.number:
        raise NotLeading
    new = OrderLease(held.opening, *leadership)
    if new.number > held.number:
        _write(folders, new)
    return new


def counts(folders: Folders, order: OrderLease) -> bool:
    """Whether an order is still to be followed."""
    return not order.expired and (order.opening, order.number) >= _read(folders)


def _read(folders: Folders) -> tuple[int, int]:
    try:
        opening, number = folders.leader.read_text().split()
        return int(opening), int(number)
    except (FileNotFoundError, ValueError):
        return 0, 0


def _write(folders: Folders, lease: OrderLease) -> None:
    write_whole(folders.leader, f"{lease.opening} {lease.number}\n".encode(), durably=False)
