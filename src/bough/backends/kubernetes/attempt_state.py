"""What is known of one attempt: what is wanted of it, and what its pod says."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

import msgspec

from bough.backends.kubernetes.names import DATA, GROUP_UUID
from bough.backends.kubernetes.pod_manifest import AttemptObjects
from bough.backends.kubernetes.pod_view import PodSight, is_over, preemption, see, see_gone
from bough.kube.objects import KubePod
from bough.model.backend import Observation, Sight, StartFault

#: After its grace period, and so much more, a pod on a node that is not ready counts as lost.
_SLACK_MS = 60_000
_STARTING, _RUNNING = Sight.STARTING, Sight.RUNNING


class Step(Enum):
    """The next step of an attempt."""

    CREATE = auto()
    #: Whether a pod is there whose creation was not answered.
    LOOK = auto()
    ADD_SECRETS = auto()
    END = auto()
    REMOVE = auto()


@dataclass
class PodAttempt:
    """One attempt; it is changed under the lock of the backend."""

    attempt: str
    #: The objects to create; `None`: an earlier server created them, or it only has to end.
    objects: AttemptObjects | None = None
    #: The name of its pod, once it is known.
    name: str = ""
    #: The identity of its group, as its pod has it.
    group: str = ""
    #: Whether its pod was, or may have been, created.
    sent: bool = False
    secrets_made: bool = False
    #: The pod was deleted because nothing more is needed of it.
    removed: bool = False
    #: Failures in a row.
    failures: int = 0
    pod: KubePod | None = None
    #: The pod existed, and is gone.
    gone: bool = False
    #: By when it must be gone, by the server's clock; `None`: it was not told to end.
    stop_by_ms: int | None = None
    #: The grace period that the apiserver was last told, as the same moment.
    told_by_ms: int | None = None
    ended_by_us: bool = False
    #: Why it does not start. It is told to end when that is stored, and not before.
    given_up: PodSight | None = None
    #: Its end is stored.
    forgotten: bool = False
    #: Its log is read to the end, or cannot be read.
    log_done: bool = False
    #: Its pod was gone before this server saw it, and it did not complete: it may have left data.
    unseen: bool = False
    #: What it left on the claim is dropped, or stays for good.
    data_dropped: bool = False
    #: Why it could not be created yet.
    trouble: str = ""
    #: What the scheduler of the cluster said when it ended it for others; empty: it did not.
    evicted: str = ""
    #: What that scheduler says of its gang, while it has no node.
    gang_waits: str = ""
    #: It was bound to a node that is not there.
    node_gone: bool = False
    sight: PodSight = field(default_factory=lambda: PodSight(Sight.STARTING))
    since_ms: int = 0
    begun_ms: int = 0
    #: What was last told of it, and of which sight: most attempts are as they were.
    last_told: tuple[PodSight, int, str, Observation] | None = field(default=None, init=False)

    #: What the scheduler was last told.
    reported: Observation | None = field(default=None, init=False)

    @property
    def told(self) -> bool:
        """Whether it was told to end."""
        return self.stop_by_ms is not None

    @property
    def over(self) -> bool:
        """Whether nothing more is seen of it."""
        return self.sight.over

    @property
    def removable(self) -> bool:
        """Whether its pod is no longer needed."""
        if self.leaves_data:
            return False
        return self.forgotten and self.over and (self.log_done or not self.has_pod)

    @property
    def leaves_data(self) -> bool:
        """Whether it ended otherwise than completed, and what it left is still to be dropped."""
        labels = {} if self.pod is None else self.pod.metadata.labels or {}
        if self.data_dropped or not (self.unseen or DATA in labels):
            return False
        return self.over and not self.sight.completed

    @property
    def has_pod(self) -> bool:
        """Whether its pod is there, as far as is known."""
        return self.pod is not None and not self.gone

    @property
    def node(self) -> str:
        """Where its pod is."""
        return "" if self.pod is None else self.pod.spec.node_name

    @property
    def version(self) -> int:
        """The version of its pod that was last seen."""
        return 0 if self.pod is None else version_of(self.pod)

    def next_step(self) -> Step | None:
        """The next step; `None`: nothing to do."""
        if not self.has_pod:
            if self.gone or self.over:
                return None
            if self.told:
                return Step.LOOK
            return None if self.objects is None or self.given_up is not None else Step.CREATE
        if self.removable:
            return None if self.removed else Step.REMOVE
        if self.over or self.pod is None or is_over(self.pod):
            return None
        if self.told:
            by_ms = self.told_by_ms
            sooner = by_ms is not None and (self.stop_by_ms or by_ms) < by_ms - 1_000
            return Step.END if not self.ended_by_us or sooner else None
        if self.objects is None or self.secrets_made or self.given_up is not None:
            return None
        return Step.ADD_SECRETS if self.objects.secrets else None

    def observed(self) -> Observation:
        """What is seen of it."""
        given_up = self.given_up
        if given_up is not None and not self.over and not self.told:
            stuck = msgspec.structs.replace(given_up, sight=Sight.STUCK)
            return stuck.observed(self.attempt, self.since_ms, self.node)
        last, node = self.last_told, self.node
        if last is None or last[0] is not self.sight or last[1:3] != (self.since_ms, node):
            seen = self.sight.observed(self.attempt, self.since_ms, node)
            last = self.last_told = self.sight, self.since_ms, node, seen
        return last[3]

    def tell(self, *, later: bool) -> Observation:
        """What the scheduler is told.

        later:  that it runs now can be told when others are made
        """
        now, last = self.observed(), self.reported
        if later and last is not None and (last.sight, now.sight) == (_STARTING, _RUNNING):
            return last
        self.reported = now
        return now

    def take(self, pod: KubePod, now_ms: int) -> bool:
        """Take in the state of its pod; whether that is new."""
        if self.pod is not None and self.pod.metadata.uid not in ("", pod.metadata.uid):
            return False
        if version_of(pod) < self.version:
            # An answer was faster than the watch.
            return False
        if self.pod is not None and pod.spec.node_name and not self.node:
            # The time that a start may take begins when it has a place.
            self.begun_ms = now_ms
        self.pod, self.sent, self.trouble = pod, True, ""
        self.group = self.group or (pod.metadata.labels or {}).get(GROUP_UUID, "")
        if not self.begun_ms:
            self.begun_ms = now_ms
        if pod.metadata.deletion_timestamp is not None and self.told_by_ms is None:
            grace_s = pod.metadata.deletion_grace_period_seconds or 0
            self.told_by_ms = now_ms + grace_s * 1_000
        seen = see(pod, told=self.told)
        if seen.sight is Sight.UNSTARTABLE and not is_over(pod):
            # It holds its place until its pod is gone.
            self.given_up = self.given_up or seen
            seen = PodSight(Sight.STARTING, seen.message)
        elif seen.sight is Sight.RUNNING:
            self.given_up = None
        elif seen.sight is Sight.STARTING and not seen.message and not self.node:
            seen = PodSight(Sight.STARTING, self.gang_waits)
        return self.put(seen, now_ms)

    def take_gone(self, now_ms: int) -> bool:
        """Its pod is gone; whether that is new."""
        self.gone = True
        return self.put(see_gone(self.sight, told=self.told), now_ms)

    def put(self, seen: PodSight, now_ms: int) -> bool:
        """Record what was seen of it; an end is final, whatever is seen afterwards."""
        if self.over:
            return False
        if seen.over and self.given_up is not None and not self.told:
            seen = self.given_up
        elif seen.sight is Sight.LOST and not self.told and (why := self.taken_for):
            seen = PodSight(Sight.PREEMPTED, why)
        if seen == self.sight and self.since_ms:
            return False
        if seen.sight is not self.sight.sight or not self.since_ms:
            self.since_ms = now_ms
        self.sight = seen
        return True

    def give_up(self, timeout_ms: int, now_ms: int) -> bool:
        """Whether it takes too long to start, which is said from now on."""
        waits = self.sight.sight is Sight.STARTING and not self.told and self.given_up is None
        if self.pod is not None and not self.node:
            # It waits for a scheduler of the cluster, and nothing of it is being started.
            waits = False
        if not waits or now_ms - self.begun_ms < timeout_ms:
            return False
        fault = StartFault.IMAGE_PULL if self.sight.pulling else StartFault.TIMEOUT
        said = self.sight.message or self.trouble
        text = f"It did not start within {timeout_ms // 1_000} seconds. {said}".strip()
        self.given_up = PodSight(Sight.UNSTARTABLE, text, fault=fault)
        return True

    def look_again(self, now_ms: int) -> bool:
        """Judge its pod anew, as something else about it is known now; whether that is news."""
        if self.pod is None or self.gone:
            return False
        return self.take(self.pod, now_ms)

    def correct_loss(self, now_ms: int, within_ms: int) -> None:
        """It was found out why it was deleted, before that was told."""
        fresh = now_ms - self.since_ms < within_ms
        if self.sight.sight is Sight.LOST and fresh and (why := self.taken_for):
            self.sight, self.since_ms = PodSight(Sight.PREEMPTED, why), now_ms

    @property
    def taken_for(self) -> str:
        """Why a scheduler of the cluster ended it for others; empty: it did not."""
        why = self.evicted or ("" if self.pod is None else preemption(self.pod))
        return f"Preempted by the scheduler of its cluster: {why}" if why else ""

    def is_stuck(self, now_ms: int) -> bool:
        """Whether its pod should have been gone long ago."""
        by_ms = self.told_by_ms
        return by_ms is not None and not self.over and now_ms - by_ms > _SLACK_MS


def version_of(pod: KubePod) -> int:
    """The version of a pod; of two, the higher is the later."""
    return number_of(pod.metadata.resource_version)


def number_of(version: str) -> int:
    """A version as a number; 0: it is none."""
    return int(version) if version.isdecimal() else 0
