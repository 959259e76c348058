"""What was asked of a bed's apiserver, by its own log: the judge of what happened how often."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple


class Asked(NamedTuple):
    """One request that was answered."""

    user: str
    verb: str
    #: As in paths: `pods`, `pods/binding`.
    resource: str
    namespace: str
    name: str
    status: int
    #: What was sent, where it was an object.
    sent: dict[str, Any]
    #: What was answered, where that is kept.
    answered: dict[str, Any]

    @property
    def succeeded(self) -> bool:
        """Whether it changed something."""
        return 200 <= self.status < 300


#: How the line of an event begins.
_BEGIN = b'{"kind":"Event","apiVersion":"audit.k8s.io'


def read_audit(log: Path) -> list[Asked]:
    """All requests that changed something or tried to, in the order of their answers."""
    return list(iterate_audit(log))


def iterate_audit(log: Path, namespace: str = "") -> Iterator[Asked]:
    """The same one after the other, or those of one namespace: a log can be long."""
    if not log.exists():
        return
    named = f'"namespace":"{namespace}"'.encode() if namespace else b""
    with log.open("rb") as lines:
        for line in lines:
            if named in line and line.strip():
                # A killed apiserver leaves the beginning of a line, and the next one goes on there.
                asked = _asked(json.loads(line[max(0, line.rfind(_BEGIN)) :]))
                if not namespace or asked.namespace == namespace:
                    yield asked


def _asked(event: dict[str, Any]) -> Asked:
    on = event.get("objectRef", {})
    below = on.get("subresource")
    answered = event.get("responseObject") or {}
    resource = on.get("resource", "")
    return Asked(
        user=event["user"]["username"],
        verb=event["verb"],
        resource=f"{resource}/{below}" if below else resource,
        namespace=on.get("namespace", ""),
        name=on.get("name") or answered.get("metadata", {}).get("name", ""),
        status=event.get("responseStatus", {}).get("code", 0),
        sent=event.get("requestObject") or {},
        answered=answered,
    )
