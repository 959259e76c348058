"""One task of a supervisor: its processes, its output, its end.

Nothing here blocks: what takes time is asked again later.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from enum import Enum, auto

import msgspec

from bough.backends.local.attempt_folder import AttemptFolder
from bough.backends.local.attempt_state import (
    Acceptance,
    AttemptEnd,
    AttemptLock,
    Begun,
    StopRequest,
)
from bough.backends.local.data.disk_usage import DiskWatch
from bough.backends.local.order_lease import since_boot_ms
from bough.backends.local.sandbox.init_process import NOTICE
from bough.backends.local.sandbox.limits import Cgroup, make_group
from bough.backends.local.sandbox.network import Namespaces
from bough.backends.local.sandbox.sandbox import read_status
from bough.backends.local.sessions.session_socket import SessionDoor
from bough.backends.local.sessions.task_namespaces import RunningTask
from bough.backends.local.supervisor.exec_task import can_be_held, fork_task
from bough.backends.local.supervisor.forked_work import ForkedWork
from bough.backends.local.supervisor.instructions import StartOrder
from bough.backends.local.supervisor.processes import find_process, is_left
from bough.backends.local.supervisor.ptrace import release, seize
from bough.backends.local.task_command import Copy, TaskCommand, TaskLimits
from bough.backends.logs.log_writer import ERROR, OUT, LineCutter, LogWriter
from bough.durable_files import write_whole
from bough.model.backend import Sight
from bough.model.words import write_bytes
from bough.model.workflow import ExitCode
from bough.pipes import enlarge

#: How much is read from one stream at a time, so that every task has its turn.
READ_BYTES = 256 * 1024
#: How often output is read after the end, if an escaped process writes on and on.
_REST_READS = 64
_PIPE_BYTES = 512 * 1024
#: The folders that a task writes to.
_MEASURED = ("work", "tmp", "output", "root")


class Phase(Enum):
    """How far a task is."""

    WAITING = auto()
    #: There is a process, which sets everything up.
    FORKED = auto()
    READY = auto()
    #: It was told to execute its program.
    GOING = auto()
    RUNNING = auto()
    #: Its process has ended; what it left behind is being killed.
    ENDING = auto()
    #: Nothing of it runs; its results are being copied.
    COPYING = auto()
    #: Its end is recorded.
    FINISHED = auto()


#: Phases in which there is a process.
ALIVE = (Phase.FORKED, Phase.READY, Phase.GOING, Phase.RUNNING)


class SupervisedTask:
    """One task."""

    def __init__(
        self,
        folder: AttemptFolder,
        hold: AttemptLock,
        accepted: Acceptance,
        order: StartOrder,
        log_bytes: int,
    ) -> None:
        self.folder = folder
        self.accepted = accepted
        self.order = order
        self.phase = Phase.WAITING
        self.stop_request: StopRequest | None = None
        #: When to kill it, by the monotonic clock.
        self.kill_at: float | None = None
        self.command: TaskCommand | None = None
        self.group: Cgroup | None = None
        self.pid = 0
        self.channel: socket.socket | None = None
        self._status: int | None = None
        #: The process that is traced until its program has started, and whether it is stopped now.
        self.traced = 0
        self.held = False
        #: Its output and its errors, by the descriptor.
        self.streams: dict[int, LineCutter] = {}
        self.log = LogWriter(folder.path, log_bytes)
        #: The process that copies now, and when the next checkpoints are due.
        self.forked: ForkedWork | None = None
        #: How often copying its results was begun.
        self.copy_tries = 0
        self.due: dict[int, float] = {}
        #: How often left-over processes were looked for, and when to look again.
        self.sweeps = 0
        self.sweep_at = 0.0
        #: Measures its folders, if it has a limit, once it runs.
        self._disk: DiskWatch | None = None
        #: The process that became ready, within the sandbox, and the limit on its open files.
        self._ready_pid = 0
        self._limit = (0, 0)
        #: Whether no other task starts with it.
        self.alone = False
        #: Accepts sessions while it runs.
        self.door: SessionDoor | None = None
        self._hold = hold
        self._since = 0
        self._exit: tuple[int | None, int | None] = (None, None)
        self._ran = False
        self._refused = False
        self._told = False

    @property
    def name(self) -> str:
        """Its name in the workflow."""
        return self.order.launch.name

    @property
    def attempt(self) -> str:
        """Its identity."""
        return self.accepted.attempt

    @property
    def starting(self) -> bool:
        """Whether it is being started."""
        return self.phase in (Phase.FORKED, Phase.READY, Phase.GOING)

    def read_stop_request(self) -> StopRequest | None:
        """Read from its file whether it must end."""
        state = self._hold.read()
        return None if state is None else state.stop_request

    def enclose(self, group: Cgroup, limits: TaskLimits) -> None:
        """Set limits; the group is written down first, to be found if the supervisor dies."""
        write_whole(self.folder.group, msgspec.json.encode(group), durably=False)
        self.group = group
        make_group(group, limits)

    def fork(
        self,
        command: TaskCommand,
        limit: tuple[int, int],
        network: Namespaces | None = None,
        *,
        alone: bool = False,
    ) -> None:
        """Fork the process that becomes the task; `alone`: no other task starts with it."""
        self.command = command
        self.alone = alone
        self._limit = limit
        if command.clean_up:
            # For a server that finds it without a supervisor.
            write_whole(self.folder.cleaning, msgspec.json.encode(command.clean_up), durably=False)
        pipes = [os.pipe2(os.O_CLOEXEC) for _ in range(2)]
        for reading, writing in pipes:
            os.set_blocking(reading, False)
            enlarge(writing, _PIPE_BYTES)
            if os.geteuid() == 0 and command.account is not None:
                os.fchown(writing, command.account.user_id, command.account.group_id)
        (out, out_end), (error, error_end) = pipes
        self.streams = {out: LineCutter(OUT), error: LineCutter(ERROR)}
        try:
            streams = (out_end, error_end)
            forked = fork_task(command, self.group, streams, limit, network, alone=alone)
        finally:
            os.close(out_end)
            os.close(error_end)
        self.pid, self.channel, self._status = forked
        process = find_process(self.pid)
        self._since = 0 if process is None else process.since
        self.phase = Phase.FORKED

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel killed something of it for exceeding its memory limit."""
        return self.group is not None and self.group.memory_killed()

    def be_ready(self, pid: int) -> None:
        """Everything is set up, in the process with this id."""
        self.phase = Phase.READY
        self._ready_pid = pid
        # One that starts alone waits for no other program.
        if not self.alone and self.command is not None and can_be_held(self.command):
            self.traced = pid if seize(pid) else 0

    @property
    def executed(self) -> bool:
        """Whether its program was started."""
        return self.channel is None and (self.held or not self.traced)

    def begin(self) -> None:
        """Record durably that it may run from now on, so that no crash lets it run twice.

        The file is new, so usual file systems make its name durable with it.
        """
        self._hold.write(Begun(self.pid, self._since), durably=True)
        # It is never started again, so they are not needed.
        self.folder.secrets.unlink(missing_ok=True)
        self.phase = Phase.GOING

    def run(self, now_ms: int) -> None:
        """Its program, and those of all others, were started: let it run."""
        self._ran = True
        self._hold.write(Begun(self.pid, self._since, now_ms, since_boot_ms()))
        if self.held:
            release(self.traced)
            self.held = False
        self.phase = Phase.RUNNING
        now = time.monotonic()
        limit = None if self.command is None else self.command.limits.storage_bytes
        if limit is not None:
            self._disk = DiskWatch((self.folder.task / each for each in _MEASURED), limit, now)
        for number, copy in enumerate(self._checkpoints()):
            if copy.every_s is not None:
                self.due[number] = now + copy.every_s

    def open_door(self) -> SessionDoor | None:
        """Accept sessions from now on; `None`: it is ending already, or the disk is full."""
        command = self.command
        if command is None or self.phase is not Phase.RUNNING:
            return None
        with contextlib.suppress(OSError):
            # From here on the descriptor stands for this process, even if its id is reused.
            process = os.pidfd_open(self._ready_pid)
            inner = RunningTask(command, self._ready_pid, process, self.group, self._limit)
            try:
                self.door = SessionDoor(self.folder, inner)
            except OSError:
                os.close(process)
        return self.door

    def let_in(self) -> tuple[int, ...]:
        """Accept one session; what to read from now on, since sessions can add to the log."""
        if self.door is None:
            return ()
        made: dict[int, LineCutter] = {}
        # Without room for pipes only those sessions are refused that need them.
        with contextlib.suppress(OSError):
            pipes = self.door.make_pipes()
            if pipes is not None:
                made = {pipes[0]: LineCutter(OUT), pipes[1]: LineCutter(ERROR)}
        self.streams |= made
        self.door.open()
        return tuple(made)

    def close_door(self) -> None:
        """End all its sessions, and accept no more."""
        if self.door is not None:
            self.door.close()
            self.door = None

    def stop(self, stop_request: StopRequest) -> None:
        """Stop it with notice; again, if it has less time now."""
        self.stop_request = stop_request
        if self.phase is Phase.COPYING:
            return
        until = time.monotonic() + stop_request.grace_s
        self.kill_at = until if self.kill_at is None else min(until, self.kill_at)
        self.sweep_at = 0.0
        if self.phase is Phase.RUNNING:
            for number in (NOTICE, signal.SIGCONT):
                self._signal(number)
        elif self.phase in ALIVE:
            self.kill()

    def kill(self) -> None:
        """Kill its processes."""
        if self.phase in ALIVE:
            self._signal(signal.SIGKILL)
            if self.traced and self.phase is not Phase.RUNNING:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.traced, signal.SIGKILL)
        if self.group is not None:
            self.group.kill()
        if self.forked is not None:
            self.forked.kill()

    def read_end(self, found: os.waitid_result) -> tuple[int, int | None]:
        """The exit code as shells count it of its process that has ended, and its signal if any."""
        killed = found.si_code != os.CLD_EXITED
        number = found.si_status
        told = None if self._status is None else read_status(self._status)
        if told is not None:
            killed = os.WIFSIGNALED(told)
            number = os.WTERMSIG(told) if killed else os.WEXITSTATUS(told)
        return (128 + number, number) if killed else (number, None)

    def end(self, exit_code: int, number: int | None) -> None:
        """Its process has ended and is not yet waited for, so the process id is still its own."""
        if self._status is not None:
            os.close(self._status)
            self._status = None
        self._exit = (exit_code, number)
        self._told = self.stop_request is not None
        # Read now, because killing what is left counts as refused, too.
        self._refused = exit_code != 0 and self._group_refused()
        if not self._ended_by_notice:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        # It has executed its program and ended already.
        self._ran = self._ran or (self.phase is Phase.GOING and self.channel is None)
        self.phase = Phase.ENDING

    def finishing(self, now: float) -> bool:
        """Whether other processes of its group are still busy after the notice, within their time.

        A shell ends at the notice, while the program that it runs may still save its work.
        """
        in_time = self.kill_at is not None and now < self.kill_at
        return in_time and self._ended_by_notice and is_left(self.pid)

    @property
    def measure_at(self) -> float | None:
        """When its folders have to be measured; `None`: never, or it does not run."""
        running = self.phase is Phase.RUNNING
        return self._disk.due_at if running and self._disk is not None else None

    def measure(self, now: float) -> None:
        """Measure its folders a little further, and kill it if they are too large."""
        if self.measure_at is not None and self._disk is not None:
            self._disk.go_on(now)
            if self._disk.fault:
                self.kill()

    def due_copies(self, now: float) -> tuple[Copy, ...]:
        """The checkpoints that are due now."""
        due = [number for number, at in self.due.items() if at <= now]
        checkpoints = self._checkpoints()
        for number in due:
            self.due[number] = now + (checkpoints[number].every_s or 0)
        return tuple(checkpoints[number] for number in due)

    def last_copies(self, *, failed: bool) -> tuple[Copy, ...]:
        """What to copy after its end."""
        if self.command is None or not self._ran or failed:
            return ()
        outputs = self.command.outputs if self._exit[0] == 0 else ()
        return (*self.command.checkpoints, *outputs)

    def note(self, text: str, now_ms: int) -> None:
        """Add a line to its log."""
        line = LineCutter(ERROR)
        self.log.write(line.feed(text.encode(errors="replace") + b"\n", now_ms), now_ms)

    def read(self, descriptor: int, now_ms: int) -> bool:
        """Read its output; whether more can come."""
        try:
            chunk = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return True
        lines = self.streams[descriptor]
        self.log.write(lines.feed(chunk, now_ms) if chunk else lines.finish(now_ms), now_ms)
        return bool(chunk)

    def close_streams(self, now_ms: int) -> None:
        """Read the rest of its output."""
        for descriptor, lines in self.streams.items():
            for _ in range(_REST_READS):
                try:
                    chunk = os.read(descriptor, READ_BYTES)
                except BlockingIOError:
                    break
                if not chunk:
                    break
                self.log.write(lines.feed(chunk, now_ms), now_ms)
            self.log.write(lines.finish(now_ms), now_ms)
            os.close(descriptor)
        self.streams = {}
        self.log.tell_lost(now_ms)
        self.log.close()
        if self.channel is not None:
            self.channel.close()
            self.channel = None

    def finish(
        self, sight: Sight, message: str, now_ms: int, *, copies_failed: bool = False
    ) -> None:
        """Record durably how it ended."""
        code, number = self._exit if sight is Sight.ENDED and self._ran else (None, None)
        if copies_failed and code == 0:
            code = ExitCode.BACKEND
        end = AttemptEnd(
            sight=sight.value,
            at_ms=now_ms,
            exit_code=code,
            signal=number,
            message=message,
            lost_lines=self.log.lost_lines,
            boot_ms=since_boot_ms(),
            told=self._told,
        )
        if self.group is not None:
            # It is not looked for after the end. The next one has the same parents.
            self.group.remove(parents=False)
        with contextlib.suppress(OSError):
            self._hold.write(end, durably=True)
        self.phase = Phase.FINISHED

    def close(self) -> None:
        """Release the attempt, after its end is recorded."""
        self._hold.close()

    def how(self) -> str:
        """How it ended in words, where its exit code does not say everything."""
        if not self._ran:
            return "It was told to end before it was started."
        number = self._exit[1]
        if self._disk is not None and self._disk.fault:
            return f"It used {self._disk.fault}, and was killed."
        if self.out_of_memory:
            who = "It" if number == signal.SIGKILL else "A process of it"
            return f"{who} used more memory than it may{self._memory_used()}, and was killed."
        if number is None:
            return "It wanted more processes than it may have." if self._refused else ""
        return f"It was killed by signal {number} ({_signal_name(number)})."

    def _memory_used(self) -> str:
        """The limit, and the most that it used, where the kernel tells."""
        limit, used = (None, None) if self.group is None else self.group.memory_told()
        if limit is None:
            return ""
        most = "" if used is None else f", the most it had is {write_bytes(used)}"
        return f" (its limit is {write_bytes(limit)}{most})"

    def _group_refused(self) -> bool:
        return self.group is not None and self.group.processes_refused()

    @property
    def _ended_by_notice(self) -> bool:
        return self.stop_request is not None and self._exit[0] == 128 + NOTICE

    def _checkpoints(self) -> tuple[Copy, ...]:
        return () if self.command is None else self.command.checkpoints

    def _signal(self, number: int) -> None:
        """Send a signal to its process group; it is not yet waited for."""
        for send in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                send(self.pid, number)
                # The group exists once the process has set itself up; until then it is alone.
                return


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
