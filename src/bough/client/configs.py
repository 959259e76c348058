"""Configuration and its history, and the audit, of a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bough.api.common import Json
from bough.api.configs import (
    AuditLine,
    AuditPage,
    ConfigDiff,
    ConfigHistory,
    ConfigRevision,
    PatchConfigs,
    PatchPolicy,
    Rollback,
)
from bough.api.kube_answers import DriftAnswer
from bough.client.addresses import given, path_of
from bough.client.transport import Transport

#: Spelled out here, because a subject's own `list` hides the type of that name.
AuditLines = list[AuditLine]
RevisionList = list[ConfigRevision]


class Configs:
    """Configuration by kind (POOL, WORKFLOW, POLICY, ROLE...), and its changes."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self, kind: str) -> Json:
        """All that is configured of a kind; its form depends on the kind."""
        return self._transport.get_json(path_of("configs", kind.lower()))

    def update(
        self, kind: str, changes: Mapping[str, Json], name: str | None = None, description: str = ""
    ) -> Json:
        """Change some fields, of one object of the kind where it has several.

        A role is always written as a whole.
        """
        path = _config(kind, name)
        if kind == "ROLE":
            return self._transport.send_json("PUT", path, changes)
        if kind == "COHORT":
            return self._transport.send_json("PATCH", path, changes)
        body = PatchConfigs(dict(changes), description)
        return self._transport.send_json("PATCH", path, body)

    def update_policy(self, text: str, file_name: str = "", description: str = "") -> Json:
        """Change the policy by the text of a policy file."""
        body = PatchPolicy(file=text, file_name=file_name, description=description)
        return self._transport.send_json("PATCH", _config("POLICY", None), body)

    def delete(self, kind: str, name: str) -> None:
        """Remove one object."""
        self._transport.send_json("DELETE", _config(kind, name))

    def history(
        self,
        *,
        kinds: Sequence[str] = (),
        name: str | None = None,
        revision: int | None = None,
        limit: int = 20,
        offset: int = 0,
        with_data: bool = False,
    ) -> RevisionList:
        """Its changes, the newest first."""
        query = {
            "omit_data": not with_data,
            "order": "DESC",
            "limit": limit,
            "offset": offset,
            **given(config_types=list(kinds), name=name, revision=revision),
        }
        return self._transport.get(ConfigHistory, path_of("configs", "history"), query).configs

    def diff(self, kind: str, before: int, after: int) -> ConfigDiff:
        """Two revisions, and how they differ."""
        query = {"config_type": kind, "first_revision": before, "second_revision": after}
        return self._transport.get(ConfigDiff, path_of("configs", "diff"), query)

    def rollback(self, kind: str, revision: int) -> None:
        """Configure a kind as it was right after a revision."""
        path = path_of("configs", "history", "rollback")
        self._transport.send(None, "POST", path, Rollback(kind, revision))


class Audit:
    """All changes: by which user, when, from where."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self,
        *,
        subject: str | None = None,
        user: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> AuditLines:
        """The latest first; `before` is the number of an entry, to go on from there."""
        query = {"limit": limit, **given(subject=subject, user=user, before=before)}
        return self._transport.get(AuditPage, path_of("audit"), query).entries

    def drift(self) -> DriftAnswer:
        """What others changed in clusters whose queues follow Bough's."""
        return self._transport.get(DriftAnswer, path_of("kube", "drift"))


def _config(kind: str, name: str | None) -> str:
    return path_of("configs", kind.lower(), *([] if name is None else [name]))
