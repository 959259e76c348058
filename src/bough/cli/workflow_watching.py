"""Watching a workflow: why it waits, what it writes, how it ends.

What a person should know beside the output is printed where errors go. A server that is started
again meanwhile is waited for: tasks go on without it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click

from bough.cli.output import printable
from bough.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from bough.api.workflows import ArrayDocument, GroupDocument, TaskDocument, WorkflowDocument
    from bough.client import Client

Answer = TypeVar("Answer")
COMPLETED = "COMPLETED"
#: The status of a workflow that was refused: only the record of that is kept.
REFUSED_STATUS = "FAILED_SUBMISSION"
#: The statuses of a workflow that has not ended, and of one that has nothing to show yet.
ALIVE = ("PENDING", "RUNNING", "WAITING")
WAITING = ("PENDING", "WAITING")
#: How often to ask: soon at first, then less often.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0
#: How long a server may be away before watching is given up.
PATIENCE_S = 300.0


#: Statuses of tasks that have not been started, and of all that have not ended.
UNSTARTED = ("SUBMITTING", "WAITING", "PROCESSING", "SCHEDULING")
UNFINISHED = (*UNSTARTED, "INITIALIZING", "RUNNING", "RESCHEDULED")
#: The length of the time in a line.
_TIME = len("2026/01/05 10:05:02")


class Part(NamedTuple):
    """Which part of the log to read."""

    task: str | None = None
    retry: int | None = None
    errors: bool = False
    last_lines: int | None = None


EVERYTHING = Part()


class Watch:
    """Watches one workflow."""

    def __init__(self, asked: Client, name: str, *, quiet: bool = False) -> None:
        self._asked = asked
        self._name = name
        self._quiet = quiet
        self._said = ""

    def until_started(self, task: str | None = None) -> WorkflowDocument:
        """Wait until a workflow, or one of its tasks, runs or has ended; show what it waits for."""
        for found in self._looks():
            if find_tasks(found, None) and not find_tasks(found, task):
                raise NotFound(f"Workflow {self._name} has no task {task}.")
            waits = [each for each in find_tasks(found, task) if each.status in UNSTARTED]
            if found.status not in (ALIVE if task is not None and waits else WAITING):
                return found
            self._say_why(found, task)
        raise AssertionError

    def until_ended(self, deadline: float | None = None) -> WorkflowDocument:
        """Wait until it has ended, or until a deadline of the steady clock has passed."""
        for found in self._looks():
            if found.status not in ALIVE or (deadline is not None and time.monotonic() > deadline):
                return found
            self._say_why(found)
        raise AssertionError

    def until_array_ended(self, deadline: float | None = None) -> ArrayDocument:
        """The same for an array; shows its progress whenever that changes."""
        pause_s = FIRST_PAUSE_S
        while True:
            found = self._patiently(lambda: self._asked.workflows.array(self._name))
            self.say(say_elements(found))
            if found.status not in ALIVE or (deadline is not None and time.monotonic() > deadline):
                return found
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def lines(
        self, part: Part = EVERYTHING, begin: Callable[[], None] = lambda: None
    ) -> Iterator[str]:
        """What its tasks write, until it ends; a broken stream goes on where it was.

        begin: called whenever the server has accepted to send them.
        """
        seen = _Seen()
        while True:
            whole = False
            try:
                stream = self._stream(part)
                begin()
                yield from seen.new_of(stream)
                whole = not seen.stopped
            except Unavailable as error:
                self.say(f"the log broke off: {error.message}")
            found = self._look()
            over = all(each.status not in UNFINISHED for each in find_tasks(found, part.task))
            ended = found.status not in ALIVE or (part.task is not None and over)
            if whole and (ended or seen.not_kept):
                return
            # From the second time on, everything is read again, and lines already seen are skipped.
            part = part._replace(last_lines=None)
            time.sleep(FIRST_PAUSE_S)

    def _stream(self, part: Part) -> Iterator[str]:
        return self._asked.workflows.logs(
            self._name,
            task=part.task,
            retry=part.retry,
            errors=part.errors,
            last_lines=part.last_lines,
        )

    def say(self, text: str) -> None:
        """Tell something, once for as long as nothing else is told."""
        if text != self._said and not self._quiet:
            self._said = text
            self.tell(text)

    def tell(self, text: str) -> None:
        """Tell something that counts, also where little should be said."""
        click.echo(printable(f"{self._name}: {text}"), err=True)

    def say_why_empty(self, task: str | None = None) -> bool:
        """Tell why there are no logs; returns whether there is a reason."""
        found = self._look()
        if found.status == REFUSED_STATUS:
            self.tell(f"has no logs: {found.failure_message or 'it was refused'}")
        elif found.status in ALIVE and all(
            each.status in UNSTARTED for each in find_tasks(found, task)
        ):
            reason = _reason(found, task)
            self.tell("has no logs yet" + (f"; waits: {reason}" if reason else ""))
        else:
            return False
        return True

    def _say_why(self, found: WorkflowDocument, task: str | None = None) -> None:
        reason = _reason(found, task)
        if reason and (task is not None or found.status in WAITING):
            self.say(f"waits: {reason}")

    def _looks(self) -> Iterator[WorkflowDocument]:
        pause_s = FIRST_PAUSE_S
        while True:
            yield self._look()
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _look(self) -> WorkflowDocument:
        return self._patiently(lambda: self._asked.workflows.get(self._name))

    def _patiently(self, ask: Callable[[], Answer]) -> Answer:
        """Ask the server; retries for a while if it cannot be reached."""
        give_up = time.monotonic() + PATIENCE_S
        while True:
            try:
                return ask()
            except Unavailable as error:
                if time.monotonic() > give_up:
                    raise
                self.say(f"the server does not answer, trying again: {error.message}")
                time.sleep(LONGEST_PAUSE_S)


class _Seen:
    """Which lines of a log were seen: how many of each second, from the first one on."""

    def __init__(self) -> None:
        self._times: dict[str, int] = {}
        self._first: str | None = None
        #: The stream was ended by a server that stops.
        self.stopped = False
        #: Nothing is kept of what is written, so nothing more comes.
        self.not_kept = False

    def new_of(self, lines: Iterator[str]) -> Iterator[str]:
        """The lines of a stream from its beginning that were not seen."""
        # Only here: a shell that completes words loads no types of the wire.
        from bough.api.common import LOG_NOT_KEPT, STREAM_STOPPED  # noqa: PLC0415

        self.stopped = False
        # Lines before the first that was seen were not asked for; of the first stream, all were.
        begin = self._first or ""
        again: dict[str, int] = {}
        for line in lines:
            if line == STREAM_STOPPED:
                self.stopped = True
                continue
            self.not_kept = line.startswith(LOG_NOT_KEPT)
            at = line[:_TIME]
            again[at] = again.get(at, 0) + 1
            if at < begin or again[at] <= self._times.get(at, 0):
                continue
            self._times[at] = again[at]
            self._first = self._first or at
            yield line


def say_elements(found: ArrayDocument) -> str:
    """How many elements of an array have which status."""
    parts = [f"{number} {status}" for status, number in found.statuses.items()]
    if found.archived:
        parts.append(f"{found.archived} archived")
    return f"of {found.elements}: {', '.join(parts)}"


def find_tasks(found: WorkflowDocument, name: str | None) -> list[TaskDocument]:
    """The latest attempts of its tasks, or of one of them."""
    tasks = (task for group in found.groups for task in group.tasks)
    return [each for each in tasks if name is None or each.name == name]


def _reason(found: WorkflowDocument, task: str | None) -> str | None:
    """What a workflow, or one of its tasks, waits for; the first of several reasons."""
    reasons = (
        _why(group)
        for group in found.groups
        if task is None or any(each.name == task for each in group.tasks)
    )
    return next(filter(None, reasons), None)


def _why(group: GroupDocument) -> str | None:
    if group.wait_message is None and group.remaining_upstream_groups:
        return f"for {', '.join(group.remaining_upstream_groups)}"
    return group.wait_message


def task_exit_code(found: WorkflowDocument, otherwise: int, task: str | None = None) -> int:
    """The exit code of the first task that failed, if that is one of a program; 0 if none did."""
    tasks = find_tasks(found, task)
    done = all(each.status == COMPLETED for each in tasks)
    if (found.status if task is None else COMPLETED if done else "") == COMPLETED:
        return 0
    for each in tasks:
        code = each.exit_code or 0
        if each.status == "FAILED" and 0 < code < 256:
            return code
    return otherwise
