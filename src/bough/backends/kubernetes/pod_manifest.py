"""The objects of an attempt: its Pod, its Secrets, and the Service of its group."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

from bough.backends.kubernetes.data_folders import (
    SEEN_OUTPUT,
    MissingInput,
    add_data,
    seen_inputs,
)
from bough.backends.kubernetes.names import (
    DATA,
    GROUP_UUID,
    SITE,
    dns_name,
    labels_of,
    pod_name,
    service_name,
)
from bough.backends.kubernetes.options import DataVolume
from bough.backends.kubernetes.pod_view import TASK_CONTAINER
from bough.backends.kubernetes.template_merge import merge, merge_all, without_missing
from bough.backends.placeholders import Meaning
from bough.kube.objects import KubePod
from bough.model.backend import Launch, Start
from bough.model.task_template import TaskTemplate

Json = Any

GPU = "nvidia.com/gpu"
#: Files and credentials are readable and executable by any user that an image runs as.
_FILE_MODE = 0o555
#: The facts that belong to a group, not to a single task.
_ABOUT_GROUPS = ("workflow_uuid", "group_uuid", "pool", "priority")
_FILES, _CREDENTIALS = "bough-files", "bough-credential"


class UnstartablePod(Exception):
    """A task cannot be started; the message says why."""


class AttemptObjects(msgspec.Struct, frozen=True):
    """The objects to create for one attempt."""

    pod: dict[str, Json]
    #: For each Secret, by name: its contents in base64.
    secrets: dict[str, dict[str, str]]
    #: Set for a group of several tasks.
    service: dict[str, Json] | None = None
    #: Set for a group that the cluster's own scheduler places.
    pod_group: dict[str, Json] | None = None
    #: The objects that group templates ask for.
    group_objects: tuple[dict[str, Json], ...] = ()

    def with_pod_group(self, made: dict[str, Json]) -> AttemptObjects:
        """The same, with the PodGroup of its group."""
        return msgspec.structs.replace(self, pod_group=made)

    @property
    def name(self) -> str:
        """The name of the pod."""
        return self.pod["metadata"]["name"]

    @property
    def node(self) -> str:
        """The node that was decided; empty if the cluster's own scheduler decides."""
        return self.pod["spec"].get("nodeName", "")

    def secret(self, name: str, owner: KubePod, site: str) -> dict[str, Json]:
        """A Secret that is deleted with its pod."""
        reference = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": owner.metadata.name,
            "uid": owner.metadata.uid,
        }
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
                "labels": {SITE: site},
                "ownerReferences": [reference],
            },
            "immutable": True,
            "data": self.secrets[name],
        }


def make_objects(
    site: str, namespace: str, start: Start, launch: Launch, volume: DataVolume | None = None
) -> AttemptObjects:
    """Everything that an attempt needs; raises `UnstartablePod` if its spec is wrong."""
    name = pod_name(launch.name, launch.attempt)
    spec = _filled(namespace, start, launch, keeps_data=volume is not None)
    secrets: dict[str, dict[str, str]] = {}
    container: dict[str, Json] = {"name": TASK_CONTAINER, "volumeMounts": []}
    volumes: list[Json] = []
    _add_files(name, spec, secrets, container, volumes)
    variables = _add_credentials(name, spec, launch, secrets, container, volumes)
    if spec.image is None:
        raise UnstartablePod("image: is missing, and tasks on Kubernetes run in images.")
    container |= {
        "image": spec.image,
        "env": [*_environment(start, launch, spec, keeps_data=volume is not None), *variables],
        "resources": _resources(launch),
    }
    if spec.command:
        container["command"] = list(spec.command)
    if spec.args:
        container["args"] = list(spec.args)
    own = _pod(site, name, start, launch, container, volumes)
    if volume is not None:
        _add_data(volume, site, start, launch, own)
    pod = merge(without_missing(merge_all(launch.pod_templates)), own)
    # Defaults, which a template can override.
    for field in ("automountServiceAccountToken", "enableServiceLinks"):
        pod["spec"].setdefault(field, False)
    service = _service(site, start) if len(start.tasks) > 1 else None
    return AttemptObjects(pod, secrets, service, group_objects=_group_objects(site, start))


def _pod(
    site: str,
    name: str,
    start: Start,
    launch: Launch,
    container: dict[str, Json],
    volumes: list[Json],
) -> dict[str, Json]:
    uuid, _, retry = launch.attempt.rpartition("/")
    about = {
        **launch.about,
        "workflow_id": start.workflow_id,
        "group_name": start.group,
        "submitted_by": launch.user,
        "task_name": launch.name,
        "task_uuid": uuid,
        "retry_id": retry,
    }
    spec: dict[str, Json] = {
        **({"nodeName": launch.node} if launch.node else {}),
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": launch.grace_s,
        "containers": [container],
        "volumes": volumes,
    }
    if len(start.tasks) > 1:
        spec |= {"hostname": dns_name(launch.name), "subdomain": _service_of(launch)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels_of(site, about, launch.labels)},
        "spec": spec,
    }


def _add_data(
    volume: DataVolume, site: str, start: Start, launch: Launch, pod: dict[str, Json]
) -> None:
    """Give a pod its folder on the claim, and the data that other tasks left for it."""
    (container,) = pod["spec"]["containers"]
    try:
        before = add_data(volume, site, start, launch, container, pod["spec"]["volumes"])
    except MissingInput as error:
        raise UnstartablePod(str(error)) from None
    pod["spec"]["initContainers"] = [before]
    pod["metadata"]["labels"][DATA] = "true"


def _service_of(launch: Launch) -> str:
    return service_name(launch.about.get("group_uuid", ""))


