"""The owners of pods, as an apiserver sends them: how many pods they want, and in which roles.

`spec` and `status` stay undecoded, reduced to the fields that matter here: this way an error in
them is reported when a pod needs them, and does not stop the watch.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from bough.errors import Invalid
from bough.formats.live.objects import LiveMetadata, LiveOwnerReference

T = TypeVar("T")


class _Owner(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Uses camelCase on the wire; fields that are not declared here are not decoded."""


class LiveOwner(_Owner, frozen=True):
    """Any object that can own pods."""

    metadata: LiveMetadata
    api_version: str = ""
    kind: str = ""
    spec: msgspec.Raw = msgspec.Raw()
    status: msgspec.Raw = msgspec.Raw()


class LiveJobSpec(_Owner, frozen=True):
    """A Job of batch/v1."""

    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str | None = None


class LiveJobStatus(_Owner, frozen=True):
    """The progress of a Job."""

    succeeded: int | None = None
    #: Indexes that are not retried, such as "1,3-5".
    failed_indexes: str | None = None


class LiveJobTemplate(_Owner, frozen=True):
    """The Jobs of a JobSet."""

    spec: LiveJobSpec = LiveJobSpec()


class LiveReplicatedJob(_Owner, frozen=True):
    """One replicated job of a JobSet."""

    name: str = ""
    replicas: int | None = None
    template: LiveJobTemplate = LiveJobTemplate()
    depends_on: tuple[msgspec.Raw, ...] | None = None


class LiveStartup(_Owner, frozen=True):
    """The order in which the Jobs of a JobSet are created."""

    startup_policy_order: str | None = None


class LiveJobSetSpec(_Owner, frozen=True):
    """A JobSet."""

    replicated_jobs: tuple[LiveReplicatedJob, ...] | None = None
    startup_policy: LiveStartup | None = None


class LiveReplicatedJobStatus(_Owner, frozen=True):
    """The progress of one replicated job."""

    name: str = ""
    succeeded: int | None = None


class LiveJobSetStatus(_Owner, frozen=True):
    """The progress of a JobSet."""

    replicated_jobs_status: tuple[LiveReplicatedJobStatus, ...] | None = None


class LiveLeaderWorkerTemplate(_Owner, frozen=True):
    """One group of a LeaderWorkerSet."""

    size: int | None = None


class LiveLeaderWorkerSetSpec(_Owner, frozen=True):
    """A LeaderWorkerSet."""

    leader_worker_template: LiveLeaderWorkerTemplate = LiveLeaderWorkerTemplate()
    startup_policy: str | None = None


class LiveWorkerGroup(_Owner, frozen=True):
    """One group of workers in a RayCluster."""

    group_name: str = ""
    replicas: int | None = None
    min_replicas: int | None = None
    num_of_hosts: int | None = None
    #: KubeRay's name for the field; the older name below is read as well.
    suspend: bool | None = None
    suspended: bool | None = None


class LiveRayClusterSpec(_Owner, frozen=True):
    """A RayCluster."""

    worker_group_specs: tuple[LiveWorkerGroup, ...] | None = None


class LiveReplicas(_Owner, frozen=True):
    """The pods of one role of a PyTorchJob."""

    replicas: int | None = None


class LiveElasticPolicy(_Owner, frozen=True):
    """The smallest number of workers with which a PyTorchJob can run."""

    min_replicas: int | None = None


class LiveSchedulingPolicy(_Owner, frozen=True):
    """What a PyTorchJob says about its gang."""

    min_available: int | None = None


class LiveRunPolicy(_Owner, frozen=True):
    """How a PyTorchJob runs."""

    scheduling_policy: LiveSchedulingPolicy | None = None


class LivePyTorchJobSpec(_Owner, frozen=True):
    """A PyTorchJob."""

    pytorch_replica_specs: dict[str, LiveReplicas] | None = None
    elastic_policy: LiveElasticPolicy | None = None
    run_policy: LiveRunPolicy | None = None


class LiveReplicaStatus(_Owner, frozen=True):
    """The progress of one role of a PyTorchJob."""

    succeeded: int | None = None


class LivePyTorchJobStatus(_Owner, frozen=True):
    """The progress of a PyTorchJob."""

    replica_statuses: dict[str, LiveReplicaStatus] | None = None


class LivePackConstraint(_Owner, frozen=True):
    """The topology level within which pods are packed."""

    required: str | None = None
    preferred: str | None = None


class LivePodGangConstraint(_Owner, frozen=True):
    """A topology constraint of Grove."""

    pack_constraint: LivePackConstraint | None = None


class LivePodReference(_Owner, frozen=True):
    """A pod of a clique."""

    namespace: str = ""
    name: str = ""


class LiveClique(_Owner, frozen=True):
    """The pods of one clique in a PodGang."""

    name: str = ""
    min_replicas: int | None = None
    pod_references: tuple[LivePodReference, ...] | None = None
    topology_constraint: LivePodGangConstraint | None = None


class LiveCliqueSet(_Owner, frozen=True):
    """Cliques that are placed together."""

    name: str = ""
    pod_group_names: tuple[str, ...] | None = None
    topology_constraint: LivePodGangConstraint | None = None


class LivePodGangSpec(_Owner, frozen=True):
    """A PodGang of Grove."""

    podgroups: tuple[LiveClique, ...] | None = None
    topology_constraint: LivePodGangConstraint | None = None
    topology_constraint_group_configs: tuple[LiveCliqueSet, ...] | None = None
    priority_class_name: str | None = None


#: The types of `spec` and `status` by kind; for other kinds neither matters.
_PARTS: dict[str, tuple[type[Any], type[Any] | None]] = {
    "Job": (LiveJobSpec, LiveJobStatus),
    "JobSet": (LiveJobSetSpec, LiveJobSetStatus),
    "LeaderWorkerSet": (LiveLeaderWorkerSetSpec, None),
    "RayCluster": (LiveRayClusterSpec, None),
    "PyTorchJob": (LivePyTorchJobSpec, LivePyTorchJobStatus),
    "PodGang": (LivePodGangSpec, None),
}


def reduced(owner: LiveOwner, kind: str) -> LiveOwner:
    """An owner reduced to the fields that matter; pod templates are long."""
    spec, status = _PARTS.get(kind, (None, None))
    return LiveOwner(
        owner.metadata,
        owner.api_version,
        kind,
        _reduced(owner.spec, spec),
        _reduced(owner.status, status),
    )


def read_part(part: msgspec.Raw, as_type: type[T], field: str) -> T:
    """Decode `spec` or `status` of an owner; raises `Invalid` if it is malformed."""
    try:
        return msgspec.json.decode(part if bytes(part) not in _NOTHING else b"{}", type=as_type)
    except msgspec.MsgspecError as error:
        raise Invalid(f"{field}: {error}") from None


def controller_of(metadata: LiveMetadata) -> LiveOwnerReference | None:
    """The owner of an object: its controller, or else the first of its owners."""
    references = metadata.owner_references or ()
    return next((each for each in references if each.controller), next(iter(references), None))


_NOTHING = (b"", b"null")


def _reduced(part: msgspec.Raw, as_type: type[Any] | None) -> msgspec.Raw:
    if as_type is None or bytes(part) in _NOTHING:
        return msgspec.Raw()
    try:
        return msgspec.Raw(msgspec.json.encode(msgspec.json.decode(part, type=as_type)))
    except msgspec.MsgspecError:
        # Kept undecoded, so that a fault in it can be reported later.
        return part.copy()
