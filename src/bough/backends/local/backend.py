"""The local backend: tasks are processes of this machine that go on without the server.

Everything that it knows stands in files; each attempt has a folder, and while it runs a supervisor,
which is a process of its own. So a server that starts anew finds everything as it is. Must not
know why a task runs.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

import msgspec

from bough.backends.local.attempt_folder import AttemptFolder, Folders, folder_name, write_whole
from bough.backends.local.attempt_state import (
    Acceptance,
    AttemptEnd,
    AttemptState,
    StopRequest,
    create_state,
    read_state,
    write_state,
)
from bough.backends.local.attempt_view import AttemptView
from bough.backends.local.detect_gpus import find_gpus
from bough.backends.local.detect_nodes import find_machine, number_gpus
from bough.backends.local.finished_attempts import FinishedAttempts
from bough.backends.local.gpu_slots import GpuSlots
from bough.backends.local.logs.log_reader import AttemptLogReader
from bough.backends.local.options import LocalOptions
from bough.backends.local.preparation.accounts import account_warnings
from bough.backends.local.sandbox.limits import Cgroup, choose_limits, find_groups
from bough.backends.local.sandbox.sandbox import choose_sandbox
from bough.backends.local.supervisor.fork_server import ForkServer
from bough.backends.local.supervisor.instructions import Setup, StartOrder, encode
from bough.backends.local.supervisor.processes import boot_id, send_signal
from bough.backends.local.supervisor.supervisor_events import SupervisorEvents
from bough.errors import Invalid, Unavailable
from bough.model.backend import Launch, LogPart, Observation, Sight, Start, Stop
from bough.model.pool import OfferedNode

LOG = logging.getLogger(__name__)

#: How often everything is looked at again, whatever was heard; and how much of the time at most.
_LOOK_S = 1.0
_LOOK_SHARE = 20
#: How long a supervisor may take to appear before another one is asked for.
_ASK_S = 5.0
#: How long to wait for the server before this one to end.
_LOCK_S = 5.0
_NO_ROOM = "The disk of the machine is full: tasks are started when there is room again."
_ROOM_AGAIN = "There is room on the disk again: tasks are started."


def _nothing() -> None:
    """Wake nobody."""


class LocalBackend:
    """Runs tasks as processes. All calls may come from any thread."""

    def __init__(
        self,
        options: LocalOptions,
        now_ms: Callable[[], int],
        wake: Callable[[], None] = _nothing,
        name: str = "default",
    ) -> None:
        if sys.platform != "linux":
            raise Unavailable("Tasks can only be run on Linux.", hint="use --backend virtual")
        options = options.resolved()
        self._name = name
        self._now_ms = now_ms
        self._folders = Folders(options.folder)
        self._folder_mode = 0o711 if options.as_user else 0o700
        self._boot = boot_id()
        gpus = find_gpus()
        self._machines, about_machine = find_machine(options, gpus)
        sandbox, about_sandbox = choose_sandbox(options)
        limits, about_limits = choose_limits(options)
        #: What this machine cannot do, for the one who starts the server.
        self.warnings: tuple[str, ...] = (
            *about_machine,
            *about_sandbox,
            *about_limits,
            *account_warnings(options, sandbox),
        )
        self._gpu_slots = GpuSlots(number_gpus(self._machines, gpus[0]))
        self._finished = FinishedAttempts(self._folders, options)
        self._lock = threading.RLock()
        #: By the name of the folder.
        self._views: dict[str, AttemptView] = {}
        self._look_at = 0.0
        self._has_room = True
        self._server_lock = _occupy(self._folders, self._folder_mode)
        self._find_all()
        if limits is not None:
            self._end_strays(find_groups(limits))
        self._fork_server = ForkServer(Setup(options, sandbox, limits), self._folders.log)
        self._fork_server.start()
        self._events = SupervisorEvents(self._folders.events_pipe, wake)

    @property
    def name(self) -> str:
        """The name that pools refer to."""
        return self._name

    def nodes(self) -> tuple[OfferedNode, ...]:
        """The nodes that this machine is, or is to be taken for."""
        return self._machines

    def start(self, start: Start) -> None:
        """Start tasks together; those that are known already are left alone."""
        with self._lock:
            names: list[str] = []
            for launch in start.launches:
                name = folder_name(launch.attempt)
                view = self._recall(name)
                if view is None:
                    view = self._accept(name, StartOrder(start.workflow_id, start.group, launch))
                elif view.unstarted and view.asked_at is None:
                    # An earlier server took it on; the secrets may have been removed since.
                    self._write_secrets(view.folder, launch)
                if view.unstarted and view.asked_at is None:
                    names.append(name)
            self._ask(names)

    def stop(self, stop: Stop) -> None:
        """End attempts; those that are unknown count as ended."""
        with self._lock:
            stop_request = StopRequest(stop.reason[:200], stop.grace_s, self._now_ms())
            for attempt in stop.attempts:
                name = folder_name(attempt)
                view = self._recall(name)
                if view is None:
                    end = AttemptEnd(Sight.ENDED.value, self._now_ms())
                    self._write(
                        name, Acceptance(attempt, "", self._now_ms(), self._boot), stop_request, end
                    )
                else:
                    self._tell(view, stop_request)

    def observe(self) -> tuple[Observation, ...]:
        """All attempts that it knows, also those that ended, until they are forgotten."""
        with self._lock:
            begun = time.monotonic()
            for name in self._events.take():
                view = self._views.get(name)
                if view is not None:
                    self._look(view)
            if begun >= self._look_at:
                self._look_at_all()
                now = time.monotonic()
                self._look_at = now + max(_LOOK_S, (now - begun) * _LOOK_SHARE)
            return tuple(each.observation() for each in self._views.values())

    def forget(self, attempts: tuple[str, ...]) -> None:
        """The end of these was written down; what they wrote can still be read, for a while."""
        with self._lock:
            now_ms = self._now_ms()
            for attempt in attempts:
                name = folder_name(attempt)
                view = self._views.get(name)
                if view is not None and view.state.end is not None:
                    self._finished.add(name, now_ms)
                    del self._views[name]
            self._finished.expire(now_ms)

    def read_log(
        self, attempt: str, position: int = 0, *, last_lines: int | None = None
    ) -> LogPart | None:
        """What an attempt wrote, from a position on, or its last lines; `None`: nothing is kept."""
        folder = self._folders.of(folder_name(attempt))
        state = read_state(folder.state)
        if state is None:
            return None
        end = state.end
        lost_lines = 0 if end is None else end.lost_lines
        reader = AttemptLogReader(folder.path, finished=end is not None, lost_lines=lost_lines)
        return reader.read(position) if last_lines is None else reader.read_last(last_lines)

    def close(self) -> None:
        """The server ends; everything that runs goes on."""
        self._events.close()
        self._fork_server.close()
        os.close(self._server_lock)

    # What is known.

    def _find_all(self) -> None:
        """Read all that earlier servers have left."""
        for name in sorted(os.listdir(self._folders.open)):
            folder = self._folders.of(name)
            state = read_state(folder.state)
            if state is None:
                # It was never taken on: the server ended in the middle of it.
                self._finished.discard(name)
                (self._folders.open / name).unlink()
                continue
            self._remember(name, folder, state)
        self._finished.empty_trash()

    def _end_strays(self, groups: dict[str, Cgroup]) -> None:
        """End what is in the groups of attempts that are over, or of which nobody knows."""
        live = {each.attempt for each in self._views.values() if each.state.end is None}
        for attempt, group in groups.items():
            if attempt not in live:
                group.kill()
                group.remove()

    def _recall(self, name: str) -> AttemptView | None:
        """What is known of an attempt, also of one that was forgotten."""
        view = self._views.get(name)
        if view is not None:
            self._look(view)
            return view
        folder = self._folders.of(name)
        state = read_state(folder.state)
        if state is None:
            return None
        # Its end is told again, for somebody does not know of it.
        self._mark(name)
        return self._remember(name, folder, state)

    def _remember(self, name: str, folder: AttemptFolder, state: AttemptState) -> AttemptView:
        view = self._views[name] = AttemptView(folder, state)
        accepted = state.accepted
        if state.end is None:
            self._gpu_slots.hold(accepted.node, accepted.gpu_indices, name)
            self._look(view)
        return view

    def _look(self, view: AttemptView) -> None:
        if view.state.end is None:
            view.look(self._boot, self._now_ms())
            if view.state.end is not None:
                accepted = view.state.accepted
                self._gpu_slots.free(accepted.node, accepted.gpu_indices, view.folder.path.name)

    def _look_at_all(self) -> None:
        """Look at everything, and ask for supervisors that have not come."""
        now = time.monotonic()
        waiting: dict[tuple[str, ...], None] = {}
        for view in list(self._views.values()):
            self._look(view)
            late = view.asked_at is not None and view.asked_at + _ASK_S < now
            if view.unstarted and (late or (view.together and not self._fork_server.alive)):
                waiting[view.together] = None
        for names in waiting:
            self._ask([each for each in names if each in self._views])

    # What is to be done.

    def _accept(self, name: str, order: StartOrder) -> AttemptView:
        """Take an attempt on: its files are there before anything else happens."""
        launch = order.launch
        now_ms = self._now_ms()
        fault, gpus = self._give(name, launch)
        accepted = Acceptance(launch.attempt, launch.node, now_ms, self._boot, gpus)
        end = None
        if launch.started_ms is not None:
            text = "Nothing is known here of a task that is said to run."
            end = AttemptEnd(Sight.LOST.value, now_ms, message=text)
        elif fault:
            end = AttemptEnd(Sight.UNSTARTABLE.value, now_ms, message=fault)
        try:
            return self._write(name, accepted, *([end] if end else []), order=order)
        except BaseException:
            self._gpu_slots.free(launch.node, gpus, name)
            raise

    def _give(self, name: str, launch: Launch) -> tuple[str, tuple[int, ...]]:
        """The numbers of the GPUs that it gets, or what is wrong."""
        if launch.started_ms is not None:
            return "", ()
        if not self._gpu_slots.has(launch.node):
            return f"There is no node {launch.node} on this machine.", ()
        gpus = self._gpu_slots.take(launch.node, launch.gpus, name)
        if gpus is None:
            return f"Node {launch.node} has no {launch.gpus} GPUs that are free.", ()
        return "", gpus

    def _write(
        self,
        name: str,
        accepted: Acceptance,
        *more: StopRequest | AttemptEnd,
        order: StartOrder | None = None,
    ) -> AttemptView:
        folder = self._folders.of(name)
        folder.path.mkdir(mode=self._folder_mode, exist_ok=True)
        self._mark(name)
        if order is not None:
            plain = msgspec.structs.replace(order.launch, secrets={})
            write_whole(folder.launch, encode(msgspec.structs.replace(order, launch=plain)))
            self._write_secrets(folder, order.launch)
        create_state(folder.state, accepted, *more)
        state = read_state(folder.state)
        if state is None:
            raise Unavailable(f"{folder.state} cannot be read.")
        view = self._views[name] = AttemptView(folder, state)
        return view

    def _write_secrets(self, folder: AttemptFolder, launch: Launch) -> None:
        if launch.secrets:
            write_whole(folder.secrets, msgspec.json.encode(launch.secrets))

    def _mark(self, name: str) -> None:
        flags = os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC
        os.close(os.open(self._folders.open / name, flags, 0o600))

    def _ask(self, names: list[str]) -> None:
        """Ask for a supervisor; where the disk is full, only when there is room again."""
        if not names:
            return
        room = self._folders.has_room()
        if room:
            self._fork_server.supervise(names)
        if room is not self._has_room:
            self._has_room = room
            LOG.warning("%s", _ROOM_AGAIN if room else f"{_NO_ROOM} ({self._folders.root})")
        now = time.monotonic()
        for name in names:
            view = self._views[name]
            view.asked_at, view.together = now, tuple(names)
            view.waits = "" if room else _NO_ROOM

    def _tell(self, view: AttemptView, stop_request: StopRequest) -> None:
        """Have it written that an attempt is to end, and wake its supervisor."""
        state = view.state
        if state.end is not None:
            return
        before = state.stop_request
        if (
            before is None
            or stop_request.at_ms + stop_request.grace_s * 1_000
            < before.at_ms + before.grace_s * 1_000
        ):
            write_state(view.folder.state, stop_request)
        supervisor = state.supervisor
        if view.held and supervisor is not None:
            # Somebody may have made it stand still.
            for number in (signal.SIGUSR1, signal.SIGCONT):
                send_signal(supervisor.pid, supervisor.pid_since, number)
        self._look(view)


def _occupy(folders: Folders, mode: int) -> int:
    """Be the only server that uses the folder; one that is about to end is waited for."""
    try:
        folders.make(mode)
        descriptor = os.open(folders.server, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        reason = error.strerror or str(error)
        raise Invalid(f"{folders.root} cannot be the folder of the tasks: {reason}.") from None
    until = time.monotonic() + _LOCK_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            if time.monotonic() > until:
                os.close(descriptor)
                raise Unavailable(
                    f"Another server uses {folders.root}.", hint="stop it, or use another folder"
                ) from None
            time.sleep(0.05)
