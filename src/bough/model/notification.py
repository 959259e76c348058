"""Notifications of users by e-mail and webhooks, and the addresses that are allowed."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

import msgspec

from bough.model.pool import Json


class Channel(StrEnum):
    """How a notification is sent."""

    EMAIL = "email"
    #: A webhook that accepts messages in Slack's format.
    SLACK = "slack"
    #: A webhook that accepts the event as JSON.
    WEBHOOK = "webhook"


#: The credential whose part `url` has the address of the webhook, which is a secret.
CREDENTIALS = {Channel.SLACK: "slack-webhook", Channel.WEBHOOK: "webhook"}
URL_PART = "url"
_PORTS = {"https": 443, "http": 80}


class EmailSender(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How e-mail is sent, and which addresses may get it."""

    server: str
    sender: str
    #: E-mail goes to these domains only; to the first one for users whose name has no domain.
    domains: tuple[str, ...]
    port: int = 587
    #: `starttls`, `tls` from the first byte, or `none`.
    security: str = "starttls"
    user: str | None = None
    #: A file that contains only the password.
    password_file: str | None = None


class NotificationRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the administrator allows the server to send, and where."""

    email: EmailSender | None = None
    #: Allowed origins of webhooks, such as `https://hooks.example.com`, with an unusual port.
    webhooks: tuple[str, ...] = ()

    @property
    def anything(self) -> bool:
        """Whether anything is sent at all."""
        return self.email is not None or bool(self.webhooks)

    def address_of(self, user: str) -> str | None:
        """The e-mail address of a user; `None`: the user has none that is allowed."""
        if self.email is None or not self.email.domains:
            return None
        name, at, domain = user.rpartition("@")
        if not at:
            return f"{user}@{self.email.domains[0]}"
        return user if name and domain.lower() in self.email.domains else None

    def url_fault(self, url: str) -> str | None:
        """Why notifications cannot be sent to a URL; `None`: they can."""
        origin = origin_of(url)
        if origin is None:
            return "it is not a URL of a webhook, such as https://hooks.example.com/path"
        if origin not in {origin_of(each) for each in self.webhooks}:
            known = ", ".join(self.webhooks) or "none"
            return f"an administrator has not allowed {origin}; allowed are: {known}"
        return None


def origin_of(url: str) -> str | None:
    """Scheme, host and port of a plain URL; `None` for anything else, as it could mislead."""
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
    """A notification that has not been sent yet."""

    user: str
    channel: Channel
    #: A line for people, and the whole event for programs.
    title: str
    data: dict[str, Json]
    created_ms: int
    due_ms: int
    attempts: int = 0
    error: str | None = None
    number: int = 0


class Receiver(NamedTuple):
    """A user, by one channel."""

    user: str
    channel: Channel


class Sender(Protocol):
    """Sends notifications; raises OSError or ValueError if that fails."""

    def send(self, channel: Channel, target: str, title: str, data: dict[str, Json]) -> None:
        """Send to one user, at an address that was checked."""
        ...
