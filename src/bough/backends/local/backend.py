"""The local backend: tasks are processes of this machine that outlive the server.

All state is in files: each attempt has a folder and, while it runs, a supervisor, which is a
process of its own. So a new server finds everything as it is.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping

import msgspec

from bough.backends.local.attempt_folder import AttemptFolder, Folders, folder_name
from bough.backends.local.attempt_state import (
    Acceptance,
    AttemptEnd,
    AttemptState,
    StopRequest,
    create_state,
    read_state,
    write_state,
)
from bough.backends.local.detect_gpus import find_gpus
from bough.backends.local.detect_nodes import find_nodes, number_gpus
from bough.backends.local.errors import lacks_room
from bough.backends.local.finished_attempts import FinishedAttempts
from bough.backends.local.gpu_slots import GpuSlots
from bough.backends.local.observed_attempt import AttemptView
from bough.backends.local.options import LocalOptions
from bough.backends.local.order_lease import follow, open_orders
from bough.backends.local.preparation.accounts import (
    account_warnings,
    ensure_account,
    has_account,
)
from bough.backends.local.sandbox.limits import Cgroup, choose_limits, find_groups
from bough.backends.local.sandbox.network_probe import choose_network
from bough.backends.local.sandbox.sandbox import choose_sandbox, enters_images
from bough.backends.local.supervisor.fork_server_client import ForkServer
from bough.backends.local.supervisor.group_network import GroupAddress, forget_gone
from bough.backends.local.supervisor.instructions import Setup, StartOrder, decode_order, encode
from bough.backends.local.supervisor.processes import boot_id, send_signal
from bough.backends.local.supervisor.supervisor_events import SupervisorEvents
from bough.backends.local.task_files import LocalTaskFiles
from bough.durable_files import sync_folder, write_whole
from bough.errors import Invalid, NotLeading, Unavailable
from bough.model.backend import (
    Launch,
    Leadership,
    Observation,
    Sight,
    Start,
    Stop,
)
from bough.model.cluster import Resources
from bough.model.pool import OfferedNode

LOG = logging.getLogger(__name__)

#: How often all attempts are read again, events or not; and at most this fraction of the time.
_LOOK_S = 1.0
_LOOK_SHARE = 20
#: How long a supervisor can take to appear before another one is requested.
_ASK_S = 5.0
#: How long to wait for the previous server to exit.
_LOCK_S = 5.0
_NO_ROOM = "The disk of the machine is full: tasks are started when there is room again."
_ROOM_AGAIN = "There is room on the disk again: tasks are started."


def _nothing() -> None:
    """The default of `wake`."""


class LocalBackend(LocalTaskFiles):
    """Runs tasks as processes. Any thread can call it."""

    def __init__(
        self,
        options: LocalOptions,
        now_ms: Callable[[], int],
        wake: Callable[[], None] = _nothing,
        name: str = "default",
    ) -> None:
        if sys.platform != "linux":
            raise Unavailable("Tasks can only be run on Linux.", hint="use --backend virtual")
        super().__init__(options, now_ms, name)
        options = self._options
        self._boot = boot_id()
        gpus = find_gpus()
        self._nodes, about_nodes = find_nodes(options, gpus)
        sandbox, about_sandbox = choose_sandbox(options)
        if options.image_folder is not None and not enters_images(sandbox):
            raise Unavailable(
                "Images of a folder need a sandbox in namespaces, and none can be made here.",
                hint="; ".join(about_sandbox) or "leave out --not-private, or be root",
            )
        ensure_account(options, sandbox)
        reached = options.as_user or (sandbox is None and has_account(options))
        self._folder_mode = 0o711 if reached else 0o700
        limits, about_limits = choose_limits(options)
        network, about_network = choose_network(options, sandbox)
        self._has_network = network is not None
        #: What this machine cannot do, for the administrator.
        self.warnings: tuple[str, ...] = (
            *about_nodes,
            *about_sandbox,
            *about_limits,
            *about_network,
            *account_warnings(options, sandbox),
        )
        self._gpu_slots = GpuSlots(number_gpus(self._nodes, gpus[0]))
        self._finished = FinishedAttempts(self._folders, options)
        self._lock = threading.RLock()
        #: By the name of the folder.
        self._views: dict[str, AttemptView] = {}
        self._look_at = 0.0
        self._has_room = True
        self._server_lock = _lock_folder(self._folders, self._folder_mode)
        _make_machine(self._folders)
        self._order_lease = open_orders(self._folders)
        self._find_all()
        forget_gone(self._folders)
        if limits is not None:
            self._kill_strays(find_groups(limits))
        if network is not None:
            self._folders.resolver.write_text(f"nameserver {network.resolver}\n")
            self._folders.resolver.chmod(0o644)
        setup = Setup(options, sandbox, limits, network)
        self._fork_server = ForkServer(setup, self._folders.log)
        self._fork_server.start()
        self._events = SupervisorEvents(self._folders.events_pipe, wake)

    def nodes(self) -> tuple[OfferedNode, ...]:
        """The nodes that this machine offers."""
        return self._nodes

    def used_by_others(self) -> Mapping[str, Resources]:
        """Nothing: its nodes are its own."""
        return {}

    def lead(self, leadership: Leadership) -> None:
        """What is ordered from now on is ordered under this lease."""
        with self._lock:
            self._order_lease = follow(self._folders, self._order_lease, leadership)

    def start(self, start: Start) -> None:
        """Start tasks together; those that are known already are left alone."""
        with self._lock:
            self._check_lease()
            names: list[str] = []
            for launch in start.launches:
                name = folder_name(launch.attempt)
                view = self._find(name)
                if view is None:
                    view = self._accept(name, self._order(start, launch))
                elif view.unstarted and view.asked_at is None:
                    # An earlier server accepted it; its secrets may have been removed since.
                    self._write_secrets(view.folder, launch)
                if view.unstarted and view.asked_at is None:
                    names.append(name)
            self._request_supervisor(names)

    def stop(self, stop: Stop) -> None:
        """Stop attempts; those that are unknown count as ended."""
        with self._lock:
            self._check_lease()
            stop_request = StopRequest(stop.reason[:200], stop.grace_s, self._now_ms())
            for attempt in stop.attempts:
                name = folder_name(attempt)
                view = self._find(name)
                if view is None:
                    self._end_unknown(name, attempt, stop_request)
                else:
                    self._request_stop(view, stop_request)

    def observe(self) -> tuple[Observation, ...]:
        """All attempts, finished ones included, until they are forgotten."""
        with self._lock:
            begun = time.monotonic()
            for name in self._events.take():
                view = self._views.get(name)
                if view is not None:
                    self._refresh(view)
            if begun >= self._look_at:
                self._refresh_all()
                now = time.monotonic()
                self._look_at = now + max(_LOOK_S, (now - begun) * _LOOK_SHARE)
            now_ms = self._now_ms()
            return tuple(each.observation(self._boot, now_ms) for each in self._views.values())

    def forget(self, attempts: tuple[str, ...]) -> None:
        """The server has recorded the end of these; their logs can still be read for some days."""
        with self._lock:
            now_ms = self._now_ms()
            for attempt in attempts:
                name = folder_name(attempt)
                view = self._views.get(name)
                if view is not None and view.state.end is not None:
                    self._finished.add(name, now_ms)
                    del self._views[name]
            self._finished.expire(now_ms)

    def connect(self, wanted: GroupAddress, timeout_s: float = 10.0) -> socket.socket:
        """A connection to what listens in the network of a group that runs here."""
        return self._fork_server.connect(wanted, timeout_s)

    def close(self) -> None:
        """Let go of everything; all tasks go on."""
        self._events.close()
        self._fork_server.close()
        os.close(self._server_lock)

    def _check_lease(self) -> None:
        """Refuse an order that was held up on its way here, until another server may decide."""
        if self._order_lease.expired:
            raise NotLeading

    # What there is.

    def _find_all(self) -> None:
        """Read the attempts of earlier servers."""
        for name in sorted(os.listdir(self._folders.open)):
            folder = self._folders.of(name)
            state = read_state(folder.state)
            if state is None:
                # It was never accepted: the server died in the middle of that.
                self._finished.discard(name)
                (self._folders.open / name).unlink()
                continue
            self._remember(name, folder, state)
        self._finished.empty_trash()

    def _kill_strays(self, groups: dict[str, Cgroup]) -> None:
        """Kill what is in control groups of finished or unknown attempts."""
        live = {each.attempt for each in self._views.values() if each.state.end is None}
        for attempt, group in groups.items():
            if attempt not in live:
                group.kill()
                group.remove()

    def _find(self, name: str) -> AttemptView | None:
        """The view of an attempt, also of one that was forgotten; `None`: it is unknown."""
        view = self._views.get(name)
        if view is not None:
            self._refresh(view)
            return view
        folder = self._folders.of(name)
        state = read_state(folder.state)
        if state is None:
            return None
        # Its end is reported again, because the caller does not know of it.
        self._mark(name)
        return self._remember(name, folder, state)

    def _remember(self, name: str, folder: AttemptFolder, state: AttemptState) -> AttemptView:
        view = self._views[name] = AttemptView(folder, state)
        accepted = state.accepted
        if state.end is None:
            self._gpu_slots.hold(accepted.node, accepted.gpu_indices, name)
            self._refresh(view)
        return view

    def _refresh(self, view: AttemptView) -> None:
        if view.state.end is None:
            view.look(self._boot, self._now_ms())
            if view.state.end is not None:
                accepted = view.state.accepted
                self._gpu_slots.free(accepted.node, accepted.gpu_indices, view.folder.path.name)

    def _refresh_all(self) -> None:
        """Read everything again, and request supervisors that did not appear."""
        now = time.monotonic()
        waiting: dict[tuple[str, ...], None] = {}
        for view in list(self._views.values()):
            self._refresh(view)
            late = view.asked_at is not None and view.asked_at + _ASK_S < now
            if view.unstarted and (late or (view.together and not self._fork_server.alive)):
                waiting[view.together] = None
        for names in waiting:
            self._request_supervisor([each for each in names if each in self._views])

    # What changes it.

    def _order(self, start: Start, launch: Launch) -> StartOrder:
        shares = self._has_network and self._is_on_host_network(start)
        return StartOrder(start.workflow_id, start.group, self._bounded(launch), shares)

    def _is_on_host_network(self, start: Start) -> bool:
        """Whether tasks of the group run in this machine's network, from before an upgrade."""
        for view in self._views.values():
            supervisor = view.state.supervisor
            if view.held and supervisor is not None and not supervisor.own_network:
                order = decode_order(view.folder.launch.read_bytes())
                if (order.workflow_id, order.group) == (start.workflow_id, start.group):
                    return True
        return False

    def _bounded(self, launch: Launch) -> Launch:
        """The same with limits where it asks for no memory or disk."""
        node = next((each for each in self._nodes if each.name == launch.node), None)
        if node is None:
            return launch
        limits = node.default_limits(launch.gpus)
        return msgspec.structs.replace(
            launch,
            memory_bytes=launch.memory_bytes or limits.memory_bytes,
            storage_bytes=launch.storage_bytes or limits.storage_bytes,
        )

    def _accept(self, name: str, order: StartOrder) -> AttemptView:
        """Accept an attempt: its files are written before anything else happens."""
        launch = order.launch
        now_ms = self._now_ms()
        fault, gpus = self._take_gpus(name, launch)
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

    def _take_gpus(self, name: str, launch: Launch) -> tuple[str, tuple[int, ...]]:
        """The indices of the GPUs that it gets, or what is wrong."""
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
            write_whole(
                folder.launch, encode(msgspec.structs.replace(order, launch=plain)), durably=False
            )
            self._write_secrets(folder, order.launch)
        create_state(folder.state, accepted, *more)
        state = read_state(folder.state)
        if state is None:
            raise Unavailable(f"{folder.state} cannot be read.")
        view = self._views[name] = AttemptView(folder, state)
        return view

    def _end_unknown(self, name: str, attempt: str, stop_request: StopRequest) -> None:
        """Never start an attempt; where the disk is full only this server knows of that."""
        accepted = Acceptance(attempt, "", self._now_ms(), self._boot)
        end = AttemptEnd(Sight.ENDED.value, self._now_ms())
        try:
            self._write(name, accepted, stop_request, end)
        except OSError as error:
            if not lacks_room(error):
                raise
            # A later server is told again, unless the end is recorded by then.
            state = AttemptState(accepted, stop_request=stop_request, end=end)
            self._views[name] = AttemptView(self._folders.of(name), state)

    def _write_secrets(self, folder: AttemptFolder, launch: Launch) -> None:
        if launch.secrets:
            write_whole(folder.secrets, msgspec.json.encode(launch.secrets), durably=False)

    def _mark(self, name: str) -> None:
        flags = os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC
        os.close(os.open(self._folders.open / name, flags, 0o600))

    def _request_supervisor(self, names: list[str]) -> None:
        """Request one supervisor for these; if the disk is full, once there is room again."""
        if not names:
            return
        room = self._folders.has_room()
        if room:
            self._fork_server.supervise(names, self._order_lease)
        if room is not self._has_room:
            self._has_room = room
            LOG.warning("%s", _ROOM_AGAIN if room else f"{_NO_ROOM} ({self._folders.root})")
        now = time.monotonic()
        for name in names:
            view = self._views[name]
            view.asked_at, view.together = now, tuple(names)
            view.waits = "" if room else _NO_ROOM

    def _request_stop(self, view: AttemptView, stop_request: StopRequest) -> None:
        """Record that an attempt must end, and wake its supervisor."""
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
            # The supervisor may have been stopped by SIGSTOP.
            for number in (signal.SIGUSR1, signal.SIGCONT):
                send_signal(supervisor.pid, supervisor.pid_since, number)
        self._refresh(view)


def _make_machine(folders: Folders) -> None:
    """Give the folder an identity, if it has none."""
    if not folders.machine.exists():
        # The database knows it from now on: a loss of power must not make another machine of it.
        write_whole(folders.machine, f"{uuid.uuid4().hex}\n".encode())
        sync_folder(folders.root.parent)


def _lock_folder(folders: Folders, mode: int) -> int:
    """Be the only server that uses the folder; wait a while for one that is exiting."""
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
