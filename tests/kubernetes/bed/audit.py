"""What was asked of a bed's apiserver, by its own log: the judge of what happened how often."""

from __future__ import annotations

import json
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


def read_audit(log: Path) -> list[Asked]:
    """All requests that changed something or tried to, in the order of their answers."""
    if not log.exists():
        return []
    return [_asked(json.loads(line)) for line in log.read_bytes().splitlines() if line]


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
