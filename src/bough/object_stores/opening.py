"""Opens a store by its URL and a credential."""

# Types are checked without the library as well, which only servers need.
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from bough.model.object_store import AZURE, GS, StoreCredential, StoreUrl
from bough.object_stores.failures import StoreFailed
from bough.object_stores.s3_requests import S3Requests

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

_Item = TypeVar("_Item")
#: The region that Amazon assumes if none is named, and that Google accepts with S3 keys.
REGION, GS_REGION = "us-east-1", "auto"
GS_URL = "https://storage.googleapis.com"
#: A placeholder for requests that are not signed; valid as a key of Azure, too.
_NO_KEY = "none"
#: Timeout of one request including its whole answer, so it bounds how slow a store may be.
_REQUEST_S = 300
_RETRIES: RetryConfig = {
    "max_retries": 5,
    "retry_timeout": timedelta(seconds=120),
    "backoff": {
        "init_backoff": timedelta(milliseconds=200),
        "max_backoff": timedelta(seconds=5),
        "base": 2,
    },
}


def open_store(url: StoreUrl, credential: StoreCredential) -> ObjectStore:
    """Open the bucket of a URL; sends no request yet."""
    try:
        if url.scheme == AZURE:
            return _open_azure(url, credential)
        if url.scheme == GS and not credential.access_key_id:
            return _open_google(url, credential)
        return _open_s3(url, credential)
    except Exception:
        # The library's message quotes the parts that it does not understand.
        raise StoreFailed(
            f"{url} could not be opened: a part of its credential is not what the store needs"
        ) from None


def s3_requests(url: StoreUrl, credential: StoreCredential) -> S3Requests | None:
    """Signed requests, if the store speaks the S3 protocol and there is a key."""
    if url.scheme == AZURE or not credential.access_key_id:
        return None
    endpoint = _s3_endpoint(url, credential)
    virtual = credential.addressing_style == "virtual"
    return S3Requests(endpoint, url.container, credential, _region(url, credential), virtual)


def do_all(
    do: Callable[[_Item], None],
    items: Iterable[_Item],
    *,
    at_once: int,
    requests: S3Requests | None,
) -> None:
    """Do something with each item, several at once; the first error cancels those not begun.

    requests:  what `do` sends its requests with; closed at the end.
    """
    closes = nullcontext() if requests is None else closing(requests)
    with closes, ThreadPoolExecutor(at_once) as pool:
        work = [pool.submit(do, each) for each in items]
        try:
            for each in work:
                each.result()
        except BaseException:
            for each in work:
                each.cancel()
            raise


def _open_s3(url: StoreUrl, credential: StoreCredential) -> ObjectStore:
    from obstore.store import S3Store  # noqa: PLC0415  needed by few tasks

    config: dict[str, Any] = {
        "endpoint": _s3_endpoint(url, credential),
        "region": _region(url, credential),
        "virtual_hosted_style_request": False,
    }
    if credential.addressing_style == "virtual":
        parts = urlsplit(config["endpoint"])
        config["endpoint"] = f"{parts.scheme}://{url.container}.{parts.netloc}"
        config["virtual_hosted_style_request"] = True
    # Always pass a key: without one the library would ask this machine's metadata services.
    config["access_key_id"] = credential.access_key_id or _NO_KEY
    config["secret_access_key"] = credential.access_key or _NO_KEY
    if credential.session_token:
        config["session_token"] = credential.session_token
    config["skip_signature"] = not credential.signs
    return S3Store(
        url.container,
        config=config,  # pyright: ignore[reportArgumentType]
        client_options=_client(credential),
        retry_config=_RETRIES,
    )


def _open_google(url: StoreUrl, credential: StoreCredential) -> ObjectStore:
    """Open a public bucket; with keys, Google speaks the S3 protocol."""
    from obstore.store import GCSStore  # noqa: PLC0415  needed by few tasks

    config: dict[str, Any] = {"skip_signature": True}
    if credential.override_url:
        config["base_url"] = credential.override_url.rstrip("/")
    return GCSStore(
        url.container,
        config=config,  # pyright: ignore[reportArgumentType]
        client_options=_client(credential),
        retry_config=_RETRIES,
        # Without this the library would ask this machine's metadata services for a token.
        credential_provider=lambda: {"token": _NO_KEY, "expires_at": None},
    )


def _open_azure(url: StoreUrl, credential: StoreCredential) -> ObjectStore:
    from obstore.store import AzureStore  # noqa: PLC0415  needed by few tasks

    account, _, container = url.container.partition("/")
    config: dict[str, Any] = {"account_name": account}
    if credential.override_url:
        config["endpoint"] = credential.override_url.rstrip("/")
    config["account_key"] = _account_key(credential.access_key or _NO_KEY)
    config["skip_signature"] = not credential.signs
    return AzureStore(
        container,
        config=config,  # pyright: ignore[reportArgumentType]
        client_options=_client(credential),
        retry_config=_RETRIES,
    )


def _account_key(given: str) -> str:
    """The key of an account, taken out of a connection string if that was given."""
    parts = dict(each.split("=", 1) for each in given.split(";") if "=" in each)
    return parts.get("AccountKey", given)


def _s3_endpoint(url: StoreUrl, credential: StoreCredential) -> str:
    if credential.override_url:
        return credential.override_url.rstrip("/")
    return GS_URL if url.scheme == GS else f"https://s3.{_region(url, credential)}.amazonaws.com"


def _region(url: StoreUrl, credential: StoreCredential) -> str:
    return credential.region or (GS_REGION if url.scheme == GS else REGION)


def _client(credential: StoreCredential) -> ClientConfig:
    return {
        "allow_http": credential.override_url.startswith("http://"),
        "connect_timeout": "10s",
        "timeout": f"{_REQUEST_S}s",
    }
