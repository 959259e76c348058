"""Pods and launches for tests that need no cluster."""

from __future__ import annotations

import msgspec

from bough.kube.objects import KubePod
from bough.model.backend import Launch, Start
from bough.model.task_template import TaskTemplate

SITE = "5172"
UUID = "0123456789abcdef0123456789abcdef"
ATTEMPT = f"{UUID}/2"


def pod(phase: str = "Running", **status: object) -> KubePod:
    """A pod of ours as the apiserver tells it; `state` is that of its task's container."""
    state = status.pop("state", None)
    deleted = status.pop("deleted", None)
    version = status.pop("version", "1")
    if state is not None:
        status["containerStatuses"] = [{"name": "task", "state": state}]
    labels = {"bough.site": SITE, "osmo.task_uuid": UUID, "osmo.retry_id": "2"}
    name = f"train-{UUID}-2"
    metadata = {"name": name, "namespace": "bough", "uid": "u", "labels": labels}
    metadata |= {"resourceVersion": version}
    if deleted:
        metadata |= {"deletionTimestamp": "2026-01-31T23:59:59Z"}
    body = {"metadata": metadata, "spec": {"nodeName": "n"}, "status": {"phase": phase, **status}}
    return msgspec.convert(body, KubePod)


def ended(code: int, **more: object) -> dict[str, object]:
    """The state of a container that has ended."""
    return {"terminated": {"exitCode": code, **more}}


def waiting(reason: str, message: str = "") -> dict[str, object]:
    """The state of a container that does not run yet."""
    return {"waiting": {"reason": reason, "message": message}}


def launch(name: str = "train", **fields: object) -> Launch:
    """A task that runs `true` in an image."""
    spec = fields.pop("spec", None) or TaskTemplate(image="ubuntu", command=("true",))
    about = {"group_uuid": "g1", "pool": "team", "priority": "LOW"}
    given = {"attempt": ATTEMPT, "node": "n", "user": "ann@example.org", **fields}
    return Launch(name=name, spec=spec, about=about, **given)  # type: ignore[arg-type]


def start(*launches: Launch, tasks: tuple[str, ...] = ()) -> Start:
    """The start of a group."""
    names = tasks or tuple(each.name for each in launches)
    return Start("wf-1", "group", launches, names)
