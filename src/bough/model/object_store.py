"""Object stores that URLs name, and the credentials of users that open them.

    s3://BUCKET/path              Amazon S3, and everything that speaks its protocol
    gs://BUCKET/path              Google Cloud Storage
    azure://ACCOUNT/CONTAINER/path  Azure Blob Storage

A credential of type DATA opens what is below its `endpoint`, such as `s3://BUCKET` or
`s3://BUCKET/path`; of several, the longest counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from bough.model.notification import origin_of
from bough.model.pool_data import data_path_fault

S3, GS, AZURE = "s3", "gs", "azure"
SCHEMES = (S3, GS, AZURE)
#: How many names come before the path, and an example of such a URL.
_CONTAINERS = {S3: 1, GS: 1, AZURE: 2}
_FORMS = {S3: "s3://BUCKET/path", GS: "gs://BUCKET/path", AZURE: "azure://ACCOUNT/CONTAINER/path"}
_STYLES = ("", "path", "virtual", "auto")


class StoreUrl(NamedTuple):
    """The bucket and path of a URL; an empty path is the whole bucket."""

    scheme: str
    #: The bucket; for Azure the account and the container.
    container: str
    path: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.container}/{self.path}"


class StoreCredential(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A credential for a store, in the parts that users give. None of it is ever shown."""

    #: The URL that it opens, with everything below.
    endpoint: str
    #: Without both, requests are not signed: for public buckets.
    access_key_id: str = ""
    access_key: str = ""
    #: Belongs to a temporary key.
    session_token: str = ""
    region: str = ""
    #: The address of the store, unless it is the provider's own.
    override_url: str = ""
    #: Whether the bucket is part of the host name (`virtual`) or of the path.
    addressing_style: str = ""

    @property
    def signs(self) -> bool:
        """Whether it has anything to sign requests with."""
        return bool(self.access_key)

    def __repr__(self) -> str:
        return f"StoreCredential({self.endpoint!r}, …)"

    __str__ = __repr__


def is_store_url(url: str) -> bool:
    """Whether a URL names an object store."""
    return url.partition("://")[0].lower() in SCHEMES


def read_store_url(url: str) -> StoreUrl | None:
    """Parse a URL of a store; `None`: it is another URL, or names no bucket."""
    scheme, separator, rest = url.partition("://")
    names = _CONTAINERS.get(scheme.lower())
    if not separator or names is None:
        return None
    parts = rest.split("/", names)
    if len(parts) < names or not all(parts[:names]):
        return None
    path = parts[names] if len(parts) > names else ""
    return StoreUrl(scheme.lower(), "/".join(parts[:names]), path.rstrip("/"))


def store_url_fault(url: str) -> str | None:
    """What is wrong with the URL of a store; `None`: nothing is."""
    form = _FORMS[url.partition("://")[0].lower()]
    found = read_store_url(url)
    if found is None:
        return f"it names no bucket; write {form}"
    if "{{" in found.container:
        return "its bucket cannot be a placeholder, because credentials are found by it"
    plain = found.container.isascii() and found.container.isprintable()
    if not plain or set(found.container) & set(' %?#\\"<>@:'):
        return f"{found.container[:80]!r} cannot be the name of a bucket"
    return data_path_fault(found.path) if found.path else None


def find_endpoint(url: str, endpoints: Iterable[str]) -> str | None:
    """The endpoint among those of the credentials that opens a URL: the longest prefix."""
    found = read_store_url(url)
    if found is None:
        return None
    text = str(found).rstrip("/") + "/"
    fitting = [each for each in endpoints if "://" in each and text.startswith(_normal(each))]
    return max(fitting, key=lambda each: (len(_normal(each)), each), default=None)


def read_store_credential(payload: Mapping[str, str]) -> StoreCredential | str:
    """Read a credential of type DATA; a text says what is wrong, without quoting any value."""
    known = StoreCredential.__struct_fields__
    unknown = sorted(set(payload) - set(known))
    if unknown:
        return f"has a part {unknown[0][:80]!r}; its parts can be: {', '.join(known)}"
    if not payload.get("endpoint"):
        return "has no endpoint, such as s3://BUCKET"
    credential = StoreCredential(**payload)
    scheme = credential.endpoint.partition("://")[0].lower()
    if scheme not in SCHEMES or "://" not in credential.endpoint:
        return f"has the endpoint {credential.endpoint[:80]!r}; write {_FORMS[S3]}"
    fault = _key_fault(scheme, credential)
    if fault is not None:
        return fault
    url = credential.override_url
    if url and (origin_of(url) is None or urlsplit(url).scheme not in ("http", "https")):
        return "has an override_url that is not a URL like https://host:port"
    if credential.addressing_style not in _STYLES:
        return "has an addressing_style that is none of path, virtual, auto"
    return credential


def endpoint_fault(credential: StoreCredential, allowed: Iterable[str]) -> str | None:
    """Why the server refuses the store address of a credential; `None`: it accepts it.

    The providers' own addresses are always allowed. Others could be services inside the server's
    network, so the administrator lists them.
    """
    if not credential.override_url:
        return None
    origin = origin_of(credential.override_url)
    if origin in {origin_of(each) for each in allowed}:
        return None
    return (
        f"says that its store is at {origin}, which an administrator has not allowed "
        "(--store-endpoint)"
    )


def _key_fault(scheme: str, credential: StoreCredential) -> str | None:
    if scheme == AZURE:
        # The account is in the URL.
        given = credential.access_key_id or credential.session_token
        return "has no access_key" if given and not credential.access_key else None
    if bool(credential.access_key_id) != bool(credential.access_key):
        return f"has no {'access_key' if credential.access_key_id else 'access_key_id'}"
    if credential.session_token and not credential.access_key:
        return "has a session_token and no access_key"
    return None


def _normal(endpoint: str) -> str:
    scheme, _, rest = endpoint.partition("://")
    inner = rest.strip("/")
    return f"{scheme.lower()}://{inner}/" if inner else f"{scheme.lower()}://"
