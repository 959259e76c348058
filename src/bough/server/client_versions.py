"""Clients that say how old they are: those that are too old are refused, others are told."""

from __future__ import annotations

import base64
from typing import cast

from bough.control.config.service_settings import read_version
from bough.control.setup_cache import Setup
from bough.control.site import Site
from bough.errors import Invalid
from bough.model.settings import ServiceSettings
from bough.server.authenticator import Connection
from bough.version import VERSION

VERSION_HEADER = "x-osmo-client-version"
#: Where an answer says which version there is, and why that matters; in base64, as it has lines.
NEWEST_HEADER = "x-osmo-service-version"
WARNING_HEADER = "x-osmo-warning"
#: What is said to a client, in the scope of its request: headers of the answer.
SAID = "bough.said"


def check_client(site: Site, connection: Connection, setup: Setup | None = None) -> None:
    """Refuse a client that is older than those that are supported; tell it of a newer one.

    setup:  the latest one, for callers that have it.
    """
    said = connection.headers.get(VERSION_HEADER)
    has = None if said is None else read_version(said)
    if said is None or has is None:
        return
    settings = (setup or site.kept.latest_setup(site.store)).service
    least = settings.min_supported_version
    if least is not None and has < (read_version(least) or has):
        raise Invalid(
            f"This client is too old: it is {said}, and at least {least} is needed.",
            hint=_remedy(settings),
        )
    newest = settings.latest_version
    if newest is not None and has < (read_version(newest) or has):
        text = f"WARNING: there is a newer client, {newest}; this is {said}. {_remedy(settings)}"
        cast("dict[str, object]", connection.scope)[SAID] = [
            (NEWEST_HEADER.encode(), newest.encode()),
            (WARNING_HEADER.encode(), base64.b64encode(text.strip().encode())),
        ]


def newest_version(site: Site) -> str:
    """The version that clients should have."""
    return site.kept.latest_setup(site.store).service.latest_version or VERSION


def _remedy(settings: ServiceSettings) -> str:
    address = settings.client_install_url
    return "" if address is None else f"get a newer one at {address}"
