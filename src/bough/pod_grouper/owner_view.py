"""Owners as last reported, by uid; owners of kinds that are not followed are read on demand.

An owner of an unknown kind may itself have an owner, so it is read if that is allowed; otherwise it
counts as the topmost one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping

from bough.formats.live.objects import LiveOwnerReference
from bough.formats.live.owners import LiveOwner, reduced
from bough.kube.client import KubeClient
from bough.kube.failures import KubeNotFound, KubeRefused
from bough.kube.objects import Kind
from bough.pod_grouper.job_progress import JobProgress
from bough.pod_grouper.kinds import FOLLOWED, JOB, PODS, group_of
from bough.pod_grouper.owner_gangs import Progress

#: How long the answer about an owner that is not followed is kept.
KEPT_S = 300.0


class OwnerView:
    """All owners that were reported or read."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._by_uid: dict[str, LiveOwner] = {}
        self._by_name: dict[tuple[str, str, str, str], str] = {}
        self._progress = JobProgress()
        self._changed: dict[str, None] = {}
        #: By uid: the answer about an owner that is not followed, and when it came.
        self._asked: dict[str, tuple[LiveOwner | None, float]] = {}
        #: By API group and version, then by kind: its plural, and whether it is namespaced.
        self._plurals: dict[str, dict[str, tuple[str, bool]]] = {}

    def put(self, key: tuple[str, str], owner: LiveOwner) -> None:
        """Take in an owner."""
        uid = owner.metadata.uid or ""
        kept = self._by_uid[uid] = reduced(owner, key[1])
        self._by_name[(*key, owner.metadata.namespace or "", owner.metadata.name)] = uid
        self._note(uid, *(self._progress.put(kept) if key == JOB else ()))

    def remove(self, key: tuple[str, str], namespace: str, name: str) -> str:
        """An owner is gone; return its uid."""
        uid = self._by_name.pop((*key, namespace, name), "")
        self._by_uid.pop(uid, None)
        self._note(uid, *self._progress.remove(uid))
        return uid

    def take_changed(self) -> tuple[str, ...]:
        """The uids of all owners whose gangs may differ from those at the last call."""
        changed, self._changed = tuple(self._changed), {}
        return changed

    def _note(self, *uids: str) -> None:
        self._changed.update(dict.fromkeys(filter(None, uids)))

    def keep_only(self, key: tuple[str, str], there: Iterable[tuple[str, str]]) -> list[str]:
        """Of this kind only these exist, by namespace and name; return the uids of all others."""
        kept = set(there)
        gone = [each for each in self._by_name if each[:2] == key and each[2:] not in kept]
        return [self.remove(key, *each[2:]) for each in gone]

    def progress(self, job_set: LiveOwner) -> Mapping[str, Progress]:
        """What the Jobs of a JobSet have done already, by the names of its replicated jobs."""
        return self._progress.of(job_set)

    def named(self, key: tuple[str, str], namespace: str, name: str) -> LiveOwner | None:
        """A followed owner, by name."""
        return self._by_uid.get(self._by_name.get((*key, namespace, name), ""))

    def find(self, reference: LiveOwnerReference, namespace: str) -> LiveOwner | None:
        """The object that a reference names; `None` if it is gone, or may not be read.

        Raises if a followed kind may not be read, and on failures that may pass.
        """
        known = self._by_uid.get(reference.uid)
        if known is not None:
            return known
        asked = self._asked.get(reference.uid)
        if asked is not None and time.monotonic() - asked[1] < KEPT_S:
            return asked[0]
        found = self._ask(reference, namespace)
        self._forget_old()
        self._asked[reference.uid] = (found, time.monotonic())
        return found

    def _ask(self, reference: LiveOwnerReference, namespace: str) -> LiveOwner | None:
        key = (group_of(reference.api_version), reference.kind)
        followed = key in FOLLOWED
        try:
            kind = FOLLOWED.get(key) or self._kind_of(reference)
            if kind is None:
                return None
            found = self._client.get(kind, reference.name, namespace if kind.namespaced else "")
        except KubeNotFound:
            return None
        except KubeRefused as refused:
            if followed or not 400 <= refused.status < 500:
                raise
            return None
        return reduced(found, reference.kind) if found.metadata.uid == reference.uid else None

    def _kind_of(self, reference: LiveOwnerReference) -> Kind[LiveOwner] | None:
        """A kind that is not followed, as the apiserver describes it."""
        version = reference.api_version
        if (version, reference.kind) == ("v1", "Pod"):
            return Kind(PODS.api, PODS.plural, LiveOwner)
        if version not in self._plurals:
            where = f"/apis/{version}" if "/" in version else f"/api/{version}"
            self._plurals[version] = dict(_plurals(self._client.ask("GET", where)))
        known = self._plurals[version].get(reference.kind)
        if known is None:
            return None
        api = f"apis/{version}" if "/" in version else f"api/{version}"
        return Kind(api, known[0], LiveOwner, namespaced=known[1])

    def _forget_old(self) -> None:
        before_s = time.monotonic() - KEPT_S
        if len(self._asked) > 1000:
            self._asked = {uid: each for uid, each in self._asked.items() if each[1] > before_s}


def _plurals(found: object) -> Iterator[tuple[str, tuple[str, bool]]]:
    """For each kind: its plural, and whether it is namespaced; subresources are skipped."""
    listed = found.get("resources") if isinstance(found, dict) else None
    for each in listed if isinstance(listed, list) else ():
        name, kind = each.get("name"), each.get("kind")
        if isinstance(name, str) and isinstance(kind, str) and "/" not in name:
            yield kind, (name, bool(each.get("namespaced")))
