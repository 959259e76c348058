"""URLs of object stores, and which credential opens them."""

from __future__ import annotations

import pytest

from bough.model.object_store import (
    StoreCredential,
    StoreUrl,
    endpoint_fault,
    find_endpoint,
    read_store_credential,
    read_store_url,
    store_url_fault,
)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("s3://b", StoreUrl("s3", "b", "")),
        ("S3://b/a/c/", StoreUrl("s3", "b", "a/c")),
        ("gs://b/{{workflow_id}}", StoreUrl("gs", "b", "{{workflow_id}}")),
        ("azure://account/box", StoreUrl("azure", "account/box", "")),
        ("azure://account/box/a/b", StoreUrl("azure", "account/box", "a/b")),
        ("azure://account", None),
        ("azure://account/", None),
        ("s3://", None),
        ("s3:///a", None),
        ("s3:b", None),
        ("bough://p/a", None),
    ],
)
def test_a_url_names_a_bucket_and_a_path(url: str, expected: StoreUrl | None):
    assert expected == read_store_url(url)


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("s3://b/a", None),
        ("s3://", "names no bucket"),
        ("s3://{{x}}/a", "cannot be a placeholder"),
        ("s3://b?x/a", "cannot be the name of a bucket"),
        ("s3://b:1/a", "cannot be the name of a bucket"),
        ("s3://b/a//c", "no part of it can be empty"),
        ("s3://b/a/../c", "no part of it can be empty"),
    ],
)
def test_a_url_that_no_store_can_have_is_told(url: str, fault: str | None):
    found = store_url_fault(url)
    assert fault is None if found is None else fault is not None and fault in found


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("s3://b/x", "s3://b"),
        ("s3://b", "s3://b"),
        ("s3://b/private/x", "s3://b/private/"),
        ("s3://b/privately", "s3://b"),
        ("s3://bb/x", "s3://"),
        ("gs://b/x", None),
        ("azure://account/box/x", "azure://account"),
    ],
)
def test_the_longest_endpoint_above_a_url_opens_it(url: str, endpoint: str | None):
    # The last is the name of a credential, and no endpoint.
    known = ["s3://b", "s3://b/private/", "s3://", "azure://account", "gs"]
    assert endpoint == find_endpoint(url, known)


@pytest.mark.parametrize(
    ("payload", "fault"),
    [
        ({"endpoint": "s3://b", "access_key_id": "i", "access_key": "s"}, None),
        ({"endpoint": "s3://public"}, None),
        ({"endpoint": "azure://account", "access_key": "s"}, None),
        ({"access_key_id": "i", "access_key": "s"}, "has no endpoint"),
        ({"endpoint": "https://b"}, "has the endpoint 'https://b'; write s3://BUCKET/path"),
        ({"endpoint": "s3"}, "has the endpoint 's3'"),
        ({"endpoint": "s3://b", "access_key": "s"}, "has no access_key_id"),
        ({"endpoint": "s3://b", "access_key_id": "i"}, "has no access_key"),
        ({"endpoint": "s3://b", "key": "s"}, "has a part 'key'; its parts can be: endpoint,"),
        ({"endpoint": "s3://b", "override_url": "ftp://h"}, "has an override_url that is not"),
        ({"endpoint": "s3://b", "override_url": "http://u@h"}, "has an override_url"),
        ({"endpoint": "s3://b", "addressing_style": "no"}, "has an addressing_style"),
        ({"endpoint": "gs://b", "session_token": "s"}, "has a session_token and no access_key"),
        ({"endpoint": "azure://b", "access_key_id": "i"}, "has no access_key"),
    ],
)
def test_a_credential_says_what_is_wrong_with_it(payload: dict[str, str], fault: str | None):
    found = read_store_credential(payload)
    if fault is None:
        assert isinstance(found, StoreCredential)
    else:
        assert isinstance(found, str)
        assert fault in found


def test_a_credential_shows_nothing_of_its_secrets():
    found = StoreCredential("s3://b", "the-id", "the-secret", "the-token")
    for text in (repr(found), str(found), f"{found}"):
        assert "StoreCredential('s3://b', …)" == text


def test_an_address_must_be_allowed_unless_it_is_the_providers_own():
    allowed = ("https://store.example.com", "http://127.0.0.1:9000")
    for url, expected in (
        ("", True),
        ("https://store.example.com:443/path", True),
        ("http://127.0.0.1:9000", True),
        ("http://127.0.0.1:9001", False),
        ("http://store.example.com", False),
        ("https://store.example.com.other.example", False),
    ):
        credential = StoreCredential("s3://b", override_url=url)
        assert expected is (endpoint_fault(credential, allowed) is None), url
