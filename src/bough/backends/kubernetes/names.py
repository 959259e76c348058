"""How what Bough makes in a cluster is named and labelled."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bough.kube.objects import KubePod

#: The label with the identity of the site; what has another one is never touched.
SITE = "bough.site"
#: Of a pod that has a folder for data; of one that drops such folders.
DATA = "bough.data"
CLEANER = "bough.cleaner"
#: Of what says which objects a group has.
OBJECTS = "bough.objects"
TASK_UUID = "osmo.task_uuid"
RETRY_ID = "osmo.retry_id"
GROUP_UUID = "osmo.group_uuid"
_PREFIX = "osmo."
_LONGEST = 63
_NO_NAME = re.compile(r"[^a-z0-9]+")
_NO_VALUE = re.compile(r"[^A-Za-z0-9_.-]+")
_ENDS = "_.-"


def pod_name(task: str, attempt: str) -> str:
    """The name of the pod of an attempt, always the same, so that no second one can be made."""
    own = dns_name(attempt)
    room = _LONGEST - len(own) - 1
    return f"{dns_name(task)[:room].rstrip('-')}-{own}" if room > 0 else own


def dns_name(text: str) -> str:
    """A text as a part of a name in DNS; tasks of one workflow stay apart."""
    return _NO_NAME.sub("-", text.lower()).strip("-")[:_LONGEST].rstrip("-") or "x"


def service_name(group_uuid: str) -> str:
    """The name of the Service of a group."""
    return f"g-{dns_name(group_uuid)}"[:_LONGEST]


def objects_name(group_uuid: str) -> str:
    """The name of what says which objects a group has."""
    return f"{service_name(group_uuid)[: _LONGEST - 8]}-objects"


def labels_of(site: str, about: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """The labels of a pod: those of its workflow, and those that people search by."""
    known = {_PREFIX + name: label_value(value) for name, value in about.items() if value}
    return {**own, **known, SITE: site}


def label_value(text: str) -> str:
    """A text as the value of a label."""
    return _NO_VALUE.sub("_", text)[:_LONGEST].strip(_ENDS)


def attempt_of(pod: KubePod, site: str) -> str | None:
    """The attempt that a pod is of; `None`: it is not of this site.

    One that others made with labels of an attempt has another name, and is of none that there is.
    """
    labels = pod.metadata.labels or {}
    task, retry = labels.get(TASK_UUID), labels.get(RETRY_ID)
    if labels.get(SITE) != site or not task or not retry:
        return None
    attempt, name = f"{task}/{retry}", pod.metadata.name
    own = dns_name(attempt)
    is_own = name == own or name.endswith(f"-{own}")
    return attempt if is_own else f"{name}/{pod.metadata.uid}"
