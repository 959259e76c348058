"""What a pod says of its attempt. Pure: the object in, what is seen out.

What was refused, evicted or deleted by others is lost and not failed: the task had no part in it.
"""

from __future__ import annotations

import msgspec

from bough.kube.objects import ContainerStatus, KubePod, Terminated
from bough.model.backend import Observation, Sight, StartFault

#: The container that runs the task.
TASK_CONTAINER = "task"
#: Waiting reasons that mean that the image is not there; the last two do not change by waiting.
_PULLING = ("ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable")
_NEVER = ("InvalidImageName", "ErrImageNeverPull")
#: What a pod waits for that has just been created.
_USUAL = ("ContainerCreating", "PodInitializing")
#: Why a pod failed that its kubelet refused, or ended for the sake of the node.
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
#: How the container of a pod ended whose end was not seen.
_UNSEEN = "ContainerStatusUnknown"
_SIGNALS = range(129, 193)


class PodSight(msgspec.Struct, frozen=True):
    """What is seen of an attempt, without since when."""

    sight: Sight
    message: str = ""
    exit_code: int | None = None
    signal: int | None = None
    told: bool | None = None
    fault: StartFault | None = None
    #: Of what is being started: that no image is there, for now or for good.
    pulling: bool = False

    @property
    def over(self) -> bool:
        """Whether nothing more is seen after this."""
        return self.sight in (Sight.ENDED, Sight.UNSTARTABLE, Sight.LOST, Sight.PREEMPTED)

    @property
    def completed(self) -> bool:
        """Whether it ended by itself, and well: what it left is kept."""
        return self.sight is Sight.ENDED and self.exit_code == 0 and not self.told

    def observed(self, attempt: str, at_ms: int, node: str = "") -> Observation:
        """The same, as the scheduler is told."""
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
    """Whether its kubelet says that nothing of it runs any more."""
    return pod.status.phase in ("Succeeded", "Failed")


def see(pod: KubePod, *, told: bool) -> PodSight:
    """What a pod says. told: whether Bough told its attempt to end."""
    if is_over(pod):
        return _seen_over(pod, told=told)
    task = _task_status(pod)
    if pod.status.phase == "Running" or (task is not None and task.state.running is not None):
        return PodSight(Sight.RUNNING)
    return _seen_starting(pod, task)


def see_gone(before: PodSight | None, *, told: bool) -> PodSight:
    """What is said of a pod that is there no more, and whose end was not seen."""
    if told:
        # It was deleted while it ran, or was being started: nothing else deletes by this server.
        return PodSight(Sight.ENDED, "Its pod is gone.", told=True)
    ran = before is not None and before.sight is Sight.RUNNING
    text = "while it ran" if ran else "before it ran"
    return PodSight(Sight.LOST, f"Its pod was deleted {text}, not by this server.")


def _seen_over(pod: KubePod, *, told: bool) -> PodSight:
    # What ended by itself has no such mark: it is deleted later, when its end is written down.
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
    """A pod that failed without a word of its task: what came before it did, or its node."""
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
    """Why a scheduler of the cluster has not placed a pod, in its own words."""
    for each in pod.status.conditions:
        if each.type == "PodScheduled" and each.status == "False":
            return f"{each.reason}: {each.message}".rstrip(": ")
    return ""


def preemption(pod: KubePod) -> str:
    """What a pod says of being ended for others by a scheduler; empty: it was not."""
    for each in pod.status.conditions:
        taken = each.type == "DisruptionTarget" and each.status == "True"
        if taken and each.reason == "PreemptionByScheduler":
            return each.message or each.reason
    return ""


def _task_status(pod: KubePod) -> ContainerStatus | None:
    """The status of the container that runs the task; templates may add others beside it."""
    for status in pod.status.container_statuses:
        if status.name == TASK_CONTAINER:
            return status
    return None


def _disruption(pod: KubePod) -> str:
    """Why the pod was ended for others, as it says itself; empty: it was not."""
    for each in pod.status.conditions:
        if each.type == "DisruptionTarget" and each.status == "True":
            return f"{each.reason}: {each.message}".rstrip(": ")
    return ""
