"""What each kind of owner needs: the gang that one of its pods belongs to, and its minimums.

Names, labels and minimums follow KAI's pod grouper wherever it has a rule. A subgroup that needs
nothing, or nothing any more, is left out: pods that have completed are not waited for.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from bough.errors import Invalid
from bough.formats.live.objects import LivePod
from bough.formats.live.owners import (
    LiveJobSetSpec,
    LiveJobSetStatus,
    LiveJobSpec,
    LiveJobStatus,
    LiveLeaderWorkerSetSpec,
    LiveOwner,
    LivePyTorchJobSpec,
    LivePyTorchJobStatus,
    LiveRayClusterSpec,
    LiveReplicatedJob,
    LiveWorkerGroup,
    read_part,
)
from bough.model.gang import TopologyConstraint
from bough.model.pod_group import SubGroupSpec

_NOT_IN_A_LABEL = re.compile("[^a-z0-9-]+")
_LONGEST_LABEL = 63
#: The labels by which controllers tell their pods apart.
REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
LWS_GROUP = "leaderworkerset.sigs.k8s.io/group-index"
LWS_WORKER = "leaderworkerset.sigs.k8s.io/worker-index"
RAY_GROUP = "ray.io/group"
RAY_ROLE = "ray.io/node-type"
TRAINING_ROLE = "training.kubeflow.org/replica-type"
RAY_HEAD = "headgroup"
#: With this startup policy a LeaderWorkerSet creates workers only when their leader is ready.
_LEADER_READY = "LeaderReady"
#: The most pods that a PodGroup or a subgroup can ask for: Kubernetes counts in 32 bits.
MOST_PODS = 2**31 - 1
_LONGEST_RANGE = len(f"{MOST_PODS}-{MOST_PODS}")


class Progress(NamedTuple):
    """What the Jobs of one replicated job have done already."""

    #: Jobs that need no pods any more.
    finished: int = 0
    #: Pods that the other Jobs need no more.
    spared: int = 0


class Member(NamedTuple):
    """A pod, and the owner that its gang is made from."""

    owner: LiveOwner
    pod: LivePod
    #: By the name of a replicated job; of a JobSet only.
    progress: Mapping[str, Progress] = {}


class Gathering(NamedTuple):
    """The gang of a pod: what the gang needs, and the pod's place in it."""

    #: Added to the PodGroup's name after that of the owner; empty if nothing is.
    suffix: str = ""
    #: How many pods it needs, if it has no subgroups.
    min_member: int | None = None
    subgroups: tuple[SubGroupSpec, ...] = ()
    #: The leaf that the pod belongs to; empty if there are no subgroups.
    subgroup: str = ""
    constraint: TopologyConstraint | None = None
    priority_class: str = ""


def gathered(key: tuple[str, str], member: Member) -> Gathering:
    """The gang of a pod by the rule for its owner's kind; `Invalid` if there cannot be such."""
    return checked(WORKLOADS[key](member))


def checked(found: Gathering) -> Gathering:
    """The same, unless it needs more pods than a PodGroup can ask for."""
    for name, count in (("", found.min_member), *((e.name, e.min_member) for e in found.subgroups)):
        if count is not None and count > MOST_PODS:
            pods = f"pods of {name!r}" if name else "pods"
            raise Invalid(f"it needs {count} {pods}, but a PodGroup has at most {MOST_PODS}")
    return found


def job(member: Member) -> Gathering:
    """A Job: all pods that it still runs in parallel."""
    return Gathering(min_member=max(1, job_needs(member.owner)[1]))


def job_needs(owner: LiveOwner) -> tuple[int, int]:
    """How many pods a Job runs in parallel at first, and how many it still does."""
    spec = read_part(owner.spec, LiveJobSpec, "spec")
    status = read_part(owner.status, LiveJobStatus, "status")
    over = (status.succeeded or 0) + _count_indexes(status.failed_indexes or "")
    return max(0, _pods_of_job(spec, 0)), max(0, _pods_of_job(spec, over))


def job_set(member: Member) -> Gathering:
    """A JobSet: a subgroup for each replicated job, or a gang for each if they start in order."""
    spec = read_part(member.owner.spec, LiveJobSetSpec, "spec")
    status = read_part(member.owner.status, LiveJobSetStatus, "status")
    done = {each.name: each.succeeded or 0 for each in status.replicated_jobs_status or ()}
    wanted = {
        each.name: _pods_of_replicated(
            each, done.get(each.name, 0), member.progress.get(each.name, Progress())
        )
        for each in spec.replicated_jobs or ()
    }
    own = _label(member.pod, REPLICATED_JOB)
    startup = spec.startup_policy
    ordered = startup is not None and startup.startup_policy_order == "InOrder"
    if ordered or any(each.depends_on for each in spec.replicated_jobs or ()):
        return Gathering(suffix=subgroup_name(own), min_member=max(1, wanted.get(own, 1)))
    return _of_subgroups(wanted, own)


