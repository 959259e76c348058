"""Runs the tasks of one start from their preparation to their end, whether the server lives or not.

They start together once all of them are ready, or not at all. A supervisor reads what to do from
files and writes what happened into them. It has one thread, and blocks only for the next event.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from functools import partial

import msgspec

from bough.backends.local.attempt_folder import AttemptFolder, folders_at
from bough.backends.local.data.copying import is_empty_move
from bough.backends.local.errors import TOO_LITTLE_MEMORY, Unstartable, lacks_room
from bough.backends.local.sandbox.limits import plan_group
from bough.backends.local.sandbox.network import Namespaces
from bough.backends.local.sandbox.syscalls import adopt_orphans
from bough.backends.local.supervisor.background_jobs import (
    blame,
    clean_up_folders,
    copy_all,
    load_stores,
    prepare_all,
    takes_long,
)
from bough.backends.local.supervisor.event_loop import EventLoop
from bough.backends.local.supervisor.exec_task import FAILED, GO, NO_ROOM, READY
from bough.backends.local.supervisor.forked_work import ForkedWork
from bough.backends.local.supervisor.group_network import GroupNetwork, hold_network
from bough.backends.local.supervisor.instructions import Setup
from bough.backends.local.supervisor.processes import kill_left
from bough.backends.local.supervisor.ptrace import EXECUTED, go_on, receive
from bough.backends.local.supervisor.supervised_task import ALIVE, Phase, SupervisedTask
from bough.backends.local.task_command import TaskCommand
from bough.errors import BoughError
from bough.model.backend import Sight

#: How long it sleeps at most; stop requests are read again then, even without a signal.
_SLEEP_S = 5.0
_SWEEP_S = 0.02
_SWEEP_S_MAX = 1.0
_GIVE_UP_SWEEPS = 100
#: How long the data of a stopped task is copied at most.
_COPY_S = 600.0
_MESSAGE_BYTES = 8_192
#: How often to retry preparation, or copying results, if its process is killed.
_TRIES = 3
_COMMANDS = msgspec.json.Decoder(tuple[TaskCommand, ...])


class Supervisor:
    """Supervises the tasks of one start."""

    def __init__(
        self,
        setup: Setup,
        tasks: list[SupervisedTask],
        limit: tuple[int, int],
        settled: Callable[[], None],
    ) -> None:
        self._setup = setup
        self._tasks = tasks
        self._events_pipe = folders_at(setup.options.folder).events_pipe
        self._events = EventLoop()
        self._preparing: ForkedWork | None = None
        self._preparations = 0
        #: Folders to clean up, and the process that does so.
        self._to_clean_up: list[AttemptFolder] = []
        self._cleaning: ForkedWork | None = None
        #: Why they are not started, and how that is reported.
        self._failure: str | None = None
        self._failed_as = Sight.UNSTARTABLE
        #: When to read stop requests again.
        self._look_at = 0.0
        #: Called when its tasks run, or it takes long until they do.
        self._settled = settled
        #: The limit on open files that tasks get.
        self._limit = limit
        #: `None`: that of this machine.
        self._network: GroupNetwork | None = None

    def run(self) -> None:
        """Run until all tasks are finished."""
        adopt_orphans()
        self._events.listen()
        self._prepare()
        self._clean_up_files()
        while self._events.forked_pids or any(
            task.phase is not Phase.FINISHED for task in self._tasks
        ):
            self._events.wait(self._timeout())
            if self._events.reap(self._ended, self._held):
                for task in self._tasks:
                    task.sweep_at = 0.0
            self._look()
            self._advance()
            self._end()
            self._clean_up_files()
        if self._network is not None:
            self._network.forget()

    def close(self) -> None:
        """Release everything, after all tasks are finished; attempts have no supervisor now."""
        self._events.close()
        if self._network is not None:
            self._network.close()
        for task in self._tasks:
            task.close()

    def give_up(self, message: str, unstarted: Sight) -> None:
        """The supervisor itself has failed: kill everything, and record that."""
        for task in self._tasks:
            task.kill()
        for _ in range(_GIVE_UP_SWEEPS):
            if not kill_left(0, "", self._own_pids, alone=True):
                break
            time.sleep(_SWEEP_S)
        for task in self._tasks:
            if task.phase is not Phase.FINISHED:
                sight = unstarted if task.phase is Phase.WAITING else Sight.LOST
                task.finish(sight, message, _now_ms())
        self._notify_server(self._tasks)

    @property
    def _undecided(self) -> bool:
        """Whether it is still open if they start; tasks that ended meanwhile have to wait."""
        return self._failure is None and any(task.starting for task in self._tasks)

    def _timeout(self) -> float:
        now = time.monotonic()
        times = [self._look_at]
        for task in self._tasks:
            if task.phase is Phase.ENDING:
                times += [] if self._undecided else [task.sweep_at]
            elif task.phase is not Phase.FINISHED and task.kill_at is not None:
                times.append(task.kill_at)
            if task.phase is Phase.RUNNING and task.forked is None:
                times += task.due.values()
            if task.measure_at is not None:
                times.append(task.measure_at)
        return max(0.0, min(times) - now)

    def _look(self) -> None:
        """Read stop requests, and kill tasks whose time is up."""
        now = time.monotonic()
        for task in self._tasks:
            if task.kill_at is not None and task.kill_at <= now and task.phase is not Phase.ENDING:
                task.kill()
                task.kill_at = now + _SWEEP_S_MAX
        if now < self._look_at and not self._events.nudged:
            return
        self._events.nudged = False
        self._look_at = now + _SLEEP_S
        for task in self._tasks:
            stop_request = None if task.phase is Phase.FINISHED else task.read_stop_request()
            if stop_request is not None and stop_request != task.stop_request:
                task.stop(stop_request)
        if self._preparing is not None and all(task.stop_request for task in self._tasks):
            self._preparing.kill()

    def _notify_server(self, tasks: list[SupervisedTask]) -> None:
        """Tell the server, if one runs, that these have changed."""
        with contextlib.suppress(OSError):
            descriptor = os.open(self._events_pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                for task in tasks:
                    os.write(descriptor, task.folder.path.name.encode() + b"\n")
            finally:
                os.close(descriptor)

    # The start.

    def _prepare(self) -> None:
        self._look()
        self._drop_stopped()
        waiting = [task for task in self._tasks if task.phase is Phase.WAITING]
        if any(takes_long(task) for task in waiting):
            self._settled()
            self._preparations += 1
            load_stores(waiting)
            work = partial(prepare_all, self._setup, waiting)
            self._preparing = self._events.fork_work(work, partial(self._prepared, waiting))
        elif waiting:
            try:
                self._fork(waiting, prepare_all(self._setup, waiting))
            except BoughError as error:
                self._fail(error.message, lost=lacks_room(error))

    def _prepared(self, tasks: list[SupervisedTask], forked: ForkedWork) -> None:
        """Preparation in another process is done."""
        self._preparing = None
        self._look_at = 0.0
        self._look()
        self._drop_stopped()
        content, fault = forked.result()
        if content is not None:
            self._fork(tasks, content)
        elif forked.cut_off and self._preparations < _TRIES:
            # Not the tasks' fault, and nothing of them has run.
            self._prepare()
        else:
            self._fail(fault, lost=forked.lacked_room)

    def _fork(self, tasks: list[SupervisedTask], commands: bytes) -> None:
        """Fork the processes that become the tasks."""
        for task, command in zip(tasks, _COMMANDS.decode(commands), strict=True):
            if task.phase is not Phase.WAITING or self._failure is not None:
                continue
            try:
                if self._setup.limits is not None:
                    task.enclose(plan_group(self._setup.limits, task.attempt), command.limits)
                namespaces = self._namespaces(task, command)
                task.fork(command, self._limit, namespaces, alone=len(tasks) == 1)
            except (BoughError, OSError) as error:
                self._fail(blame(task, str(error)), lost=lacks_room(error))
                return
            self._listen_to(task)

    def _namespaces(self, task: SupervisedTask, command: TaskCommand) -> Namespaces | None:
        """The network of its group, which is made for the first task; `None`: this machine's."""
        order = task.order
        if command.sandbox is None or order.shares_host_network:
            return None
        if self._network is None:
            folders = folders_at(self._setup.options.folder)
            setup = self._setup.network
            self._network = hold_network(folders, setup, order.workflow_id, order.group)
        return None if self._network is None else self._network.namespaces

    @property
    def _own_pids(self) -> tuple[int, ...]:
        """Children that belong to no task."""
        return () if self._network is None else self._network.pids

    @property
    def _session_pids(self) -> tuple[int, ...]:
        """The sessions of tasks that have not ended."""
        return tuple(pid for each in self._tasks if each.door for pid in each.door.pids)

    def _drop_stopped(self) -> None:
        """Finish tasks that were stopped before they were started."""
        dropped = [
            task for task in self._tasks if task.stop_request and task.phase is Phase.WAITING
        ]
        for task in dropped:
            self._finish(task)

    def _listen_to(self, task: SupervisedTask) -> None:
        """Listen to the channel and the output of a task."""
        if task.channel is not None:
            hear = partial(self._hear_task, task)
            self._events.add(task.channel, hear)
        self._read_from(task, tuple(task.streams))

    def _read_from(self, task: SupervisedTask, descriptors: tuple[int, ...]) -> None:
        for descriptor in descriptors:
            read = partial(self._read, task, descriptor)
            self._events.add(descriptor, read)

    def _read(self, task: SupervisedTask, descriptor: int) -> None:
        if not task.read(descriptor, _now_ms()):
            self._events.remove(descriptor)

    def _hear_task(self, task: SupervisedTask) -> None:
        """A process says that it is ready, or what is wrong; or it has executed its program."""
        channel = task.channel
        if channel is None:
            return
        try:
            said, pid = receive(channel, _MESSAGE_BYTES)
        except BlockingIOError:
            return
        if said.startswith(READY):
            task.be_ready(pid)
            return
        self._events.remove(channel)
        channel.close()
        task.channel = None
        if said.startswith((FAILED, NO_ROOM)):
            reason = said[1:].decode(errors="replace")
            self._fail(blame(task, reason), lost=said.startswith(NO_ROOM))

    def _advance(self) -> None:
        """Let all execute their programs once all are ready, and run once all have done so."""
        starting = [task for task in self._tasks if task.starting]
        if not starting or self._failure is not None:
            return
        if all(task.phase is Phase.READY for task in starting):
            self._let_go(starting)
        elif all(task.phase is Phase.GOING and task.executed for task in starting):
            now_ms = _now_ms()
            for task in starting:
                task.run(now_ms)
                self._open_door(task)
            self._notify_server(starting)
            self._settled()

    def _open_door(self, task: SupervisedTask) -> None:
        door = task.open_door()
        if door is not None:
            self._events.add(door.socket, lambda: self._read_from(task, task.let_in()))

    def _close_door(self, task: SupervisedTask) -> None:
        if task.door is not None:
            self._events.remove(task.door.socket)
            task.close_door()

    def _let_go(self, starting: list[SupervisedTask]) -> None:
        """Let tasks that are all ready execute their programs."""
        try:
            if self._network is not None:
                self._network.wait()
            for task in starting:
                task.begin()
        except OSError as error:
            reason = f"nothing can be written: {error.strerror}"
            self._fail(blame(starting[0], reason), lost=lacks_room(error))
            return
        except Unstartable as error:
            # It worked when the server was started, so this is not the tasks' fault.
            self._fail(blame(starting[0], error.message), lost=True)
            return
        for task in starting:
            if task.channel is not None:
                with contextlib.suppress(OSError):
                    task.channel.send(GO)

    def _held(self, found: os.waitid_result) -> None:
        """A traced process is stopped: it has executed its program, or got a signal before."""
        task = next((each for each in self._tasks if each.traced == found.si_pid), None)
        if task is not None and found.si_status == EXECUTED:
            task.held = True
        else:
            go_on(found.si_pid, found.si_status)

    def _fail(self, message: str, *, lost: bool = False) -> None:
        """One of them cannot be started, so none is; lost: not because of how they are written."""
        if self._failure is None:
            self._failure = message
            self._failed_as = Sight.LOST if lost else Sight.UNSTARTABLE
        for task in self._tasks:
            if task.phase is Phase.WAITING:
                self._finish(task)
            else:
                task.kill()

    # The end.

    def _ended(self, found: os.waitid_result) -> None:
        """A process has ended, maybe that of a task."""
        if self._network is not None:
            self._network.reopen(found.si_pid)
        for each in self._tasks:
            if each.door is not None:
                each.door.ended(found.si_pid)
        task = next((each for each in self._tasks if each.pid == found.si_pid), None)
        if task is None or task.phase not in ALIVE:
            return
        if task.channel is not None:
            self._hear_task(task)
        if task.phase is Phase.GOING and task.executed and task.alone:
            # It was so quick that its start was not noticed before.
            task.run(_now_ms())
        code, number = task.read_end(found)
        if task.phase in (Phase.FORKED, Phase.READY) and not task.stop_request:
            self._fail_unstarted(task, killed=number is not None)
        task.end(code, number)

    def _fail_unstarted(self, task: SupervisedTask, *, killed: bool) -> None:
        """A process ended before it executed its program; if it was killed, it can be retried."""
        if task.out_of_memory:
            self._fail(blame(task, TOO_LITTLE_MEMORY))
        else:
            reason = "was killed" if killed else "ended"
            self._fail(blame(task, f"its process {reason} before it was started"), lost=killed)

    def _end(self) -> None:
        now = time.monotonic()
        if self._undecided:
            return
        for task in self._tasks:
            task.measure(now)
            if task.phase is Phase.ENDING and task.sweep_at <= now:
                self._sweep(task, now)
            elif task.phase is Phase.RUNNING and task.forked is None:
                self._save(task, now)

    def _sweep(self, task: SupervisedTask, now: float) -> None:
        """Kill what the task left behind, and look again until nothing is left."""
        if task.finishing(now):
            self._sweep_later(task, now)
            return
        self._close_door(task)
        alive = [each.pid for each in self._tasks if each.phase in ALIVE]
        left = task.group is not None and not task.group.kill()
        left |= kill_left(
            task.pid,
            task.attempt,
            {*alive, *self._events.forked_pids, *self._own_pids, *self._session_pids},
            alone=not alive,
        )
        if left:
            self._sweep_later(task, now)
            return
        if task.forked is not None:
            # A checkpoint is being copied, and wakes the supervisor when it is done.
            task.sweep_at = now + _SWEEP_S_MAX
            return
        self._collect(task, now)

    def _sweep_later(self, task: SupervisedTask, now: float) -> None:
        task.sweep_at = now + min(_SWEEP_S * 2**task.sweeps, _SWEEP_S_MAX)
        task.sweeps = min(task.sweeps + 1, 10)

    def _collect(self, task: SupervisedTask, now: float) -> None:
        """Nothing of the task runs any more: read the rest of its output, and copy its results."""
        for descriptor in task.streams:
            self._events.remove(descriptor)
        task.close_streams(_now_ms())
        task.phase = Phase.COPYING
        # The last checkpoint has a time of its own, because the notice was for it.
        task.kill_at = None if task.stop_request is None else now + _COPY_S
        self._copy_results(task)

    def _copy_results(self, task: SupervisedTask) -> None:
        task.copy_tries += 1
        copies = task.last_copies(failed=self._failure is not None)
        before = () if task.command is None else task.command.clean_up
        if before or not all(map(is_empty_move, copies)):
            work = partial(copy_all, copies, before)
            task.forked = self._events.fork_work(work, partial(self._copied, task))
            return
        fault = ""
        try:
            # Renaming empty folders is quick enough to do here.
            copy_all(copies)
        except BoughError as error:
            fault = error.message
        self._finish(task, fault)

    def _copied(self, task: SupervisedTask, forked: ForkedWork) -> None:
        content, fault = forked.result()
        task.forked = None
        if forked.cut_off and task.stop_request is None and task.copy_tries < _TRIES:
            # It goes on where it was killed.
            self._copy_results(task)
        else:
            self._finish(task, "" if content is not None else fault)

    def _save(self, task: SupervisedTask, now: float) -> None:
        """Copy the checkpoints that are due."""
        copies = task.due_copies(now)
        if copies:
            work = partial(copy_all, copies)
            task.forked = self._events.fork_work(work, partial(self._saved, task))

    def _saved(self, task: SupervisedTask, forked: ForkedWork) -> None:
        content, fault = forked.result()
        task.forked = None
        if content is None and task.streams:
            task.note(f"[a checkpoint could not be copied: {fault}]", _now_ms())

    def _finish(self, task: SupervisedTask, fault: str = "") -> None:
        """Record the end and tell the server; files that are not needed are removed after that."""
        if self._failure is not None and not task.stop_request:
            task.finish(self._failed_as, self._failure, _now_ms())
        else:
            task.finish(Sight.ENDED, fault or task.how(), _now_ms(), copies_failed=bool(fault))
        self._notify_server([task])
        self._to_clean_up.append(task.folder)

    def _clean_up_files(self) -> None:
        """Remove files that finished tasks do not need, in one process at a time."""
        if not self._to_clean_up or self._cleaning is not None:
            return
        folders, self._to_clean_up = self._to_clean_up, []
        if any(task.phase is not Phase.FINISHED for task in self._tasks):
            self._cleaning = self._events.fork_work(
                partial(clean_up_folders, folders), self._cleaned_up
            )
        else:
            # Nothing else is left to do, so this can block.
            clean_up_folders(folders)

    def _cleaned_up(self, forked: ForkedWork) -> None:
        del forked
        self._cleaning = None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
