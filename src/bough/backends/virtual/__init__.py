"""The virtual backend: tasks hold their GPUs for as long as they are told to, and nothing runs.

For demonstrations, tests and what-ifs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

import msgspec

from bough.backends.offered_gpus import (
    CPU_MILLI_PER_GPU,
    DEFAULT_GPUS,
    MEMORY_PER_GPU,
    STORAGE_PER_GPU,
)
from bough.errors import Conflict
from bough.model.backend import (
    Launch,
    Leadership,
    LogPart,
    Machine,
    Observation,
    Sight,
    Start,
    Stop,
)
from bough.model.cluster import Resources
from bough.model.pool import OfferedNode
from bough.model.session import SessionRequest

GPUS_PER_NODE = 8


class _Running(msgspec.Struct):
    """An attempt that holds its GPUs, or did."""

    launch: Launch
    started_ms: int
    ended_ms: int | None = None
    exit_code: int | None = None


class NoFiles:
    """The empty files of tasks that never really run."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        """The name that pools refer to."""
        return self._name

    @property
    def machine(self) -> Machine | None:
        """It belongs to none."""
        return None

    def read_log(
        self,
        attempt: str,
        position: int = 0,
        *,
        last_lines: int | None = None,
        limit_bytes: int | None = None,
    ) -> LogPart | None:
        """Nothing runs, so nothing is written."""
        del attempt, position, last_lines, limit_bytes

    def open_session(self, attempt: str, wanted: SessionRequest) -> int:
        """Nothing runs, so there is nothing to look into."""
        del attempt, wanted
        raise Conflict(
            f"On backend {self.name} nothing really runs, so nothing can be looked into."
        )


class VirtualBackend(NoFiles):
    """Holds GPUs. The clock is given, so that time can be a test's own."""

    def __init__(
        self, nodes: Iterable[OfferedNode], now_ms: Callable[[], int], name: str = "default"
    ) -> None:
        super().__init__(name)
        self._nodes = tuple(nodes)
        self._now_ms = now_ms
        self._attempts: dict[str, _Running] = {}
        self._lock = threading.Lock()

    def nodes(self) -> tuple[OfferedNode, ...]:
        """The nodes that it was made with, or given since."""
        return self._nodes

    def offer(self, nodes: Iterable[OfferedNode]) -> None:
        """Have these nodes from now on."""
        self._nodes = tuple(nodes)

    def used_by_others(self) -> Mapping[str, Resources]:
        """Nothing: its nodes are its own."""
        return {}

    def lead(self, leadership: Leadership) -> None:
        """Nothing runs, so nothing runs twice."""

    def start(self, start: Start) -> None:
        """Let tasks hold their GPUs; those that are known already are left alone."""
        with self._lock:
            for launch in start.launches:
                if launch.attempt not in self._attempts:
                    since = launch.started_ms
                    started_ms = self._now_ms() if since is None else since
                    self._attempts[launch.attempt] = _Running(launch, started_ms)

    def stop(self, stop: Stop) -> None:
        """Let attempts end at once; those that are unknown count as ended."""
        with self._lock:
            now_ms = self._now_ms()
            for attempt in stop.attempts:
                known = self._attempts.get(attempt)
                if known is None:
                    launch = Launch(attempt, "", "")
                    known = self._attempts[attempt] = _Running(launch, now_ms)
                if known.ended_ms is None:
                    known.ended_ms = now_ms

    def finish(self, name: str, exit_code: int = 0) -> int:
        """Let every running task of a name end by itself; how many did."""
        with self._lock:
            found = [
                each
                for each in self._attempts.values()
                if each.launch.name == name and each.ended_ms is None
            ]
            for each in found:
                each.ended_ms, each.exit_code = self._now_ms(), exit_code
            return len(found)

    def observe(self) -> tuple[Observation, ...]:
        """All attempts that it knows."""
        with self._lock:
            now_ms = self._now_ms()
            return tuple(_seen(attempt, each, now_ms) for attempt, each in self._attempts.items())

    def forget(self, attempts: tuple[str, ...]) -> None:
        """The end of these was written down."""
        with self._lock:
            for attempt in attempts:
                self._attempts.pop(attempt, None)


def make_nodes(gpus: int | None, per_node: int = GPUS_PER_NODE) -> tuple[OfferedNode, ...]:
    """Nodes with so many GPUs together, the last one with the rest."""
    gpus = DEFAULT_GPUS if gpus is None else gpus
    sizes = [per_node] * (gpus // per_node) + ([gpus % per_node] if gpus % per_node else [])
    width = len(str(max(0, len(sizes) - 1)))
    return tuple(
        OfferedNode(
            name=f"node-{number:0{width}}",
            gpus=size,
            cpu_milli=size * CPU_MILLI_PER_GPU,
            memory_bytes=size * MEMORY_PER_GPU,
            storage_bytes=size * STORAGE_PER_GPU,
        )
        for number, size in enumerate(sizes)
    )


def _seen(attempt: str, running: _Running, now_ms: int) -> Observation:
    hold_s = running.launch.hold_s
    if running.ended_ms is None and hold_s is not None:
        due_ms = running.started_ms + hold_s * 1_000
        if due_ms <= now_ms:
            running.ended_ms, running.exit_code = due_ms, 0
    if running.ended_ms is None:
        return Observation(attempt, Sight.RUNNING, running.started_ms)
    return Observation(attempt, Sight.ENDED, running.ended_ms, running.exit_code)
