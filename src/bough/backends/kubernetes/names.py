"""Names and labels of the objects that Bough creates in a cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from bough.kube.objects import KubePod

#: The label with the identity of the site; objects of another site are never touched.
SITE = "bough.site"
#: The label of a pod that has a folder for data; below, of a pod that deletes such folders.
DATA = "bough.data"
CLEANER = "bough.cleaner"
#: The label of the record that lists the objects of a group.
OBJECTS = "bough.objects"
TASK_UUID = "osmo.task_uuid"
RETRY_ID = "osmo.retry_id"
GROUP_UUID = "osmo.group_uuid"
_PREFIX = "osmo."
_LONGEST = 63
_NO_NAME = re.compile(r"[^a-z0-9]+")
_NO_VALUE = re.compile(r"[^A-Za-z0-9_.-]+")
_ENDS = "_.-"
#: The tasks of a group, and groups that are alike, share most of their names and labels.
_KEPT = 4_096


def pod_name(task: str, attempt: str) -> str:
    """The name of an attempt's pod: always the same, so that no second pod can be created."""
    own = dns_name(attempt)
    room = _LONGEST - len(own) - 1
    return f"{dns_name(task)[:room].rstrip('-')}-{own}" if room > 0 else own


@lru_cache(_KEPT)
def dns_name(text: str) -> str:
    """A text as part of a DNS name; different tasks of one workflow stay different."""
    return _NO_NAME.sub("-", text.lower()).strip("-")[:_LONGEST].rstrip("-") or "x"


def service_name(group_uuid: str) -> str:
    """The name of the Service of a group."""
    return f"g-{dns_name(group_uuid)}"[:_LONGEST]


def objects_name(group_uuid: str) -> str:
    """The name of the record that lists the objects of a group."""
    return f"{service_name(group_uuid)[: _LONGEST - 8]}-objects"


def labels_of(site: str, about: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """The labels of a pod: its own, and those about its workflow that people search by."""
    known = {_PREFIX + name: label_value(value) for name, value in about.items() if value}
    return {**own, **known, SITE: site}


@lru_cache(_KEPT)
def label_value(text: str) -> str:
    """A text as a valid value of a label."""
    return _NO_VALUE.sub("_", text)[:_LONGEST].strip(_ENDS)


def attempt_of(pod: KubePod, site: str) -> str | None:
    """The attempt that a pod belongs to; `None` if it is not of this site.

    A pod that others created with the labels of an attempt has another name: it counts for an
    attempt that does not exist.
    """
    labels = pod.metadata.labels or {}
    task, retry = labels.get(TASK_UUID), labels.get(RETRY_ID)
    if labels.get(SITE) != site or not task or not retry:
        return None
    attempt, name = f"{task}/{retry}", pod.metadata.name
    own = dns_name(attempt)
    is_own = name == own or name.endswith(f"-{own}")
    return attempt if is_own else f"{name}/{pod.metadata.uid}"
