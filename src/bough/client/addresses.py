"""The address of a server, parts of it, and the proxy that the environment names for it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bough.errors import Invalid

#: A list is repeated, a boolean is a word.
Parameter = str | int | Sequence[str]
Query = Mapping[str, Parameter]
#: Characters that stand for themselves in every part of an address.
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PORTS = {"http": 80, "https": 443}


class Address(NamedTuple):
    """The address of a server."""

    scheme: str
    host: str
    port: int
    #: The beginning of every path; without a slash at its end.
    base: str
    #: All of it, as people write it.
    text: str

    @property
    def authority(self) -> str:
        """The host, and the port where it is not the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


class Proxy(NamedTuple):
    """A proxy that passes requests on."""

    host: str
    port: int
    #: `user:password`, where its address has them.
    user: str = ""


def read_address(server: str) -> Address:
    """The parts of an address like `http://host:8265/base`; the scheme may be left out."""
    scheme, separator, rest = server.strip().partition("://")
    if not separator:
        scheme, rest = "http", server.strip()
    scheme = scheme.lower()
    authority, _, path = rest.partition("?")[0].partition("#")[0].partition("/")
    host, port = _split_port(authority.rpartition("@")[2])
    if scheme not in _PORTS or not host or not host.isprintable() or " " in host:
        raise Invalid(f"{server!r} is not the address of a server, like http://127.0.0.1:8265.")
    if port and not (port.isdecimal() and int(port) < 65_536):
        raise Invalid(f"{server!r} has no valid port.")
    base = f"/{quote(path.strip('/'), '/%')}" if path.strip("/") else ""
    found = Address(scheme, host, int(port) if port else _PORTS[scheme], base, "")
    return found._replace(text=f"{scheme}://{found.authority}{base}")


def find_proxy(address: Address, environment: Mapping[str, str] = os.environ) -> Proxy | None:
    """The proxy for a server: of HTTP_PROXY or HTTPS_PROXY by its scheme, unless NO_PROXY names it.

    Small letters count as well, and before capitals. This machine itself is never asked through a
    proxy.
    """
    name = f"{address.scheme}_proxy"
    written = environment.get(name) or environment.get(name.upper())
    if not written or _is_direct(address, environment):
        return None
    scheme, _, rest = written.rpartition("://")
    user, _, authority = rest.rstrip("/").rpartition("@")
    host, port = _split_port(authority)
    if scheme not in ("", "http") or not host or not (port or "80").isdecimal():
        raise Invalid(f"{name.upper()} must be like http://proxy:3128, not {written[:80]!r}.")
    return Proxy(host, int(port or 80), user)


def path_of(*segments: str) -> str:
    """A path below `/api`; every segment is quoted."""
    return "/api/" + "/".join(quote(segment) for segment in segments)


def quote(text: str, safe: str = "") -> str:
    """Text as it stands in an address."""
    plain = _PLAIN | frozenset(safe.encode())
    return "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in text.encode())


def query_text(query: Query | None) -> str:
    """Query parameters as they stand at the end of an address."""
    pairs = [
        f"{quote(name)}={quote(str(each).lower() if isinstance(each, bool) else str(each))}"
        for name, value in (query or {}).items()
        for each in ((value,) if isinstance(value, (str, int)) else value)
    ]
    return f"?{'&'.join(pairs)}" if pairs else ""


def given(**values: Parameter | None) -> dict[str, Parameter]:
    """The query parameters that were given: not `None`, and no empty list."""
    return {
        name: value for name, value in values.items() if value is not None and value not in ("", [])
    }


def _is_direct(address: Address, environment: Mapping[str, str]) -> bool:
    """Whether a server is this machine, or NO_PROXY names it or a domain above it."""
    host = address.host.lower()
    if host in ("localhost", "::1") or host.startswith("127."):
        return True
    exceptions = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    for each in exceptions.lower().split(","):
        name, port = _split_port(each.strip().lstrip("."))
        if name == "*":
            return True
        if name and port in ("", str(address.port)) and f".{host}".endswith(f".{name}"):
            return True
    return False


def _split_port(authority: str) -> tuple[str, str]:
    if authority.startswith("["):
        host, _, port = authority[1:].partition("]")
        return host, port.removeprefix(":")
    host, _, port = authority.partition(":")
    return host, port
