"""What a pod says about its attempt. Pure: takes the object, returns what it shows.

A pod that others refused, evicted or deleted counts as lost, not failed: its task did no wrong.
"""

from __future__ import annotations

import msgspec

from bough.kube.objects import ContainerStatus, KubePod, Terminated
from bough.model.backend import Observation, Sight, StartFault

#: The container that runs the task.
TASK_CONTAINER = "task"
#: Waiting reasons for a missing image; the two in `_NEVER` do not go away by waiting.
_PULLING = ("ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable")
_NEVER = ("InvalidImageName", "ErrImageNeverPull")
#: Normal waiting reasons of a new pod.
_USUAL = ("ContainerCreating", "PodInitializing")
#: Reasons of pods that the kubelet refused, or ended to protect the node.
_REFUSED = (
    "Evicted",
    "NodeAffinity",
    "NodeLost",
    "NodeShutdown",
    "Preempting",
    "Shutdown",
    "TaintToleration",
    "Terminated",
    "UnexpectedAdmissionError",
)
#: The reason of a container whose end the kubelet did not see.
_UNSEEN = "ContainerStatusUnknown"
_SIGNALS = range(129, 193)


class PodSight(msgspec.Struct, frozen=True):
    """What is known of an attempt, apart from since when."""

    sight: Sight
    message: str = ""
    exit_code: int | None = None
    signal: int | None = None
    told: bool | None = None
    fault: StartFault | None = None
    #: Whether it cannot start because its image is missing, for now or for good.
    pulling: bool = False

    @property
    def over(self) -> bool:
        """Whether this is final."""
        return self.sight in (Sight.ENDED, Sight.UNSTARTABLE, Sight.LOST, Sight.PREEMPTED)

    @property
    def completed(self) -> bool:
        """Whether the task ended by itself with success: then its data is kept."""
        return self.sight is Sight.ENDED and self.exit_code == 0 and not self.told

    def observed(self, attempt: str, at_ms: int, node: str = "") -> Observation:
        """The same as an observation for the scheduler."""
        return Observation(
            attempt,
            self.sight,
            at_ms,
            self.exit_code,
            self.message,
            self.signal,
            self.told,
            self.fault,
            node or None,
        )


def is_over(pod: KubePod) -> bool:
    """Whether the kubelet says that nothing of the pod runs any more."""
    return pod.status.phase in ("Succeeded", "Failed")


def see(pod: KubePod, *, told: bool) -> PodSight:
    """What a pod shows. `told`: whether Bough told its attempt to end."""
    if is_over(pod):
        return _seen_over(pod, told=told)
    task = _task_status(pod)
    if pod.status.phase == "Running" or (task is not None and task.state.running is not None):
        return PodSight(Sight.RUNNING)
    return _seen_starting(pod, task)


def see_gone(before: PodSight | None, *, told: bool) -> PodSight:
    """What to say of a pod that is gone, and whose end was not seen."""
    if told:
        # Bough told it to end, and so deleted it while it ran or was starting.
        return PodSight(Sight.ENDED, "Its pod is gone.", told=True)
    ran = before is not None and before.sight is Sight.RUNNING
    text = "while it ran" if ran else "before it ran"
    return PodSight(Sight.LOST, f"Its pod was deleted {text}, not by this server.")


def _seen_over(pod: KubePod, *, told: bool) -> PodSight:
    # Only a deletion sets this mark; a pod that ended by itself is deleted later, when its end
    # is stored.
    marked = pod.metadata.deletion_timestamp is not None
    reason, message = pod.status.reason, pod.status.message
    if marked and not told:
        return PodSight(Sight.LOST, f"Its pod was deleted, not by this server. {message}".strip())
    task = _task_status(pod)
    end = None if task is None else task.state.terminated
    if pod.status.phase == "Succeeded":
        return PodSight(Sight.ENDED, "", 0 if end is None else end.exit_code, told=marked)
    disrupted = _disruption(pod)
    if not told and (reason in _REFUSED or reason.startswith("OutOf") or disrupted):
        text = ": ".join(each for each in (reason or "Disrupted", message or disrupted) if each)
        return PodSight(Sight.LOST, f"Its node did not keep the pod. {text}")
    if end is None or end.reason == _UNSEEN:
        return _seen_without_end(pod, told=marked)
    return _ended(end, told=marked)


def _seen_without_end(pod: KubePod, *, told: bool) -> PodSight:
    """A pod failed and its task says nothing: an init container failed, or the node did."""
    for status in pod.status.init_container_statuses:
        end = status.state.terminated
        if end is not None and end.exit_code != 0:
            text = f"Container {status.name} before the task ended with {end.exit_code}."
            return PodSight(Sight.UNSTARTABLE, f"{text} {end.message}".strip(), told=told)
    if told:
        return PodSight(Sight.ENDED, pod.status.message, told=True)
    text = ": ".join(each for each in (pod.status.reason, pod.status.message) if each)
    return PodSight(Sight.LOST, f"Its pod failed, and its end was not seen. {text}".strip())


def _ended(end: Terminated, *, told: bool) -> PodSight:
    number = end.signal or (end.exit_code - 128 if end.exit_code in _SIGNALS else 0)
    code = 128 + end.signal if end.signal and end.exit_code == 0 else end.exit_code
    text = ""
    if end.reason == "OOMKilled":
        text = "Task was killed: it used more memory than its limit (OOMKilled)."
    elif end.reason in ("StartError", "ContainerCannotRun"):
        said = f"{end.reason}: {end.message}".rstrip(": ")
        return PodSight(Sight.UNSTARTABLE, said, told=told)
    elif end.message:
        text = f"Task ended with exit code {code}: {end.message}"
    return PodSight(Sight.ENDED, text, code, number or None, told)


def _seen_starting(pod: KubePod, task: ContainerStatus | None) -> PodSight:
    statuses = (*pod.status.init_container_statuses, *(() if task is None else (task,)))
    for status in statuses:
        waiting = status.state.waiting
        if waiting is None or not waiting.reason or waiting.reason in _USUAL:
            continue
        said = f"{waiting.reason}: {waiting.message}".rstrip(": ")
        if waiting.reason in _NEVER:
            fault = StartFault.IMAGE_PULL
            return PodSight(Sight.UNSTARTABLE, said, fault=fault, pulling=True)
        return PodSight(Sight.STARTING, said, pulling=waiting.reason in _PULLING)
    return PodSight(Sight.STARTING, "" if pod.spec.node_name else unplaced(pod))


def unplaced(pod: KubePod) -> str:
    """Why the cluster's scheduler has not placed a pod, in its own words."""
    for each in pod.status.conditions:
        if each.type == "PodScheduled" and each.status == "False":
            return f"{each.reason}: {each.message}".rstrip(": ")
    return ""


def preemption(pod: KubePod) -> str:
    """What a pod says about its preemption by a scheduler; empty if there was none."""
    for each in pod.status.conditions:
        taken = each.type == "DisruptionTarget" and each.status == "True"
        if taken and each.reason == "PreemptionByScheduler":
            return each.message or each.reason
    return ""


def _task_status(pod: KubePod) -> ContainerStatus | None:
    """The status of the container that runs the task; templates may add other containers."""
    for status in pod.status.container_statuses:
        if status.name == TASK_CONTAINER:
            return status
    return None


def _disruption(pod: KubePod) -> str:
    """Why the pod was disrupted, in its own words; empty if it was not."""
    for each in pod.status.conditions:
        if each.type == "DisruptionTarget" and each.status == "True":
            return f"{each.reason}: {each.message}".rstrip(": ")
    return ""
