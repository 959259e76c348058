"""The site as the processes of a server see it: the same settings, each with its own bell."""

from __future__ import annotations

from collections.abc import Callable

from bough.control.credential_keys import CredentialKeys
from bough.control.site import Clock, Site
from bough.server.backend_file import chosen_backends
from bough.server.senders import read_rules
from bough.server.settings import Settings
from bough.store import Store


def make_site(
    settings: Settings,
    store: Store,
    clock: Clock,
    wake: Callable[[], None],
    refusal: Callable[[], str],
) -> Site:
    """Make the site from the settings."""
    return Site(
        store,
        clock,
        namespace=settings.namespace,
        wake=wake,
        refusal=refusal,
        abilities={each.name: each.abilities(settings) for each in chosen_backends(settings)},
        credential_keys=CredentialKeys(settings.credential_key_file),
        notifications=read_rules(settings.notifications),
    )
