"""Configuration and its history, and the audit, on a server. Must not know HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bough.client.transport import Transport, given, path_of

if TYPE_CHECKING:
    from bough.client.types import AuditList, RevisionList


class Configs:
    """Configuration by kind (POOL, WORKFLOW, POLICY, ROLE...), and how it was changed."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self, kind: str) -> Any:
        """All that is configured of a kind."""
        return self._transport.get(path_of("configs", kind.lower()))

    def update(
        self, kind: str, changes: Mapping[str, Any], name: str | None = None, description: str = ""
    ) -> Any:
        """Change some fields, of one object of the kind where it has several.

        A role is always written as a whole.
        """
        if kind == "ROLE":
            return self._transport.send("PUT", _config(kind, name), dict(changes))
        if kind == "COHORT":
            return self._transport.send("PATCH", _config(kind, name), dict(changes))
        body = {"configs_dict": dict(changes), **given(description=description)}
        return self._transport.send("PATCH", _config(kind, name), body)

    def update_policy(self, text: str, file_name: str = "", description: str = "") -> Any:
        """Change the policy by the text of a policy file."""
        body = {"file": text, **given(file_name=file_name, description=description)}
        return self._transport.send("PATCH", _config("POLICY", None), body)

    def delete(self, kind: str, name: str) -> Any:
        """Remove one object."""
        return self._transport.send("DELETE", _config(kind, name), {})

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
        """How it was changed, the newest first."""
        query = {
            "omit_data": not with_data,
            "order": "DESC",
            "limit": limit,
            "offset": offset,
            **given(config_types=list(kinds), name=name, revision=revision),
        }
        return self._transport.get(path_of("configs", "history"), query)["configs"]

    def diff(self, kind: str, before: int, after: int) -> Any:
        """Two revisions, and the `differences` between them."""
        query = {"config_type": kind, "first_revision": before, "second_revision": after}
        return self._transport.get(path_of("configs", "diff"), query)

    def rollback(self, kind: str, revision: int) -> Any:
        """Configure a kind as it was right after a revision."""
        body = {"config_type": kind, "revision": revision}
        return self._transport.send("POST", path_of("configs", "history", "rollback"), body)


class Audit:
    """Who changed what, when, from where."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self,
        *,
        subject: str | None = None,
        user: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> AuditList:
        """The latest first; `before` is the number of an entry, to go on from there."""
        query = {"limit": limit, **given(subject=subject, user=user, before=before)}
        answer = self._transport.get(path_of("audit"), query)
        return answer["entries"] if isinstance(answer, dict) else answer


def _config(kind: str, name: str | None) -> str:
    return path_of("configs", kind.lower(), *([] if name is None else [name]))
