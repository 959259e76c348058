"""The protocol of every backend: the one seam between what is decided and what runs.

Every call may be repeated and does no harm the second time. A backend reports what it sees, as
often as it is asked; it decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

import msgspec

from bough.model.cluster import Resources
from bough.model.gang import SubGroup, TopologyConstraint
from bough.model.pool import OfferedNode
from bough.model.pool_data import PoolSpace
from bough.model.session import SessionRequest
from bough.model.task_template import TaskTemplate


class Launch(msgspec.Struct, frozen=True):
    """One attempt of a task to start."""

    #: The identity of the attempt.
    attempt: str
    name: str
    #: Empty: a scheduler of the cluster chooses it.
    node: str
    gpus: int = 0
    #: How long to hold the GPUs where nothing really runs; `None`: until told to end.
    hold_s: int | None = None
    #: Since when it runs, where it was started before and this is only a reminder.
    started_ms: int | None = None
    retry_id: int = 0
    #: Who submitted it.
    user: str = ""
    #: The identity of its pool, whose tasks share the data of URLs; empty: of an older version.
    pool: str = ""
    #: What is counted for it, and enforced where that is possible; 0: nothing was asked for.
    cpu_milli: int = 0
    memory_bytes: int = 0
    storage_bytes: int = 0
    spec: TaskTemplate | None = None
    #: The credentials that the task names, by name, and those that open the stores of its URLs, by
    #: the URL that they open; never stored with the outbox message.
    secrets: dict[str, dict[str, str]] = {}
    #: For each input: the attempt that left it, where that is a task; empty: none completed.
    sources: tuple[str, ...] = ()
    #: The data of pools that its URLs name, by the names of the pools.
    spaces: dict[str, PoolSpace] = {}
    #: How long it may take to end, unless it is told otherwise.
    grace_s: int = 30
    #: What people look for it by, beside what is above: identities, pool, priority.
    about: dict[str, str] = {}
    #: Labels of its workflow.
    labels: dict[str, str] = {}
    #: What pods of its pool and platform have beside what it asks for, the last on top.
    pod_templates: tuple[dict[str, Any], ...] = ()
    #: For a scheduler of the cluster: the part of its gang, and nodes where it may not run.
    subgroup: str | None = None
    nodes_excluded: tuple[str, ...] = ()


class GangTerms(msgspec.Struct, frozen=True):
    """What a cluster's own scheduler needs to know to place a group, besides its tasks."""

    #: Names of objects of the cluster.
    queue: str
    priority_class: str
    #: How many tasks, or where it has subgroups how many of these, it needs.
    minimum: int
    #: Each with its minimum; levels are labels of nodes, topologies are objects of the cluster.
    subgroups: tuple[SubGroup, ...] = ()
    constraint: TopologyConstraint | None = None


class Start(msgspec.Struct, frozen=True):
    """Tasks of one group that start together, or none of them does."""

    workflow_id: str
    group: str
    launches: tuple[Launch, ...]
    #: The names of all tasks of the group.
    tasks: tuple[str, ...] = ()
    #: Where a scheduler of the cluster places them; `None`: each launch has its node.
    gang: GangTerms | None = None
    #: Objects of the cluster that are there before the first pod of the group, and go with its
    #: last; those of the same kind and name are one, the last on top.
    objects: tuple[dict[str, Any], ...] = ()


class Stop(msgspec.Struct, frozen=True):
    """Attempts to end."""

    attempts: tuple[str, ...]
    #: Why; the rule of an eviction, or `cancel`, `lead`, `give_back`, `drain`, a timeout.
    reason: str
    #: How long they may take from the notice (SIGTERM) on, before they are killed.
    grace_s: int = 0
    #: It is said again, of attempts that hold their nodes in the database: none of them completed.
    again: bool = False


class Leadership(NamedTuple):
    """The lease that orders are given under. A backend refuses those of an older or expired one."""

    #: Rises with every server that begins to decide.
    number: int
    #: Until when it is certainly valid, in milliseconds of the machine's CLOCK_BOOTTIME.
    until_ms: int


class Sight(StrEnum):
    """What a backend sees of an attempt."""

    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"
    #: It does not start, and holds its place until it is told to end.
    STUCK = "stuck"
    #: It could not be started at all.
    UNSTARTABLE = "unstartable"
    #: It ran, and is gone without a report: its node vanished, or the machine was restarted.
    LOST = "lost"
    #: The cluster's own scheduler evicted it for others.
    PREEMPTED = "preempted"


class StartFault(StrEnum):
    """Why an attempt could not be started, where that has a status of its own."""

    IMAGE_PULL = "image_pull"
    TIMEOUT = "timeout"


class Observation(msgspec.Struct, frozen=True):
    """How far an attempt is, as seen by the backend."""

    attempt: str
    sight: Sight
    #: Since when it is so, by the server's clock: what ended before it was told to ended by itself.
    at_ms: int
    #: Of a task that was killed by a signal: 128 and the number of the signal.
    exit_code: int | None = None
    message: str = ""
    #: The signal that killed it, if one did.
    signal: int | None = None
    #: Of what has ended: whether it had been told to end before that. `None`: the backend does not
    #: know, and only the times say what came first.
    told: bool | None = None
    #: Of what could not be started, or is stuck: why; `None`: for another reason than these.
    fault: StartFault | None = None
    #: The node that it is on, or was; `None`: none yet, or the one that it was given.
    node: str | None = None


