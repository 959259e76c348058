"""Watching a workflow: why it waits, what it writes, how it ends.

What a person should know beside the output is printed where errors go. A server that is started
again meanwhile is waited for: tasks go on without it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from bough.cli.output import printable
from bough.errors import Unavailable

if TYPE_CHECKING:
    from bough.api.workflows import WorkflowDocument
    from bough.client import Client

COMPLETED = "COMPLETED"
#: The statuses of a workflow that has not ended, and of one that has nothing to show yet.
ALIVE = ("PENDING", "RUNNING", "WAITING")
WAITING = ("PENDING", "WAITING")
#: How often to ask: soon at first, then less often.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0
#: How long a server may be away before watching is given up.
PATIENCE_S = 300.0


class Watch:
    """Watches one workflow."""

    def __init__(self, asked: Client, name: str, *, quiet: bool = False) -> None:
        self._asked = asked
        self._name = name
        self._quiet = quiet
        self._said = ""

    def until_started(self) -> WorkflowDocument:
        """Wait until it runs or has ended; say what it waits for, whenever that changes."""
        for found in self._looks():
            if found.status not in WAITING:
                return found
            self._say_why(found)
        raise AssertionError

    def until_ended(self, deadline: float | None = None) -> WorkflowDocument:
        """Wait until it has ended, or until a deadline of the steady clock has passed."""
        for found in self._looks():
            if found.status not in ALIVE or (deadline is not None and time.monotonic() > deadline):
                return found
            self._say_why(found)
        raise AssertionError

    def lines(self) -> Iterator[str]:
        """What its tasks write, until it ends; a broken stream goes on where it was."""
        seen = 0
        while True:
            try:
                for number, line in enumerate(self._asked.workflows.logs(self._name)):
                    if number >= seen:
                        seen = number + 1
                        yield line
            except Unavailable as error:
                self.say(f"the log broke off: {error.message}")
            if self._look().status not in ALIVE:
                return
            time.sleep(FIRST_PAUSE_S)

    def say(self, text: str) -> None:
        """Tell something, once for as long as nothing else is told."""
        if text != self._said and not self._quiet:
            self._said = text
            click.echo(printable(f"{self._name}: {text}"), err=True)

    def _say_why(self, found: WorkflowDocument) -> None:
        reasons = [each.wait_message for each in found.groups if each.wait_message]
        if reasons and found.status in WAITING:
            self.say(f"waits: {reasons[0]}")

    def _looks(self) -> Iterator[WorkflowDocument]:
        pause_s = FIRST_PAUSE_S
        while True:
            yield self._look()
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _look(self) -> WorkflowDocument:
        """What it is doing; a server that is away is asked again for a while."""
        give_up = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self._asked.workflows.get(self._name)
            except Unavailable as error:
                if time.monotonic() > give_up:
                    raise
                self.say(f"the server does not answer, trying again: {error.message}")
                time.sleep(LONGEST_PAUSE_S)


def task_exit_code(found: WorkflowDocument, otherwise: int) -> int:
    """The exit code of the first task that failed, if that is one of a program; 0 if none did."""
    if found.status == COMPLETED:
        return 0
    for group in found.groups:
        for task in group.tasks:
            code = task.exit_code or 0
            if task.status == "FAILED" and 0 < code < 256:
                return code
    return otherwise
