"""Stores of Google's and Azure's kind: what differs from S3, and tasks that use them."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bough.model.object_store import StoreCredential
from bough.object_stores.failures import StoreFailed
from bough.object_stores.s3_multipart import PART_BYTES
from tests.e2e.local import hosting
from tests.e2e.test_store_transfers import fetch, send, some_files, tree
from tests.object_stores.proxy import Proxy
from tests.object_stores.servers import (
    ACCOUNT,
    ACCOUNT_KEY,
    S3,
    Azure,
    Google,
    azure_server,
    free_port,
    google_server,
    payload,
    s3_server,
)

LARGE = 5 * PART_BYTES + 12_345
OTHER_KEY = base64.b64encode(b"another SECRET").decode()


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="module")
def google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Google]:
    with google_server(tmp_path_factory.mktemp("google")) as server:
        yield server


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azure]:
    with azure_server(tmp_path_factory.mktemp("azure")) as server:
        yield server


def opening(azure: Azure, **parts: str) -> StoreCredential:
    known = {"access_key": ACCOUNT_KEY, "override_url": azure.url}
    return StoreCredential(f"azure://{ACCOUNT}", **(known | parts))


def test_a_pair_of_keys_opens_google_by_the_protocol_of_s3(s3: S3, tmp_path: Path):
    s3.bucket("google")
    credential = s3.credential("gs://google", region="us-east-1")
    files = some_files(tmp_path / "here")
    assert 4 == send("gs://google/a", credential, tmp_path / "here", tmp_path / "journal").files
    assert 0 == send("gs://google/a", credential, tmp_path / "here", tmp_path / "journal").files
    assert files == fetch("gs://google/a", credential, tmp_path / "back")


def test_what_everyone_can_read_in_google_needs_no_key(google: Google, tmp_path: Path):
    files = {"a/one": b"one", "a/deep/gerät ü+#?.bin": os.urandom(LARGE), "b": b"other"}
    google.bucket("public", files)
    credential = StoreCredential("gs://public", override_url=google.url)
    found = fetch("gs://public/a", credential, tmp_path / "back")
    assert {name[2:]: files[name] for name in files if name.startswith("a/")} == found
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "x").write_bytes(b"x")
    with pytest.raises(StoreFailed, match="gs://public/a could not be written: its credential has"):
        send("gs://public/a", credential, tmp_path / "here", tmp_path / "journal")


def test_files_go_to_azure_and_come_back(azure: Azure, tmp_path: Path):
    azure.container("first")
    url, here, journal = f"azure://{ACCOUNT}/first/a", tmp_path / "here", tmp_path / "journal"
    files = some_files(here)
    with Proxy(azure.url) as proxy:
        proxy.cut_up, proxy.cut_down, proxy.cuts = 3 << 20, 10 << 20, 4
        credential = opening(azure, override_url=f"{proxy.url}/{ACCOUNT}")
        assert 4 == send(url, credential, here, journal).files
        assert files == fetch(url, credential, tmp_path / "back")
        assert 0 == proxy.cuts
    text = f"AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};EndpointSuffix=x"
    assert 0 == send(url, opening(azure, access_key=text), here, journal).files
    (here / "small").write_bytes(b"other")
    assert 1 == send(url, opening(azure), here, journal).files
    assert tree(here) == fetch(url, opening(azure), tmp_path / "again")


@pytest.mark.parametrize(
    ("parts", "container", "expected"),
    [
        ({}, "nosuch", "there is no such bucket"),
        ({"access_key": OTHER_KEY}, "faults", "does not know the key of the credential"),
        ({"access_key": "***"}, "faults", "a part of its credential is not what the store needs"),
        ({"override_url": "closed"}, "faults", "the store cannot be reached"),
    ],
)
def test_what_is_wrong_with_azure_is_said(
    azure: Azure, tmp_path: Path, parts: dict[str, str], container: str, expected: str
):
    if "override_url" in parts:
        parts = {"override_url": f"http://127.0.0.1:{free_port()}/{ACCOUNT}"}
    with pytest.raises(StoreFailed) as error:
        fetch(f"azure://{ACCOUNT}/{container}/x", opening(azure, **parts), tmp_path)
    assert error.value.message.startswith(f"azure://{ACCOUNT}/{container}/x could not be ")
    assert expected in error.value.message
    assert "SECRET" not in error.value.message


def test_tasks_use_stores_of_both(azure: Azure, s3: S3, tmp_path: Path):
    azure.container("tasks")
    s3.bucket("tasks")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "file").write_bytes(b"from azure")
    box = f"azure://{ACCOUNT}/tasks"
    send(f"{box}/in", opening(azure), tmp_path / "here", tmp_path / "journal")
    allowed = ("--store-endpoint", azure.url, "--store-endpoint", s3.url)
    (tmp_path / "host").mkdir()
    with hosting(tmp_path / "host", 1, *allowed) as hosted:
        host = hosted.start()
        host.pool("p", 1)
        key = {"endpoint": box, "access_key": ACCOUNT_KEY, "override_url": azure.url}
        host.client.credentials.set("azure", "DATA", key)
        host.client.credentials.set(
            "google", "DATA", payload("gs://tasks", s3.url, region="us-east-1")
        )
        name = host.submit(
            "p",
            0,
            "NORMAL",
            script="cp {{input:0}}/file {{output}}/copy",
            inputs=[{"url": f"{box}/in"}],
            outputs=[{"url": f"{box}/out"}, {"url": "gs://tasks/out"}],
        )
        host.over(name)
        assert "COMPLETED" == host.status(name), host.shown(name)
    assert {"copy": b"from azure"} == fetch(f"{box}/out", opening(azure), tmp_path / "azure")
    assert b"from azure" == (s3.folder / "root" / "tasks" / "out" / "copy").read_bytes()
