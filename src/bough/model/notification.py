"""What users are told outside of the server, by which way, and where that may go."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from bough.model.pool import Json


class Channel(StrEnum):
    """A way to tell a user."""

    EMAIL = "email"
    #: A webhook that takes what Slack's take.
    SLACK = "slack"
    #: A webhook that takes what happened as JSON.
    WEBHOOK = "webhook"


#: The credential that has the address of a webhook, which is secret, in its part `url`.
CREDENTIALS = {Channel.SLACK: "slack-webhook", Channel.WEBHOOK: "webhook"}
URL_PART = "url"
_PORTS = {"https": 443, "http": 80}


class EmailSender(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How e-mail is sent, and which addresses may get it."""

    server: str
    sender: str
    #: Users are written to at these domains, users without one at the first of them.
    domains: tuple[str, ...]
    port: int = 587
    #: `starttls`, `tls` from the first byte, or `none`.
    security: str = "starttls"
    user: str | None = None
    #: A file with the password alone.
    password_file: str | None = None


class NotificationRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an administrator lets the server send, and where to."""

    email: EmailSender | None = None
    #: Where webhooks may be, as `https://hooks.example.com` with its port if that is another one.
    webhooks: tuple[str, ...] = ()

    @property
    def anything(self) -> bool:
        """Whether anything is sent at all."""
        return self.email is not None or bool(self.webhooks)

    def address_of(self, user: str) -> str | None:
        """The e-mail address of a user; `None`: there is none that may be written to."""
        if self.email is None or not self.email.domains:
            return None
        name, at, domain = user.rpartition("@")
        if not at:
            return f"{user}@{self.email.domains[0]}"
        return user if name and domain.lower() in self.email.domains else None

    def url_fault(self, url: str) -> str | None:
        """Why nothing is sent to a URL; `None`: something is."""
        origin = origin_of(url)
        if origin is None:
            return "it is no URL of a webhook, such as https://hooks.example.com/path"
        if origin not in {origin_of(each) for each in self.webhooks}:
            known = ", ".join(self.webhooks) or "none"
            return f"an administrator has not allowed {origin}; allowed are: {known}"
        return None


def origin_of(url: str) -> str | None:
    """Scheme, host and port of a URL without anything that could mislead; `None`: it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    plain = url.isascii() and url.isprintable() and not set(url) & set(' \\\t"<>')
    if not plain or port is None or not parts.hostname or "@" in parts.netloc:
        return None
    return f"{parts.scheme}://{parts.hostname.lower()}:{port}"


class Notification(msgspec.Struct, frozen=True):
    """Something to tell a user, until it was told."""

    user: str
    channel: Channel
    #: One line, and all of it for programs.
    title: str
    data: dict[str, Json]
    created_ms: int
    due_ms: int
    attempts: int = 0
    error: str | None = None
    number: int = 0


class Sender(Protocol):
    """Sends what is to be told; raises OSError if it could not."""

    def send(self, channel: Channel, target: str, title: str, data: dict[str, Json]) -> None:
        """Tell one user, at an address that was checked."""
        ...
