"""The client: where the server is, and what can be asked of it, subject by subject.

Must not know HTTP, nor any subject's details.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bough.client.configs import Audit, Configs
from bough.client.login import find_login
from bough.client.people import Credentials, Profile, Tokens, Users
from bough.client.pools import Cohorts, Nodes, Pools, Queues, Resources, Subpools
from bough.client.transport import Transport, given, path_of
from bough.client.workflows import Tasks, Workflows

if TYPE_CHECKING:
    from bough.client.types import Event, UsageReport

TIMEOUT_S = 60.0


class Client:
    """A server, asked as one user.

    Without a server, the one that `bough login` stored, or BOUGH_SERVER and BOUGH_TOKEN, is used.
    """

    def __init__(
        self,
        server: str | None = None,
        token: str | None = None,
        *,
        user: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        if server is None:
            found = find_login()
            server, token, user = found.server, token or found.token, user or found.user
        transport = Transport(server, token, user, timeout_s)
        self._transport = transport
        self.pools = Pools(transport)
        self.subpools = Subpools(transport)
        self.cohorts = Cohorts(transport)
        self.queues = Queues(transport)
        self.resources = Resources(transport)
        self.nodes = Nodes(transport)
        self.workflows = Workflows(transport)
        self.tasks = Tasks(transport)
        self.configs = Configs(transport)
        self.audit = Audit(transport)
        self.profile = Profile(transport)
        self.credentials = Credentials(transport)
        self.tokens = Tokens(transport)
        self.users = Users(transport)

    @property
    def server(self) -> str:
        """The address of the server."""
        return self._transport.server

    def version(self) -> dict[str, Any]:
        """The version of the server, as `major`, `minor`, `revision`."""
        return self._transport.get(path_of("version"))

    def health(self) -> Any:
        """Whether the server is well, in its own words."""
        return self._transport.get("/health")

    def metrics(self) -> str:
        """The server's figures, as Prometheus reads them."""
        return self._transport.text("/metrics")

    def usage(
        self, *, since: str = "7d", until: str | None = None, by: str = "pool"
    ) -> UsageReport:
        """GPU-hours from a time on, or of the last days (`7d`), by `pool` or by `user`."""
        query = {"since": since, "by": by, **given(until=until)}
        return self._transport.get(path_of("usage"), query)

    def events(self, after: str | None = None) -> Iterator[Event]:
        """What happens, as it happens; first what happened after the event of an identifier."""
        headers = {"Accept": "text/event-stream"}
        if after is not None:
            headers["Last-Event-ID"] = after
        event: dict[str, str] = {}
        for line in self._transport.lines(path_of("events"), headers=headers):
            text = line.rstrip("\r\n")
            if not text:
                if "data" in event:
                    yield _event(event)
                event = {}
                continue
            field, _, value = text.partition(":")
            value = value.removeprefix(" ")
            if field == "data" and "data" in event:
                value = f"{event['data']}\n{value}"
            if field:
                event[field] = value


def _event(fields: dict[str, str]) -> Event:
    try:
        data = json.loads(fields["data"])
    except ValueError:
        data = fields["data"]
    return {"id": fields.get("id", ""), "event": fields.get("event", "message"), "data": data}