def leader_worker_set(member: Member) -> Gathering:
    """A LeaderWorkerSet: each leader and its workers are a gang."""
    spec = read_part(member.owner.spec, LiveLeaderWorkerSetSpec, "spec")
    labels = member.pod.metadata.labels or {}
    size = spec.leader_worker_template.size
    size = 1 if size is None else size
    if spec.startup_policy == _LEADER_READY and labels.get(LWS_WORKER) == "0":
        # The leader has to run before its workers are created, so it starts alone; the first
        # worker then raises the minimum to the whole group.
        size = 1
    suffix = f"group-{subgroup_name(_label(member.pod, LWS_GROUP))}"
    return Gathering(suffix=suffix, min_member=max(1, size))


def ray_cluster(member: Member) -> Gathering:
    """A RayCluster: its head, and the minimum of each worker group."""
    owner, pod = member.owner, member.pod
    spec = read_part(owner.spec, LiveRayClusterSpec, "spec")
    wanted = {RAY_HEAD: 1}
    for number, each in enumerate(spec.worker_group_specs or ()):
        wanted[each.group_name or f"worker-group-{number}"] = _workers(each)
    is_head = (pod.metadata.labels or {}).get(RAY_ROLE) == "head"
    made = _of_subgroups(wanted, RAY_HEAD if is_head else _label(pod, RAY_GROUP))
    named = (owner.metadata.labels or {}).get("ray.io/priority-class-name", "")
    return made._replace(priority_class=named)


def pytorch_job(member: Member) -> Gathering:
    """A PyTorchJob: its master and its workers, or as many pods as `minAvailable` says."""
    spec = read_part(member.owner.spec, LivePyTorchJobSpec, "spec")
    status = read_part(member.owner.status, LivePyTorchJobStatus, "status")
    done = {role: each.succeeded or 0 for role, each in (status.replica_statuses or {}).items()}
    left = {
        role.lower(): (1 if each.replicas is None else each.replicas) - done.get(role, 0)
        for role, each in (spec.pytorch_replica_specs or {}).items()
    }
    policy = None if spec.run_policy is None else spec.run_policy.scheduling_policy
    if policy is not None and policy.min_available is not None:
        least = min(policy.min_available, sum(left.values())) if done else policy.min_available
        return Gathering(min_member=max(1, least))
    elastic = spec.elastic_policy
    if elastic is not None and elastic.min_replicas is not None and "worker" in left:
        left["worker"] = min(left["worker"], elastic.min_replicas)
    return _of_subgroups(left, _label(member.pod, TRAINING_ROLE).lower())


#: The rule for each API group and kind. If several owners of a pod are here, the topmost decides.
WORKLOADS: dict[tuple[str, str], Callable[[Member], Gathering]] = {
    ("batch", "Job"): job,
    ("jobset.x-k8s.io", "JobSet"): job_set,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): leader_worker_set,
    ("ray.io", "RayCluster"): ray_cluster,
    ("kubeflow.org", "PyTorchJob"): pytorch_job,
}


def subgroup_name(text: str) -> str:
    """A valid subgroup name: the text itself, or a stable replacement if it is not valid."""
    plain = _NOT_IN_A_LABEL.sub("-", text.lower()).strip("-")[:_LONGEST_LABEL].strip("-")
    if plain == text:
        return plain
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{plain[: _LONGEST_LABEL - 9].strip('-')}-{digest}".strip("-")


def _of_subgroups(wanted: dict[str, int], own: str) -> Gathering:
    """A gang that needs all of these subgroups; those that need nothing are left out."""
    if wanted.get(own, 0) < 1:
        known = ", ".join(name for name, count in wanted.items() if count > 0) or "none"
        raise Invalid(f"it needs no pods of {own!r} now (only of: {known})")
    subgroups = tuple(
        SubGroupSpec(name=subgroup_name(name), min_member=count)
        for name, count in wanted.items()
        if count > 0
    )
    return Gathering(subgroups=subgroups, subgroup=subgroup_name(own))


def _count_indexes(text: str) -> int:
    """How many indexes of an Indexed Job a text such as "1,3-5" names."""
    count = 0
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if not (first.isdecimal() and (last or first).isdecimal()) or len(part) > _LONGEST_RANGE:
            raise Invalid(f"status.failedIndexes: {text[:60]!r} are not indexes")
        count += max(0, int(last or first) - int(first) + 1)
    return count


def _pods_of_job(spec: LiveJobSpec, over: int) -> int:
    """How many pods a Job still runs in parallel; `over`: how many are finished for good."""
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    if spec.completions is None:
        return parallelism
    return min(parallelism, spec.completions - over)


def _pods_of_replicated(written: LiveReplicatedJob, done: int, progress: Progress) -> int:
    """How many pods the Jobs of a replicated job still run; those to come run all of theirs."""
    replicas = 1 if written.replicas is None else written.replicas
    left = max(0, replicas - max(done, progress.finished))
    return max(0, left * max(0, _pods_of_job(written.template.spec, 0)) - progress.spared)


def _workers(group: LiveWorkerGroup) -> int:
    if group.suspend or group.suspended:
        return 0
    hosts = 1 if group.num_of_hosts is None else group.num_of_hosts
    return (group.min_replicas or group.replicas or 0) * hosts


def _label(pod: LivePod, name: str) -> str:
    found = (pod.metadata.labels or {}).get(name, "")
    if not found:
        raise Invalid(f"pod {pod.metadata.name} has no label {name}")
    return found
