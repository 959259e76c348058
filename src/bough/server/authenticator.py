"""The user of a request: by a personal token, by a short-lived pass, or by a trusted proxy.

Some clients need tokens that carry their own expiry. A pass is one: it is signed by this site and
made from a personal token, which is looked up every time.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from ipaddress import ip_address

import msgspec
from litestar import Request
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.handlers import HTTPRouteHandler

from bough.control.people import access, pass_key
from bough.control.site import Site
from bough.errors import Unauthenticated
from bough.model.access import ANONYMOUS, Actor
from bough.server.settings import Network

#: How long a pass is valid.
PASS_S = 60 * 60
USER_HEADER = "x-osmo-user"
ROLES_HEADER = "x-osmo-roles"
_FORWARDED_HEADER = "x-forwarded-for"
_HEADER = {"alg": "HS256", "typ": "JWT"}

#: A connection, and a request: the guard sets the user, and nothing else of the framework is used.
Connection = ASGIConnection[HTTPRouteHandler, Actor, object, State]
Visit = Request[Actor, object, State]


class _Claims(msgspec.Struct, frozen=True):
    """What a pass says."""

    sub: str
    name: str
    #: The identities of the token that it was made from and of its user. Names are given again.
    tid: str
    uid: str
    exp: int
    iat: int


#: Made once: msgspec must not see a type for the first time in two threads at once.
_CLAIMS = msgspec.json.Decoder(_Claims)


class Pass(msgspec.Struct, frozen=True):
    """A pass, and when it ends."""

    text: str
    expires_ms: int


class Authenticator:
    """Finds the user of each request."""

    def __init__(self, site: Site, trusted_proxies: tuple[Network, ...] = ()) -> None:
        self.site = site
        self._trusted = trusted_proxies
        #: The key that signs passes, as it is stored and as it is.
        self._key = ("", b"")

    def recall(self, connection: Connection, counted: int) -> tuple[int, Actor] | None:
        """The user of a token and when it ends, if that is known under this counter of rights."""
        shown = read_bearer(connection.headers.get("authorization"))
        if shown is None or shown.count(".") == 2:
            return None
        origin, _ = self._origin(connection)
        return access.recall(self.site, shown, counted, origin)

    def identify(self, connection: Connection) -> Actor:
        """The user; anonymous where the request names none."""
        origin, trusted = self._origin(connection)
        shown = read_bearer(connection.headers.get("authorization"))
        if shown is not None:
            return self._by_secret(shown, origin)
        user = connection.headers.get(USER_HEADER) if trusted else None
        if user:
            return self._by_proxy(user, connection.headers.get(ROLES_HEADER), origin)
        return msgspec.structs.replace(ANONYMOUS, origin=origin)

    def make_pass(self, secret: str) -> Pass:
        """A pass in exchange for the secret of a token."""
        token, user = access.token_and_user(self.site, secret)
        now_s = self.site.clock.now_ms() // 1_000
        expires_s = min(now_s + PASS_S, token.expires_ms // 1_000)
        claims = _Claims(user.name, user.name, token.uuid, user.uuid, expires_s, now_s)
        signed = ".".join(_encoded(msgspec.json.encode(part)) for part in (_HEADER, claims))
        return Pass(f"{signed}.{self._signature(signed)}", expires_s * 1_000)

    def _origin(self, connection: Connection) -> tuple[str, bool]:
        """Where a request comes from, and whether what its headers say of that is believed."""
        origin = origin_of(connection)
        trusted = self._trusts(origin)
        if trusted:
            forwarded = connection.headers.get(_FORWARDED_HEADER, "").rpartition(",")[2].strip()
            origin = _short(forwarded) or origin
        return origin, trusted

    def _by_secret(self, shown: str, origin: str) -> Actor:
        if shown.count(".") == 2:
            return self._by_pass(shown, origin)
        return access.authenticate(self.site, shown, origin)

    def _by_pass(self, shown: str, origin: str) -> Actor:
        signed, _, signature = shown.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(signed).encode()):
            raise Unauthenticated("The token is not one of this server's; log in again.")
        claims = _read_claims(signed)
        if claims.exp * 1_000 <= self.site.clock.now_ms():
            raise Unauthenticated("The login has expired; log in again.")
        return access.authenticate_pass(self.site, claims.tid, claims.uid, origin)

    def _by_proxy(self, user: str, roles: str | None, origin: str) -> Actor:
        if roles is None:
            return access.recognise(self.site, user, origin)
        named = tuple(role.strip() for role in roles.split(",") if role.strip())
        return access.introduce(self.site, user, named, origin)

    def _trusts(self, origin: str) -> bool:
        if not self._trusted:
            return False
        try:
            address = ip_address(origin)
        except ValueError:
            return False
        return any(
            address.version == network.version and address in network for network in self._trusted
        )

    def _signature(self, signed: str) -> str:
        sealed, key = self._key
        found = pass_key.sealed_key(self.site)
        if sealed != found:
            # It is the first time, or another one was made since.
            key = pass_key.open_key(self.site, found)
            self._key = (found, key)
        return _encoded(hmac.digest(key, signed.encode(), hashlib.sha256))


def origin_of(connection: Connection) -> str:
    """The address that a request comes from."""
    client = connection.client
    return "" if client is None else client.host


def read_bearer(header: str | None) -> str | None:
    """The secret of a header; `None`: there is no such header."""
    if header is None:
        return None
    scheme, _, secret = header.partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise Unauthenticated("The Authorization header must be like: Bearer <token>.")
    return secret.strip()


def _read_claims(signed: str) -> _Claims:
    try:
        body = signed.partition(".")[2]
        padded = body + "=" * (-len(body) % 4)
        return _CLAIMS.decode(base64.urlsafe_b64decode(padded))
    except (ValueError, msgspec.MsgspecError):
        raise Unauthenticated("The token cannot be read; log in again.") from None


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _short(text: str) -> str:
    return text[:64] if text.isprintable() else ""
