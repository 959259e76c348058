"""The kinds of owners whose pods form gangs, and the kinds that are written."""

from __future__ import annotations

from typing import Any

from bough.formats.live.objects import LivePod, LivePodGroup
from bough.formats.live.owners import LiveOwner
from bough.kube.objects import Kind

PODS: Kind[LivePod] = Kind("api/v1", "pods", LivePod)
POD_GROUPS: Kind[LivePodGroup] = Kind(
    "apis/scheduling.run.ai/v2alpha2", "podgroups", LivePodGroup, optional=True
)


def _owners(api: str, plural: str) -> Kind[LiveOwner]:
    return Kind(api, plural, LiveOwner, optional=True)


JOB = ("batch", "Job")
#: The owners that are followed, by API group and kind: those whose changes change a gang, and those
#: between them and their pods.
FOLLOWED: dict[tuple[str, str], Kind[LiveOwner]] = {
    JOB: _owners("apis/batch/v1", "jobs"),
    ("apps", "StatefulSet"): _owners("apis/apps/v1", "statefulsets"),
    ("jobset.x-k8s.io", "JobSet"): _owners("apis/jobset.x-k8s.io/v1alpha2", "jobsets"),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _owners(
        "apis/leaderworkerset.x-k8s.io/v1", "leaderworkersets"
    ),
    ("ray.io", "RayCluster"): _owners("apis/ray.io/v1", "rayclusters"),
    ("ray.io", "RayJob"): _owners("apis/ray.io/v1", "rayjobs"),
    ("ray.io", "RayService"): _owners("apis/ray.io/v1", "rayservices"),
    ("kubeflow.org", "PyTorchJob"): _owners("apis/kubeflow.org/v1", "pytorchjobs"),
    ("grove.io", "PodClique"): _owners("apis/grove.io/v1alpha1", "podcliques"),
    ("grove.io", "PodCliqueScalingGroup"): _owners(
        "apis/grove.io/v1alpha1", "podcliquescalinggroups"
    ),
    ("grove.io", "PodCliqueSet"): _owners("apis/grove.io/v1alpha1", "podcliquesets"),
    ("scheduler.grove.io", "PodGang"): _owners("apis/scheduler.grove.io/v1alpha1", "podgangs"),
}
#: Owners that create workloads on a schedule: each workload is a gang of its own.
TIMERS = (("batch", "CronJob"),)
#: The kinds that `Grouper.hear` is given, beside the owners that it follows itself.
HEARD: tuple[Kind[Any], ...] = (PODS, POD_GROUPS)


def group_of(api_version: str) -> str:
    """The API group in `GROUP/VERSION`; empty for the core group."""
    return api_version.rpartition("/")[0]
