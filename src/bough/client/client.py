"""The client: where the server is, and what can be asked of it, subject by subject."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from bough.api.system import EventLine, HealthAnswer, VersionAnswer
from bough.client.addresses import given, path_of
from bough.client.login import find_login, is_stored, keep_known
from bough.client.server_proof import KnownServer
from bough.client.transport import Transport

if TYPE_CHECKING:
    from bough.api.nodes import UsageReport
    from bough.client.apps import Apps
    from bough.client.configs import Audit, Configs
    from bough.client.data import PoolData
    from bough.client.history_export import History
    from bough.client.nodes import NodeResources, Nodes
    from bough.client.people import Credentials, OwnProfile, Tokens, Users
    from bough.client.pools import Cohorts, Pools, Queues, Subpools
    from bough.client.sessions import Sessions
    from bough.client.workflows import Tasks, Workflows

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
        known: KnownServer | None = None,
    ) -> None:
        """`known` is what is known of the server: it must prove that before it is sent a token."""
        unproven = False
        if server is None:
            found = find_login()
            server, token, user = found.server, token or found.token, user or found.user
            known = known or found.known
            unproven = known is None and is_stored(found)
        self._transport = Transport(server, token, user, timeout_s, known)
        if unproven and (seen := self._transport.learn_server()) is not None:
            # It was stored by a version that asked for no key, or for a server that had none.
            keep_known(seen)

    @property
    def server(self) -> str:
        """The address of the server."""
        return self._transport.server

    def learn_server(self) -> KnownServer | None:
        """What can be known of a server that was not met before; `None`: it has no key."""
        return self._transport.learn_server()

    @cached_property
    def pools(self) -> Pools:
        """Top-level pools."""
        from bough.client.pools import Pools  # noqa: PLC0415  a command needs one or two subjects

        return Pools(self._transport)

    @cached_property
    def subpools(self) -> Subpools:
        """Parts of pools with a quota of their own."""
        from bough.client.pools import Subpools  # noqa: PLC0415

        return Subpools(self._transport)

    @cached_property
    def apps(self) -> Apps:
        """Workflow files that the server keeps."""
        from bough.client.apps import Apps  # noqa: PLC0415

        return Apps(self._transport)

    @cached_property
    def cohorts(self) -> Cohorts:
        """The tree above the pools."""
        from bough.client.pools import Cohorts  # noqa: PLC0415

        return Cohorts(self._transport)

    @cached_property
    def queues(self) -> Queues:
        """The quota tree as it is inside."""
        from bough.client.pools import Queues  # noqa: PLC0415

        return Queues(self._transport)

    @cached_property
    def resources(self) -> NodeResources:
        """Nodes, for users."""
        from bough.client.nodes import NodeResources  # noqa: PLC0415

        return NodeResources(self._transport)

    @cached_property
    def nodes(self) -> Nodes:
        """Nodes, for administrators."""
        from bough.client.nodes import Nodes  # noqa: PLC0415

        return Nodes(self._transport)

    @cached_property
    def workflows(self) -> Workflows:
        """Submitted work."""
        from bough.client.workflows import Workflows  # noqa: PLC0415

        return Workflows(self._transport)

    @cached_property
    def sessions(self) -> Sessions:
        """Sessions with tasks that run."""
        from bough.client.sessions import Sessions  # noqa: PLC0415

        return Sessions(self._transport)

    @cached_property
    def tasks(self) -> Tasks:
        """The tasks of all workflows."""
        from bough.client.workflows import Tasks  # noqa: PLC0415

        return Tasks(self._transport)

    @cached_property
    def data(self) -> PoolData:
        """The data of pools."""
        from bough.client.data import PoolData  # noqa: PLC0415

        return PoolData(self._transport)

    @cached_property
    def configs(self) -> Configs:
        """Configuration by kind, and its changes."""
        from bough.client.configs import Configs  # noqa: PLC0415

        return Configs(self._transport)

    @cached_property
    def audit(self) -> Audit:
        """All changes."""
        from bough.client.configs import Audit  # noqa: PLC0415

        return Audit(self._transport)

    @cached_property
    def history(self) -> History:
        """Finished workflows, to be kept elsewhere."""
        from bough.client.history_export import History  # noqa: PLC0415

        return History(self._transport)

    @cached_property
    def profile(self) -> OwnProfile:
        """The user's settings and rights."""
        from bough.client.people import OwnProfile  # noqa: PLC0415

        return OwnProfile(self._transport)

    @cached_property
    def credentials(self) -> Credentials:
        """Secrets for the user's workflows."""
        from bough.client.people import Credentials  # noqa: PLC0415

        return Credentials(self._transport)

    @cached_property
    def tokens(self) -> Tokens:
        """Personal access tokens."""
        from bough.client.people import Tokens  # noqa: PLC0415

        return Tokens(self._transport)

    @cached_property
    def users(self) -> Users:
        """All users."""
        from bough.client.people import Users  # noqa: PLC0415

        return Users(self._transport)

    def version(self) -> VersionAnswer:
        """The version of the server."""
        return self._transport.get(VersionAnswer, path_of("version"))

    def health(self) -> HealthAnswer:
        """Whether the server can answer."""
        return self._transport.get(HealthAnswer, "/health")

    def metrics(self) -> str:
        """Metrics in the text format of Prometheus."""
        return self._transport.text("/metrics")

    def usage(
        self, *, since: str = "7d", until: str | None = None, by: str = "pool"
    ) -> UsageReport:
        """GPU-hours from a time on, or of the last days (`7d`), by `pool` or by `user`."""
        from bough.api.nodes import UsageReport  # noqa: PLC0415

        query = {"since": since, "by": by, **given(until=until)}
        return self._transport.get(UsageReport, path_of("usage"), query)

    def events(self, after: int | None = None) -> Iterator[EventLine]:
        """Events as they happen; first those after an event by its number."""
        headers = {"Accept": "text/event-stream"}
        if after is not None:
            headers["Last-Event-ID"] = str(after)
        data: list[str] = []
        for line in self._transport.lines(path_of("events"), headers=headers):
            text = line.rstrip("\r\n")
            if not text and data:
                yield self._transport.decode(EventLine, "\n".join(data).encode())
                data = []
            elif text.startswith("data:"):
                data.append(text.removeprefix("data:").removeprefix(" "))
