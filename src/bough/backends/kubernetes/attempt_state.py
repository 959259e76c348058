"""The state of one attempt: what is wanted, and what its pod says."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

import msgspec

from bough.backends.kubernetes.names import DATA, GROUP_UUID
from bough.backends.kubernetes.pod_manifest import AttemptObjects
from bough.backends.kubernetes.pod_view import PodSight, is_over, preemption, see, see_gone
from bough.kube.objects import KubePod
from bough.model.backend import Observation, Sight, StartFault

#: A pod that is still there this long after its grace period, on a node not ready, is lost.
_SLACK_MS = 60_000
_STARTING, _RUNNING = Sight.STARTING, Sight.RUNNING


class Step(Enum):
    """The next step of an attempt."""

    CREATE = auto()
    #: Check whether a pod exists after its creation got no answer.
    LOOK = auto()
    ADD_SECRETS = auto()
    END = auto()
    REMOVE = auto()


@dataclass
class PodAttempt:
    """One attempt; changed only under the lock of the backend."""

    attempt: str
    #: The objects to create; `None` if an earlier server created them, or it only has to end.
    objects: AttemptObjects | None = None
    #: The name of its pod, once known.
    name: str = ""
    #: The uuid of its group, as its pod has it.
    group: str = ""
    #: Whether its pod was created, or may have been.
    sent: bool = False
    secrets_made: bool = False
    #: Whether its pod was deleted because it is no longer needed.
    removed: bool = False
    #: How many failures came in a row.
    failures: int = 0
    pod: KubePod | None = None
    #: Whether the pod existed, and is gone.
    gone: bool = False
    #: By when it must be gone, by the server's clock; `None` if it was not told to end.
    stop_by_ms: int | None = None
    #: The end of the grace period that the apiserver was last given, by the same clock.
    told_by_ms: int | None = None
    ended_by_us: bool = False
    #: Why it does not start. It is told to end only once that is stored.
    given_up: PodSight | None = None
    #: Whether its end is stored.
    forgotten: bool = False
    #: Whether its log has been read to the end, or cannot be read.
    log_done: bool = False
    #: Whether its pod was gone before this server saw it, without completing: it may have left
    #: data.
    unseen: bool = False
    #: When it started, if its pod was gone before this server saw it.
    ran_since_ms: int | None = None
    #: Whether the data that it left on the claim is deleted, or will stay for good.
    data_dropped: bool = False
    #: Why it could not be created yet.
    trouble: str = ""
    #: What the cluster's scheduler said when it preempted it; empty if it did not.
    evicted: str = ""
    #: Why its gang waits, as that scheduler says, while it has no node.
    gang_waits: str = ""
    #: Whether it was bound to a node that does not exist.
    node_gone: bool = False
    sight: PodSight = field(default_factory=lambda: PodSight(Sight.STARTING))
    since_ms: int = 0
    begun_ms: int = 0
    #: The last observation and what it was made from, as a cache: most attempts do not change
    #: between two calls.
    last_told: tuple[PodSight, int, str, Observation] | None = field(default=None, init=False)

    #: The observation that the scheduler was last given.
    reported: Observation | None = field(default=None, init=False)

    @property
    def told(self) -> bool:
        """Whether it was told to end."""
        return self.stop_by_ms is not None

    @property
    def over(self) -> bool:
        """Whether it has ended, so that nothing about it changes any more."""
        return self.sight.over

    @property
    def removable(self) -> bool:
        """Whether its pod is no longer needed."""
        if self.leaves_data:
            return False
        return self.forgotten and self.over and (self.log_done or not self.has_pod)

    @property
    def leaves_data(self) -> bool:
        """Whether it ended without completing, and its data is still to be deleted."""
        labels = {} if self.pod is None else self.pod.metadata.labels or {}
        if self.data_dropped or not (self.unseen or DATA in labels):
            return False
        return self.over and not self.sight.completed

    @property
    def has_pod(self) -> bool:
        """Whether its pod exists, as far as is known."""
        return self.pod is not None and not self.gone

    @property
    def node(self) -> str:
        """The node of its pod; empty if it has none."""
        return "" if self.pod is None else self.pod.spec.node_name

    @property
    def place(self) -> str:
        """The same, or before it has a pod the node that was decided."""
        return self.objects.node if self.pod is None and self.objects is not None else self.node

    @property
    def version(self) -> int:
        """The resource version of its pod that was last seen."""
        return 0 if self.pod is None else version_of(self.pod)

    def next_step(self) -> Step | None:
        """The next step; `None` if there is nothing to do."""
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
        """Its present state as an observation."""
        given_up = self.given_up
        if given_up is not None and not self.over and not self.told:
            stuck = msgspec.structs.replace(given_up, sight=Sight.STUCK)
            return stuck.observed(self.attempt, self.since_ms, self.place)
        # That its pod was created where it was decided is no news.
        last, node = self.last_told, self.place
        if last is None or last[0] is not self.sight or last[1:3] != (self.since_ms, node):
            seen = self.sight.observed(self.attempt, self.since_ms, node)
            last = self.last_told = self.sight, self.since_ms, node, seen
        return last[3]

    def tell(self, *, later: bool) -> Observation | None:
        """The observation to give to the scheduler; `None` if that can wait.

        later:  the news that it starts or runs can wait, while other pods are being created
        """
        now, last = self.observed(), self.reported
        as_expected = now.sight is _RUNNING or (now.sight is _STARTING and not now.message)
        if later and last is None and as_expected:
            return None
        if later and last is not None and (last.sight, now.sight) == (_STARTING, _RUNNING):
            return last
        self.reported = now
        return now

    def take(self, pod: KubePod, now_ms: int) -> bool:
        """Take in the state of its pod; return whether anything changed."""
        if self.pod is not None and self.pod.metadata.uid not in ("", pod.metadata.uid):
            return False
        if version_of(pod) < self.version:
            # The answer to a request came before the watch, which is now behind it.
            return False
        if self.pod is not None and pod.spec.node_name and not self.node:
            # The timeout for the start begins only now that it has a node.
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
            # It holds its room until its pod is gone.
            self.given_up = self.given_up or seen
            seen = PodSight(Sight.STARTING, seen.message)
        elif seen.sight is Sight.RUNNING:
            self.given_up = None
        elif seen.sight is Sight.STARTING and not seen.message and not self.node:
            seen = PodSight(Sight.STARTING, self.gang_waits)
        return self.put(seen, now_ms)

    def take_gone(self, now_ms: int) -> bool:
        """Its pod is gone; return whether that is news."""
        self.gone = True
        return self.put(see_gone(self.sight, told=self.told), now_ms)

    def put(self, seen: PodSight, now_ms: int) -> bool:
        """Record its state; once it has ended, later sightings change nothing."""
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
        """Whether it takes too long to start; from then on it counts as given up."""
        waits = self.sight.sight is Sight.STARTING and not self.told and self.given_up is None
        if self.pod is not None and not self.node:
            # It waits for the cluster's scheduler, so nothing is being started yet.
            waits = False
        if not waits or now_ms - self.begun_ms < timeout_ms:
            return False
        fault = StartFault.IMAGE_PULL if self.sight.pulling else StartFault.TIMEOUT
        said = self.sight.message or self.trouble
        text = f"It did not start within {timeout_ms // 1_000} seconds. {said}".strip()
        self.given_up = PodSight(Sight.UNSTARTABLE, text, fault=fault)
        return True

    def look_again(self, now_ms: int) -> bool:
        """Judge its pod again, as more is known about it now; return whether it changed."""
        if self.pod is None or self.gone:
            return False
        return self.take(self.pod, now_ms)

    def correct_loss(self, now_ms: int, within_ms: int) -> None:
        """Correct a loss that is not reported yet: the reason for the deletion is known now."""
        fresh = now_ms - self.since_ms < within_ms
        if self.sight.sight is Sight.LOST and fresh and (why := self.taken_for):
            self.sight, self.since_ms = PodSight(Sight.PREEMPTED, why), now_ms

    @property
    def taken_for(self) -> str:
        """Why the cluster's scheduler preempted it; empty if it did not."""
        why = self.evicted or ("" if self.pod is None else preemption(self.pod))
        return f"Preempted by the scheduler of its cluster: {why}" if why else ""

    def is_stuck(self, now_ms: int) -> bool:
        """Whether its pod should have been gone long ago."""
        by_ms = self.told_by_ms
        return by_ms is not None and not self.over and now_ms - by_ms > _SLACK_MS


def version_of(pod: KubePod) -> int:
    """The resource version of a pod as a number; the higher one is the later one."""
    return number_of(pod.metadata.resource_version)


def number_of(version: str) -> int:
    """A resource version as a number; 0 if it is not one."""
    return int(version) if version.isdecimal() else 0
