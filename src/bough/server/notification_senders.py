"""Sends notifications: e-mail by SMTP, webhooks by HTTP. Addresses were checked before."""

from __future__ import annotations

import smtplib
import socket
import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from email.message import EmailMessage
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from bough.errors import Invalid
from bough.formats.yaml.documents import read_file
from bough.model.notification import Channel, EmailSender, NotificationRules, origin_of
from bough.model.pool import Json
from bough.version import VERSION

#: Timeout of each step of sending.
TIMEOUT_S = 10.0
#: Timeout of a whole exchange with a webhook, which may answer a byte at a time.
LONGEST_S = 20.0
SECURITIES = ("starttls", "tls", "none")


class NetworkSender:
    """Sends notifications over the network."""

    def __init__(self, rules: NotificationRules) -> None:
        self._rules = rules

    def send(self, channel: Channel, target: str, title: str, data: dict[str, Json]) -> None:
        """Send to one user; raises OSError or ValueError if that fails."""
        if channel is Channel.EMAIL:
            self._mail(target, title, data)
        elif channel is Channel.SLACK:
            message = str(data.get("message") or "")
            _post(target, {"text": f"{title}\n{message}" if message else title})
        else:
            _post(target, {"title": title, **data})

    def _mail(self, address: str, title: str, data: dict[str, Json]) -> None:
        rules = self._rules.email
        if rules is None:
            return
        message = EmailMessage()
        message["From"], message["To"] = rules.sender, address
        message["Subject"] = " ".join(f"[bough] {title}".split())
        lines = [f"{name}: {value}" for name, value in data.items() if value not in ("", None)]
        message.set_content("\n".join(lines) + "\n")
        try:
            with _connect(rules) as connection:
                if rules.user is not None:
                    connection.login(rules.user, _password(rules))
                connection.send_message(message)
        except smtplib.SMTPException as error:
            # It may quote the message, but never a password.
            raise OSError(f"the mail server says: {type(error).__name__}") from None


def _connect(rules: EmailSender) -> smtplib.SMTP:
    context = ssl.create_default_context()
    if rules.security == "tls":
        return smtplib.SMTP_SSL(rules.server, rules.port, timeout=TIMEOUT_S, context=context)
    connection = smtplib.SMTP(rules.server, rules.port, timeout=TIMEOUT_S)
    if rules.security == "starttls":
        connection.starttls(context=context)
    return connection


def _password(rules: EmailSender) -> str:
    return Path(rules.password_file or "").read_text(encoding="utf-8").strip()


def _post(url: str, body: dict[str, Json]) -> None:
    """Send JSON to a webhook. Redirects are not followed."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    connection = HTTPConnection(parts.hostname or "", parts.port or (443 if secure else 80))
    connection.default_port = 443 if secure else 80
    connection.timeout = TIMEOUT_S
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = {"Content-Type": "application/json", "User-Agent": f"bough/{VERSION}"}
    try:
        connection.connect()
        with _cut_off(connection.sock):
            if secure:
                context = ssl.create_default_context()
                name = parts.hostname
                connection.sock = context.wrap_socket(connection.sock, server_hostname=name)
            connection.request("POST", target, msgspec.json.encode(body), headers)
            status = connection.getresponse().status
    except HTTPException as error:
        raise OSError(f"the webhook gave no answer: {type(error).__name__}") from None
    finally:
        connection.close()
    if not 200 <= status < 300:
        raise OSError(f"the webhook answered {status}")


@contextmanager
def _cut_off(connection: socket.socket) -> Generator[None]:
    """Cut a connection off after `LONGEST_S`, however little arrives at a time."""
    # A copy, since the original becomes part of an encrypted one.
    copy = connection.dup()

    def cut() -> None:
        with suppress(OSError):
            copy.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(LONGEST_S, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        copy.close()


def read_rules(path: Path | None) -> NotificationRules:
    """Read the administrator's file that says what the server may send."""
    if path is None:
        return NotificationRules()
    documents = read_file(str(path))
    if len(documents) != 1:
        raise Invalid(f"{path}: notifications are one YAML document, not {len(documents)}.")
    try:
        rules = msgspec.convert(documents[0].value, NotificationRules)
    except msgspec.ValidationError as error:
        raise Invalid(f"{path}: {error}") from None
    _check(path, rules)
    return rules


def _check(path: Path, rules: NotificationRules) -> None:
    for each in rules.webhooks:
        if origin_of(each) is None or urlsplit(each).path not in ("", "/"):
            raise Invalid(
                f"{path}: webhooks: {each!r} must be a scheme and a host, as "
                "https://hooks.example.com, perhaps with a port."
            )
    email = rules.email
    if email is None:
        return
    if email.security not in SECURITIES:
        known = ", ".join(SECURITIES)
        raise Invalid(f"{path}: email.security is {email.security!r}, but must be one of {known}.")
    if not email.domains:
        raise Invalid(f"{path}: email.domains is empty; name the domains that may be written to.")
    if email.user is not None and email.password_file is None:
        raise Invalid(
            f"{path}: email.password_file is missing; it has the password of {email.user}."
        )