class LogLine(NamedTuple):
    """One line that a task wrote; valid text without line breaks."""

    at_ms: int
    text: str
    #: Whether it was written to standard error.
    error: bool = False


class LogPart(NamedTuple):
    """A part of what an attempt wrote, of a size that fits into memory."""

    lines: tuple[LogLine, ...]
    #: Where to read on.
    position: int
    #: Nothing more will come after this part.
    complete: bool
    #: Where its first line is; elsewhere than asked for if what was there is kept no more, as the
    #: first line says then.
    start: int = 0


class BackendAbilities(msgspec.Struct, frozen=True):
    """What a backend can do for tasks, as far as those who submit must know."""

    #: Whether it runs the images that tasks name.
    runs_images: bool = True
    #: Whether it opens the object stores that URLs name, with the credentials of the submitter.
    opens_stores: bool = False
    #: Where stores may be, beside the addresses of the providers themselves.
    store_endpoints: tuple[str, ...] = ()
    #: Whether it bounds the memory and disk of tasks that ask for none.
    bounds_tasks: bool = False
    #: Whether it runs what tasks say; else time just passes, and they need not say anything.
    runs_commands: bool = False
    #: What is wrong with the name of an image, where only some can be run; `None`: not known.
    image_fault: Callable[[str], str | None] | None = None
    #: Whether an image can say what to run.
    images_have_commands: bool = True
    #: Whether tasks can only run in images.
    needs_images: bool = False
    #: Whether tasks can read what others wrote, and leave something behind.
    keeps_data: bool = True
    #: Whether inputs are all that other tasks left, and nothing else: no URLs, no regex.
    only_results: bool = False
    #: Whether it keeps the data of pools, `bough://POOL/path`.
    keeps_pool_data: bool = False
    #: Whether tasks are pods, which pod templates are merged into.
    makes_pods: bool = False
    #: Whether Bough decides which node a task runs on; else a scheduler of the cluster does.
    places_tasks: bool = True
    #: Whether paths of files must begin with a slash.
    absolute_files: bool = False
    #: How large the files of a task can be together; `None`: as large as a submission.
    file_bytes: int | None = None


class Machine(msgspec.Struct, frozen=True):
    """The machine and the folder that a backend belongs to."""

    #: Kept in the folder, so that it is the same whichever server opens it.
    id: str
    #: Where that is, for people: the name of the machine, and the folder.
    place: str


class TaskFiles(Protocol):
    """Reads logs of a backend's tasks, and opens sessions with running ones.

    It orders nothing and keeps nothing, so every process of the machine can have one.
    """

    @property
    def name(self) -> str:
        """The name that pools refer to."""
        ...

    @property
    def machine(self) -> Machine | None:
        """The machine that it belongs to: only the server that holds its folder speaks for it.

        `None`: the server that decides can reach it, whichever that is.
        """
        ...

    def read_log(
        self,
        attempt: str,
        position: int = 0,
        *,
        last_lines: int | None = None,
        limit_bytes: int | None = None,
    ) -> LogPart | None:
        """What an attempt wrote, from a position on, or its last lines; `None`: nothing is kept.

        A part is small enough for the memory; with `limit_bytes` it is about as small as that.
        """
        ...

    def open_session(self, attempt: str, wanted: SessionRequest) -> int:
        """A line to a new session with an attempt that runs: a Unix socket of packets.

        On it come `SessionNews`, the first of which was `ready`; connections of the client are
        handed over on it, each as a `SessionConnection` with its descriptor. Closing it ends the
        session. Raises `Conflict` where it is not possible, in words.
        """
        ...


class Backend(TaskFiles, Protocol):
    """Starts and stops attempts as told. One process at a time uses it."""

    def nodes(self) -> tuple[OfferedNode, ...] | None:
        """The nodes that it has now; `None`: it does not know yet, so none of them is lost."""
        ...

    def lead(self, leadership: Leadership) -> None:
        """What is ordered from now on is ordered under this lease."""
        ...

    def used_by_others(self) -> Mapping[str, Resources]:
        """What others hold of its nodes, by node; the same object until that changes."""
        ...

    def start(self, start: Start) -> None:
        """Start tasks together; those that are known already are left alone.

        What it raises concerns this start alone: `Invalid` or `Conflict` where it will never be
        possible, anything else where it can be tried again.
        """
        ...

    def stop(self, stop: Stop) -> None:
        """End attempts; those that are unknown count as ended."""
        ...

    def observe(self) -> tuple[Observation, ...]:
        """All attempts that it knows, also those that ended, until they are forgotten."""
        ...

    def forget(self, attempts: tuple[str, ...]) -> None:
        """The end of these attempts is stored; they need not be reported again."""
        ...
