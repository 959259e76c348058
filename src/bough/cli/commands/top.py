"""`bough top`: who holds each GPU, and what waits and why, refreshed every few seconds."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from bough.cli.command import Command
from bough.cli.name_arguments import pools_option
from bough.cli.options import format_option
from bough.cli.output import echo
from bough.cli.screen import terminal_columns
from bough.cli.server_commands import client
from bough.cli.text.top import GpuHolder, NodeHolders, Top, render_top
from bough.errors import Unavailable

if TYPE_CHECKING:
    from bough.client import Client

#: The most rows to ask for: tasks on nodes, and waiting workflows.
MOST_TASKS, MOST_WAITING = 1_000, 100
#: Terminal codes: the alternate screen without a cursor, and back; to the top, clear the rest.
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_LINES = 24
_HOME, _END_OF_LINE, _REST = "\x1b[H", "\x1b[K", "\x1b[J"


@click.command(cls=Command)
@pools_option
@click.option("--once", is_flag=True, help="Print it once (default without a terminal).")
@click.option(
    "--interval",
    type=click.FloatRange(0.2, 3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to refresh.",
)
@format_option
def top(pools: tuple[str, ...], once: bool, interval: float, format_type: str) -> None:
    """Show who holds each GPU, what waits, and why.

    Refreshes until you press q or Ctrl-C.
    """
    asked = client()
    if once or format_type == "json" or not sys.stdout.isatty():
        echo(look(asked, pools), format_type, render_top)
        return
    with _page() as wait:
        while True:
            lines = _lines(asked, pools)
            height = _height()
            shown = [f"{line}{_END_OF_LINE}" for line in lines[: height - 1]]
            sys.stdout.write(_HOME + "\r\n".join(shown) + f"\r\n{_REST}")
            sys.stdout.flush()
            if wait(interval):
                return


def look(asked: Client, pools: tuple[str, ...]) -> Top:
    """Ask the server for the current state."""
    statuses = ["INITIALIZING", "RUNNING"]
    tasks = asked.tasks.list(pools=pools, limit=MOST_TASKS, query={"statuses": statuses}).tasks
    nodes = asked.nodes.list().nodes
    if pools:
        nodes = [each for each in nodes if not each.pools or set(each.pools) & set(pools)]
    waiting = asked.workflows.list(
        pools=pools,
        limit=MOST_WAITING,
        query={"statuses": ["PENDING", "WAITING"], "order": "ASC"},
    )
    held: dict[tuple[str, str], list[GpuHolder]] = {}
    for task in sorted(tasks, key=lambda each: (each.start_time or "", each.workflow_id)):
        if task.gpu and task.node is not None:
            holders = held.setdefault((task.backend or "", task.node), [])
            first = holders[-1].last + 1 if holders else 0
            holders.append(
                GpuHolder(
                    first=first,
                    last=first + task.gpu - 1,
                    workflow=task.workflow_id,
                    task=task.task_name,
                    user=task.user,
                    pool=task.pool,
                    priority=task.priority,
                    start_time=task.start_time,
                )
            )
    return Top(
        nodes=[
            NodeHolders(
                node=each.name,
                status=each.status,
                gpus=each.gpu,
                used=each.used_gpu,
                holders=held.get((each.backend, each.name), []),
            )
            for each in nodes
        ],
        waiting=waiting.workflows,
        more_waiting=waiting.more_entries,
    )


def _lines(asked: Client, pools: tuple[str, ...]) -> list[str]:
    try:
        return render_top(look(asked, pools), terminal_columns()).split("\n")
    except Unavailable as error:
        return [f"The server does not answer, trying again: {error.message}"]


def _height() -> int:
    with suppress(OSError):
        # Some terminals do not know their height.
        return max(os.get_terminal_size(sys.stdout.fileno()).lines or _LINES, 2)
    return _LINES


@contextmanager
def _page() -> Iterator[Wait]:
    """Switch to the alternate screen; yields a way to wait, and always restores the terminal."""
    import termios  # noqa: PLC0415  only here, and not on every system
    import tty  # noqa: PLC0415

    keys = sys.stdin.fileno() if sys.stdin.isatty() else None
    before = None if keys is None else termios.tcgetattr(keys)
    ended = signal.signal(signal.SIGTERM, _interrupt)
    sys.stdout.write(_ENTER)
    try:
        if keys is not None:
            # Ctrl-C still interrupts; keys arrive without Enter, and are not echoed.
            tty.setcbreak(keys)
        yield Wait(keys)
    except KeyboardInterrupt:
        pass
    finally:
        if keys is not None and before is not None:
            termios.tcsetattr(keys, termios.TCSADRAIN, before)
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()
        signal.signal(signal.SIGTERM, ended)


class Wait:
    """Waits until the next refresh."""

    def __init__(self, keys: int | None) -> None:
        self._keys = keys

    def __call__(self, seconds: float) -> bool:
        """Whether a key asked to end."""
        if self._keys is None:
            time.sleep(seconds)
            return False
        ready, _, _ = select.select([self._keys], [], [], seconds)
        if not ready:
            return False
        key = os.read(self._keys, 1)
        return key in (b"q", b"Q", b"\x1b", b"")


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
