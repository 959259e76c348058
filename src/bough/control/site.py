"""What use cases need from the world: store, clock, fresh identities, a bell for the loop."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import time_ns
from typing import Protocol

from bough.control.clock import SteadyClock
from bough.control.credential_keys import CredentialKeys
from bough.control.joined_submissions import JoinedSubmissions
from bough.control.setup_cache import Kept
from bough.model.access import RoleNames
from bough.model.backend import BackendAbilities
from bough.model.names import SHARED, QueueName
from bough.model.notification import NotificationRules
from bough.store import Store
from bough.store import settings as setting_store


class Clock(Protocol):
    """Says what time it is."""

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        ...


class Ids(Protocol):
    """Makes what must be new."""

    def uuid(self) -> str:
        """A new identity."""
        ...

    def secret(self) -> str:
        """An unguessable secret."""
        ...


#: The bits of a UUID that say of which version and variant it is, and all others.
_VERSION_7 = 0x7 << 76 | 0x2 << 62
_RANDOM = ~(0xF << 76 | 0x3 << 62)


class RandomIds:
    """The machine's own randomness."""

    def uuid(self) -> str:
        """A new identity, 32 characters: a UUID of version 7, which begins with the time.

        So new rows are neighbours in every index by identity, and a commit writes few pages.
        """
        value = (time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10))
        return f"{value & _RANDOM | _VERSION_7:032x}"

    def secret(self) -> str:
        """An unguessable secret of 256 bits."""
        return secrets.token_urlsafe(32)


def site_identity(site: Site) -> str:
    """The identity of what the database describes, the same for all servers on it."""
    with site.store.read() as connection:
        known = setting_store.get(connection, "site")
    if known is not None:
        return str(known)
    with site.store.write() as connection:
        return str(setting_store.claim(connection, "site", site.ids.uuid()))


def _no_bell() -> None:
    """No loop listens."""


def _no_refusal() -> str:
    """New work is always accepted."""
    return ""


@dataclass(frozen=True)
class Site:
    """Everything that a use case depends on."""

    store: Store
    clock: Clock = field(default_factory=SteadyClock)
    ids: Ids = field(default_factory=RandomIds)
    #: The namespace in the names of queues.
    namespace: str = "default"
    #: What the names of queues and roles begin with.
    prefix: str = "osmo"
    #: What backends can do for tasks, by their names; of others nothing special is known.
    abilities: Mapping[str, BackendAbilities] = field(default_factory=dict)
    #: Why no new work is accepted now; empty: it is.
    refusal: Callable[[], str] = _no_refusal
    #: What encrypts credentials.
    credential_keys: CredentialKeys = field(default_factory=CredentialKeys)
    #: What users may be told by e-mail and webhooks, and where.
    notifications: NotificationRules = field(default_factory=NotificationRules)
    #: What requests have read already.
    kept: Kept = field(default_factory=Kept)
    #: Submissions that are kept together.
    joined_submissions: JoinedSubmissions = field(default_factory=JoinedSubmissions)
    #: Rung after every change that may let something start.
    wake: Callable[[], None] = _no_bell

    @property
    def role_names(self) -> RoleNames:
        """The names of the roles that come with the product."""
        return RoleNames(self.prefix)

    def abilities_of(self, backend: str) -> BackendAbilities:
        """What a backend can do for tasks."""
        return self.abilities.get(backend, BackendAbilities())

    def is_placed_elsewhere(self, backend: str) -> bool:
        """Whether a scheduler of its cluster decides where the tasks of a backend run."""
        return not self.abilities_of(backend).places_tasks

    def pool_queue(self, pool: str) -> str:
        """The inner node that a pool is."""
        return str(QueueName(self.namespace, pool, prefix=self.prefix))

    def leaf_queue(self, pool: str, subpool: str | None = None) -> str:
        """The leaf for what is submitted to a pool itself, or to a subpool."""
        return str(QueueName(self.namespace, pool, subpool or SHARED, self.prefix))
