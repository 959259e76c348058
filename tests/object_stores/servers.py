"""Starts object stores on the loopback, each with a folder of its own; none outlives the tests."""

from __future__ import annotations

import base64
import hmac
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

from bough.model.object_store import StoreCredential
from tests.go_build import MissingTool
from tests.kubernetes.bed.process import Process
from tests.object_stores.build import azurite, programs

PATIENCE_S = 60.0
#: Long and unusual, so that a search for it finds nothing else.
KEY_ID, KEY = "bough-test-key-id", "bough-test-SECRET-7f3a9c51e2"


class S3(NamedTuple):
    """versitygw, whose objects are files."""

    url: str
    folder: Path

    def bucket(self, name: str) -> Path:
        """A new bucket, as the folder of its objects."""
        path = self.folder / "root" / name
        path.mkdir()
        return path

    def credential(self, endpoint: str, url: str | None = None, **parts: str) -> StoreCredential:
        """What opens a URL."""
        return StoreCredential(**payload(endpoint, url or self.url, **parts))


def payload(endpoint: str, url: str, **parts: str) -> dict[str, str]:
    """The parts of a credential."""
    known = {"access_key_id": KEY_ID, "access_key": KEY, "override_url": url}
    return {"endpoint": endpoint} | known | parts


@contextmanager
def s3_server(folder: Path) -> Iterator[S3]:
    """versitygw on a free port."""
    port = free_port()
    for name in ("root", "users"):
        (folder / name).mkdir(parents=True)
    command = [
        str(_built() / "versitygw"), "--port", f"127.0.0.1:{port}", "--quiet", "--keep-alive",
        "--iam-dir", str(folder / "users"), "posix", str(folder / "root"),
    ]  # fmt: skip
    program = Process(command, folder / "log", ROOT_ACCESS_KEY=KEY_ID, ROOT_SECRET_KEY=KEY)
    with running(program, port):
        yield S3(f"http://127.0.0.1:{port}", folder)


class Google(NamedTuple):
    """fake-gcs-server, which lets everyone in."""

    url: str

    def bucket(self, name: str, objects: dict[str, bytes]) -> None:
        """A new bucket with objects."""
        self._post("/storage/v1/b?project=test", json.dumps({"name": name}).encode())
        for key, content in objects.items():
            query = f"uploadType=media&name={quote(key, safe='')}"
            self._post(f"/upload/storage/v1/b/{name}/o?{query}", content)

    def _post(self, path: str, content: bytes) -> None:
        headers = {"Content-Type": "application/json"}
        request = Request(f"{self.url}{path}", content, headers)  # noqa: S310 - the loopback
        with urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310 - the loopback
            assert 200 == answer.status


@contextmanager
def google_server(folder: Path) -> Iterator[Google]:
    """fake-gcs-server on a free port."""
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    url = f"http://127.0.0.1:{port}"
    command = [
        str(_built() / "fake-gcs-server"), "-scheme", "http", "-host", "127.0.0.1",
        "-port", str(port), "-public-host", f"127.0.0.1:{port}", "-external-url", url,
        "-backend", "memory",
    ]  # fmt: skip
    with running(Process(command, folder / "log"), port):
        yield Google(url)


ACCOUNT, ACCOUNT_KEY = "testaccount", base64.b64encode(KEY.encode()).decode()


class Azure(NamedTuple):
    """azurite."""

    url: str

    def container(self, name: str) -> None:
        """A new container, by a request that is signed as Azure wants it."""
        about = {
            "x-ms-date": time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime()),
            "x-ms-version": "2021-08-06",
        }
        lines = "".join(f"{key}:{value}\n" for key, value in about.items())
        path = f"/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
        text = "PUT" + "\n" * 12 + lines + path
        digest = hmac.digest(base64.b64decode(ACCOUNT_KEY), text.encode(), "sha256")
        signature = base64.b64encode(digest).decode()
        about |= {"Authorization": f"SharedKey {ACCOUNT}:{signature}", "Content-Length": "0"}
        url = f"{self.url}/{name}?restype=container"
        request = Request(url, headers=about, method="PUT")  # noqa: S310 - the loopback
        with urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310 - the loopback
            assert 201 == answer.status


@contextmanager
def azure_server(folder: Path) -> Iterator[Azure]:
    """azurite on a free port, with one account."""
    port = free_port()
    (folder / "data").mkdir(parents=True)
    command = [
        str(_built(azurite)), "--silent", "--skipApiVersionCheck", "--disableTelemetry",
        "--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder / "data"),
    ]  # fmt: skip
    program = Process(command, folder / "log", AZURITE_ACCOUNTS=f"{ACCOUNT}:{ACCOUNT_KEY}")
    with running(program, port):
        yield Azure(f"http://127.0.0.1:{port}/{ACCOUNT}")


@contextmanager
def running(program: Process, port: int) -> Iterator[None]:
    """A program, from when it listens until the block ends."""
    program.start()
    try:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            assert not program.ended, program.log.read_text()
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.monotonic() < deadline, program.log.read_text()
                time.sleep(0.05)
        yield
    finally:
        program.stop()


def free_port() -> int:
    """A port that nothing uses now."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def skip_without(missing: Exception) -> None:
    """Say loudly that something is not here; in CI that is a failure."""
    if os.environ.get("CI") == "true":
        raise missing
    pytest.skip(str(missing))


def _built(build: Callable[[], Path] = programs) -> Path:
    try:
        return build()
    except MissingTool as missing:
        skip_without(missing)
        raise