def _service(site: str, start: Start) -> dict[str, Json]:
    """A headless Service: gives each task of the group a DNS name, even before it is ready."""
    launch = start.launches[0]
    group = launch.about.get("group_uuid", "")
    selector = {GROUP_UUID: group, SITE: site}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": _service_of(launch), "labels": selector},
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector},
    }


def _group_objects(site: str, start: Start) -> tuple[dict[str, Json], ...]:
    """The objects that templates ask for; those with the same kind and name are merged in order."""
    if not start.objects:
        return ()
    found: dict[tuple[str, str, str], dict[str, Json]] = {}
    for each in start.objects:
        key = (each["apiVersion"], each["kind"], each["metadata"]["name"])
        found[key] = merge(found.get(key, {}), each)
    launch = start.launches[0]
    about = {
        **{name: launch.about.get(name, "") for name in _ABOUT_GROUPS},
        "workflow_id": start.workflow_id,
        "group_name": start.group,
        "submitted_by": launch.user,
    }
    return tuple(
        merge(
            each,
            {"metadata": {"labels": labels_of(site, about, each["metadata"].get("labels") or {})}},
        )
        for each in found.values()
    )


def _filled(namespace: str, start: Start, launch: Launch, *, keeps_data: bool) -> TaskTemplate:
    hosts: dict[str, str] = {}
    if len(start.tasks) > 1:
        below = f"{_service_of(launch)}.{namespace}.svc"
        hosts = {task: f"{dns_name(task)}.{below}" for task in start.tasks}
    template = launch.spec or TaskTemplate()
    uuid = launch.about.get("workflow_uuid", "")
    output = SEEN_OUTPUT if keeps_data else ""
    inputs = seen_inputs(len(template.inputs)) if keeps_data else ()
    meaning = Meaning(start.workflow_id, output, inputs, hosts=hosts, uuid=uuid)
    return meaning.fill_template(template)


def _environment(
    start: Start, launch: Launch, spec: TaskTemplate, *, keeps_data: bool
) -> list[Json]:
    own = {
        "BOUGH_ATTEMPT": launch.attempt,
        "BOUGH_RETRY_ID": str(launch.retry_id),
        "BOUGH_TASK": launch.name,
        "BOUGH_WORKFLOW_ID": start.workflow_id,
        **({"BOUGH_OUTPUT": SEEN_OUTPUT} if keeps_data else {}),
    }
    # Kubernetes would replace $(NAME): escape it, so that users get what they wrote.
    return [
        {"name": name, "value": value.replace("$(", "$$(")}
        for name, value in {**spec.environment, **own}.items()
    ]


def _resources(launch: Launch) -> dict[str, Json]:
    """Requests for what is counted, and limits for all but CPU: a task may use idle CPU time."""
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    if launch.cpu_milli:
        requests["cpu"] = f"{launch.cpu_milli}m"
    for name, amount in (
        ("memory", launch.memory_bytes),
        ("ephemeral-storage", launch.storage_bytes),
        (GPU, launch.gpus),
    ):
        if amount:
            requests[name] = limits[name] = str(amount)
    return {"requests": requests, "limits": limits}


def _add_files(
    name: str,
    spec: TaskTemplate,
    secrets: dict[str, dict[str, str]],
    container: dict[str, Json],
    volumes: list[Json],
) -> None:
    if not spec.files:
        return
    data: dict[str, str] = {}
    for number, file in enumerate(spec.files):
        if not file.path.startswith("/"):
            raise UnstartablePod(f"files[{number}].path: {file.path} must begin with a slash.")
        data[f"file-{number}"] = _encoded(number, file.contents, raw=file.base64)
        container["volumeMounts"].append(
            {
                "name": _FILES,
                "mountPath": file.path,
                "subPath": f"file-{number}",
                "readOnly": True,
            }
        )
    secrets[f"{name}-files"] = data
    secret = {"secretName": f"{name}-files", "defaultMode": _FILE_MODE}
    volumes.append({"name": _FILES, "secret": secret})


def _encoded(number: int, contents: str, *, raw: bool) -> str:
    if not raw:
        return _base64(contents)
    try:
        return base64.b64encode(base64.b64decode(contents)).decode()
    except (binascii.Error, ValueError):
        raise UnstartablePod(f"files[{number}].contents: is not valid base64.") from None


def _add_credentials(
    name: str,
    spec: TaskTemplate,
    launch: Launch,
    secrets: dict[str, dict[str, str]],
    container: dict[str, Json],
    volumes: list[Json],
) -> list[Json]:
    """Add the volumes with credentials; return the variables that take single keys of them."""
    data: dict[str, str] = {}
    variables: list[Json] = []
    secret = f"{name}-credentials"
    for number, use in enumerate(spec.credentials):
        values = launch.secrets.get(use.name, {})
        keys = {key: f"credential-{number}-{at}" for at, key in enumerate(sorted(values))}
        data |= {keys[key]: _base64(value) for key, value in values.items()}
        for variable, key in use.variables.items():
            if key not in keys:
                raise UnstartablePod(f"credentials: {use.name} has no key {key}.")
            source = {"secretKeyRef": {"name": secret, "key": keys[key]}}
            variables.append({"name": variable, "valueFrom": source})
        if use.mount is not None:
            volume = f"{_CREDENTIALS}-{number}"
            items = [{"key": keys[key], "path": key} for key in sorted(values)]
            kept = {"secretName": secret, "items": items, "defaultMode": 0o444}
            volumes.append({"name": volume, "secret": kept})
            mount = {"name": volume, "mountPath": use.mount, "readOnly": True}
            container["volumeMounts"].append(mount)
    if data:
        secrets[secret] = data
    return variables


def _base64(text: str) -> str:
    return base64.b64encode(text.encode(errors="replace")).decode()
