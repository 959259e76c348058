"""What the Jobs of each JobSet have done already, kept in step as Jobs are reported.

A JobSet itself only tells which of its Jobs are over. The sums are kept, not made for each pod: a
JobSet may have thousands of Jobs, each of which reports whenever one of its pods completes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bough.errors import Invalid
from bough.formats.live.owners import LiveOwner, controller_of
from bough.pod_grouper.owner_gangs import REPLICATED_JOB, Progress, job_needs

_NOTHING = Progress()


class _Counted(NamedTuple):
    """One Job, as it is counted."""

    #: The uid of its JobSet, and its namespace: owners are of the same one.
    job_set: tuple[str, str]
    name: str
    progress: Progress


class JobProgress:
    """The progress of all JobSets."""

    def __init__(self) -> None:
        self._counted: dict[str, _Counted] = {}
        self._sums: dict[tuple[str, str], dict[str, Progress]] = {}

    def of(self, owner: LiveOwner) -> Mapping[str, Progress]:
        """The progress of a JobSet, by the names of its replicated jobs."""
        return self._sums.get((owner.metadata.uid or "", owner.metadata.namespace or ""), {})

    def put(self, job: LiveOwner) -> tuple[str, ...]:
        """Take in a Job; return the uids of JobSets that need other pods now."""
        uid, new = job.metadata.uid or "", _counted(job)
        if self._counted.get(uid) == new:
            return ()
        changed = self.remove(uid)
        if new is None:
            return changed
        self._counted[uid] = new
        self._add(new, 1)
        return (*changed, new.job_set[0])

    def remove(self, uid: str) -> tuple[str, ...]:
        """A Job is gone; the same."""
        old = self._counted.pop(uid, None)
        if old is None:
            return ()
        self._add(old, -1)
        return (old.job_set[0],)

    def _add(self, counted: _Counted, sign: int) -> None:
        sums = self._sums.setdefault(counted.job_set, {})
        before, more = sums.get(counted.name, _NOTHING), counted.progress
        now = Progress(before.finished + sign * more.finished, before.spared + sign * more.spared)
        if now != _NOTHING:
            sums[counted.name] = now
            return
        sums.pop(counted.name, None)
        if not sums:
            del self._sums[counted.job_set]


def _counted(job: LiveOwner) -> _Counted | None:
    """`None`: it is not of a JobSet, or has done nothing yet."""
    above = controller_of(job.metadata)
    if above is None or above.kind != "JobSet":
        return None
    try:
        first, left = job_needs(job)
    except Invalid:
        return None
    if left == first:
        return None
    progress = Progress(spared=first - left) if left else Progress(finished=1)
    name = (job.metadata.labels or {}).get(REPLICATED_JOB, "")
    return _Counted((above.uid, job.metadata.namespace or ""), name, progress)
