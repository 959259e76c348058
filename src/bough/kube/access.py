"""Where the apiserver is, which certificates to trust, and how to prove who we are.

Files with certificates and tokens are read again when they change, because credentials that are
valid for an hour are replaced while a server runs for months.
"""

from __future__ import annotations

import os
import ssl
import tempfile
import threading
from typing import NamedTuple, Protocol
from urllib.parse import SplitResult, urlsplit

from bough.errors import Invalid


class KubeCredential(NamedTuple):
    """What proves who we are: a token, a certificate, or neither."""

    token: str = ""
    #: A certificate and its key as PEM; both are set, or neither is.
    certificate: str = ""
    key: str = ""


class CredentialSource(Protocol):
    """Provides the current credential."""

    def credential(self) -> KubeCredential:
        """The credential to use now; raises `Unauthenticated` if there is none."""
        ...

    def refused(self, credential: KubeCredential) -> bool:
        """The apiserver refused this credential; return whether another one can be had."""
        ...


class Text:
    """A fixed text, or the contents of a file that may change."""

    def __init__(self, text: str = "", path: str = "") -> None:
        self._text = text
        self._path = path
        self._seen: tuple[int, int, int] | None = None

    def read(self) -> str:
        """The current text."""
        if not self._path:
            return self._text
        try:
            at = os.stat(self._path)
            seen = (at.st_mtime_ns, at.st_ino, at.st_size)
            if seen != self._seen:
                with open(self._path, encoding="utf-8") as file:
                    self._text = file.read()
                self._seen = seen
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "not a text in UTF-8"
            raise Invalid(f"cannot read {self._path}: {why}") from None
        return self._text

    def forget(self) -> None:
        """Read the file again the next time, even if it seems unchanged."""
        self._seen = None


class FixedCredential:
    """A token and a certificate, fixed or from files."""

    def __init__(
        self, token: Text | None = None, certificate: Text | None = None, key: Text | None = None
    ) -> None:
        self._token = token or Text()
        self._certificate = certificate or Text()
        self._key = key or Text()

    def credential(self) -> KubeCredential:
        """The current credential, from the files as they are now."""
        return KubeCredential(
            self._token.read().strip(), self._certificate.read(), self._key.read()
        )

    def refused(self, credential: KubeCredential) -> bool:
        """Read the files again: a replaced one can have the same time and size as before."""
        for text in (self._token, self._certificate, self._key):
            text.forget()
        return self.credential() != credential


class Access:
    """Everything needed to reach one apiserver as one user."""

    def __init__(
        self,
        server: str,
        credentials: CredentialSource,
        authority: Text | None = None,
        *,
        tls_server_name: str = "",
        namespace: str = "default",
    ) -> None:
        self.address = read_address(server)
        self.credentials = credentials
        #: The certificates to trust; `None`: those that the operating system trusts.
        self._authority = authority
        self.tls_server_name = tls_server_name or self.address.hostname or ""
        #: The namespace of the kubeconfig context.
        self.namespace = namespace
        self._lock = threading.Lock()
        self._made_of: tuple[str, str, str] | None = None
        self._context: ssl.SSLContext | None = None

    def context(self, credential: KubeCredential) -> ssl.SSLContext | None:
        """How to verify the apiserver and which certificate to present; `None`: no TLS.

        The object stays the same until something changes: a connection with another one must not be
        reused.
        """
        if self.address.scheme == "http":
            return None
        with self._lock:
            trusted = self._authority.read() if self._authority is not None else ""
            made_of = (trusted, credential.certificate, credential.key)
            if self._context is None or made_of != self._made_of:
                self._context = _make_context(*made_of)
                self._made_of = made_of
            return self._context


def read_address(server: str) -> SplitResult:
    """Parse the address of an apiserver; plain HTTP is allowed on the loopback only."""
    try:
        address = urlsplit(server)
        _ = address.port
    except ValueError:
        address = urlsplit("")
    if address.scheme not in ("https", "http") or not address.hostname:
        raise Invalid(f"server: {server!r} is not an address such as https://10.0.0.1:6443")
    if address.scheme == "http" and address.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise Invalid(f"server: {server} is not encrypted; only https is, beyond the loopback")
    return address


def _make_context(trusted: str, certificate: str, key: str) -> ssl.SSLContext:
    """A TLS context that always verifies the other side."""
    try:
        context = ssl.create_default_context(cadata=trusted or None)
    except ssl.SSLError as error:
        raise Invalid(f"certificate-authority: no certificates in PEM: {error.reason}") from None
    # Python 3.13 requires extensions that the authorities of many clusters do not have.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    # OpenSSL reads client certificates only from files.
    if certificate:
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(f"{certificate}\n{key}\n")
            file.flush()
            try:
                context.load_cert_chain(file.name)
            except ssl.SSLError as error:
                why = error.reason or "they do not fit together"
                raise Invalid(f"client-certificate and client-key: {why}") from None
    return context
