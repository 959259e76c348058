"""Metrics in the text format of Prometheus.

What is counted (evictions) is counted from the start of this server, by reading what happened
since; what is measured (queues, quotas) is read at the moment of asking.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from bough.control.people.access import authorise
from bough.control.pools import quotas
from bough.control.records import change_history
from bough.control.records.event_stream import follow
from bough.control.site import Site
from bough.control.workflows import task_list
from bough.model.access import Action, Actor
from bough.model.change_record import EventKind
from bough.server.loop_view import LoopView

Labels = dict[str, str]
Sample = tuple[Labels, float | int]


class Gauges:
    """Reads everything that is measured."""

    def __init__(self, site: Site, engine: LoopView) -> None:
        self._site = site
        self._engine = engine
        self._reader = Actor("metrics", (site.role_names.admin,))
        self._lock = threading.Lock()
        self._seen: int | None = None
        self._evictions: dict[tuple[str, str], int] = {}
        #: How many processes answer, and how often one was started again.
        self.workers: Callable[[], tuple[int, int]] = lambda: (1, 0)

    def begin(self, after: int | None = None) -> None:
        """Start counting now, or after an event."""
        with self._lock:
            self._seen = change_history.last_event(self._site) if after is None else after

    def text(self, actor: Actor) -> str:
        """All metrics as text, of all pools, for every user who may read metrics."""
        authorise(actor, Action.METRICS_READ, names=self._site.role_names)
        families = [*self._waiting(), *self._pools(), *self._queues()]
        families += [*self._subpools(), *self._counts(), *self._evicted()]
        return "".join(_family(*family) for family in families)

    def _waiting(self) -> Iterable[tuple[str, str, str, list[Sample]]]:
        now_ms = self._site.clock.now_ms()
        depths = task_list.waiting(self._site, self._reader)
        labels = [{"pool": each.pool, "priority": each.priority.value} for each in depths]
        counts: list[Sample] = [
            (each, depth.workflows) for each, depth in zip(labels, depths, strict=True)
        ]
        waits: list[Sample] = [
            (each, max(0, now_ms - depth.oldest_ms) / 1_000)
            for each, depth in zip(labels, depths, strict=True)
        ]
        yield "bough_workflows_waiting", "gauge", "Workflows that wait.", counts
        help_text = "How long the oldest workflow waits."
        yield "bough_oldest_wait_seconds", "gauge", help_text, waits

    def _pools(self) -> Iterable[tuple[str, str, str, list[Sample]]]:
        report = quotas.pool_quotas(self._site, self._reader)
        rows = [row for each in report.node_sets for row in each.rows]
        for name, help_text, values in (
            ("bough_pool_quota_gpus", "Guaranteed GPUs.", [r.usage.quota_limit for r in rows]),
            (
                "bough_pool_guaranteed_gpus",
                "GPUs that HIGH and NORMAL use.",
                [r.usage.quota_used for r in rows],
            ),
            ("bough_pool_used_gpus", "GPUs in use.", [r.usage.total_usage for r in rows]),
            (
                "bough_pool_borrowed_gpus",
                "GPUs in use beyond the quota.",
                [max(0, r.usage.total_usage - r.usage.quota_limit) for r in rows],
            ),
        ):
            labels = [{"pool": row.name} for row in rows]
            yield name, "gauge", help_text, list(zip(labels, values, strict=True))
        yield (
            "bough_gpus_to_drain",
            "gauge",
            "GPUs that HIGH and NORMAL use beyond their quota.",
            [({}, quotas.gpus_to_drain(report))],
        )
        capacity: list[Sample] = [({}, report.total.total_capacity)]
        yield "bough_capacity_gpus", "gauge", "GPUs of all nodes.", capacity

    def _queues(self) -> Iterable[tuple[str, str, str, list[Sample]]]:
        queues = quotas.list_queues(self._site, self._reader)
        used: list[Sample] = [({"queue": each.row.name}, each.used) for each in queues]
        yield "bough_queue_used_gpus", "gauge", "GPUs in use at and below a queue.", used

    def _subpools(self) -> Iterable[tuple[str, str, str, list[Sample]]]:
        states = quotas.subpools_by_state(self._site)
        samples: list[Sample] = [({"state": state.value}, n) for state, n in states.items()]
        yield "bough_subpools", "gauge", "Subpools by state.", samples

    def _counts(self) -> Iterable[tuple[str, str, str, list[Sample]]]:
        counts = self._engine.counts
        workers, worker_restarts = self.workers()
        for name, kind, help_text, value in (
            ("bough_leads", "gauge", "Whether this server decides.", int(self._engine.leads)),
            ("bough_cycles_total", "counter", "Cycles of the scheduler.", counts.cycles),
            ("bough_cycle_seconds_total", "counter", "Time in cycles.", counts.seconds),
            (
                "bough_planning_seconds_total",
                "counter",
                "Time in planning alone.",
                counts.planning_seconds,
            ),
            ("bough_cycle_seconds", "gauge", "Time of the latest cycle.", counts.last_seconds),
            ("bough_gangs_started_total", "counter", "Groups that started.", counts.started),
            ("bough_decisions_void_total", "counter", "Decisions that came late.", counts.void),
            ("bough_cycle_failures_total", "counter", "Cycles that failed.", counts.failures),
            (
                "bough_scheduler_restarts_total",
                "counter",
                "How often the scheduler's process was started again.",
                self._engine.restarts,
            ),
            ("bough_workers", "gauge", "Processes that answer requests.", workers),
            (
                "bough_worker_restarts_total",
                "counter",
                "How often a process that answers requests was started again.",
                worker_restarts,
            ),
        ):
            yield name, kind, help_text, [({}, value)]

    def _evicted(self) -> Iterable[tuple[str, str, str, list[Sample]]]:
        with self._lock:
            self._read_events()
            samples: list[Sample] = [
                ({"level": level, "rule": rule}, number)
                for (level, rule), number in sorted(self._evictions.items())
            ]
        yield "bough_evictions_total", "counter", "Evictions by level of the tree.", samples

    def _read_events(self) -> None:
        while self._seen is not None:
            events, last = follow(self._site, self._reader, self._seen)
            if last == self._seen:
                return
            self._seen = last
            for event in events:
                if event.kind is EventKind.PREEMPTED:
                    key = (str(event.data.get("level") or ""), str(event.data.get("rule") or ""))
                    self._evictions[key] = self._evictions.get(key, 0) + 1


def _family(name: str, kind: str, help_text: str, samples: list[Sample]) -> str:
    lines = [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]
    lines += [f"{name}{_labels(labels)} {_number(value)}" for labels, value in samples]
    return "\n".join(lines) + "\n"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float | int) -> str:
    return str(value) if isinstance(value, int) else f"{value:.6f}"
