"""Files from and to a real store: checked, resumed, and with errors that say what is wrong."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bough.errors import BoughError
from bough.model.object_store import StoreCredential, StoreUrl, read_store_url
from bough.object_stores.downloading import Fetch
from bough.object_stores.failures import Damaged, StoreFailed
from bough.object_stores.listing import list_objects
from bough.object_stores.opening import open_store
from bough.object_stores.s3_multipart import PART_BYTES
from bough.object_stores.uploading import FileToSend, Sending
from tests.e2e.served import PATIENCE_S
from tests.object_stores.proxy import Proxy
from tests.object_stores.servers import KEY, KEY_ID, S3, free_port, s3_server

#: Sent in parts: five and a bit.
LARGE = 5 * PART_BYTES + 12_345
ODD = "deep/gerät ü+#?&=%41.bin"


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def bucket(s3: S3, request: pytest.FixtureRequest) -> str:
    name = f"b{hashlib.sha256(request.node.name.encode()).hexdigest()[:16]}"
    s3.bucket(name)
    return name


def url_of(text: str) -> StoreUrl:
    found = read_store_url(text)
    assert found is not None
    return found


def send(url: str, credential: StoreCredential, folder: Path, journal: Path):
    def opening(path: Path) -> Callable[[], int]:
        return lambda: os.open(path, os.O_RDONLY)

    files = [
        FileToSend(str(each.relative_to(folder)), opening(each))
        for each in sorted(folder.rglob("*"))
        if each.is_file()
    ]
    return Sending(url_of(url), credential, journal).send(files)


def fetch(url: str, credential: StoreCredential, folder: Path) -> dict[str, bytes]:
    folder.mkdir(exist_ok=True)
    found = list_objects(open_store(url_of(url), credential), url_of(url), 1_000)
    Fetch(url_of(url), credential, folder).fetch(found)
    return tree(folder)


def tree(folder: Path) -> dict[str, bytes]:
    found = (each for each in folder.rglob("*") if each.is_file())
    return {str(each.relative_to(folder)): each.read_bytes() for each in found}


def some_files(folder: Path) -> dict[str, bytes]:
    (folder / "deep").mkdir(parents=True)
    (folder / "empty").write_bytes(b"")
    (folder / "small").write_bytes(b"small")
    (folder / ODD).write_bytes(os.urandom(LARGE))
    (folder / "deep" / "medium").write_bytes(os.urandom(PART_BYTES + 1))
    return tree(folder)


def test_files_of_all_sizes_and_names_come_back_as_they_were(s3: S3, bucket: str, tmp_path: Path):
    credential = s3.credential(f"s3://{bucket}")
    files = some_files(tmp_path / "here")
    sent = send(f"s3://{bucket}/a/b", credential, tmp_path / "here", tmp_path / "journal")
    assert (4, sum(map(len, files.values())), ()) == sent
    assert files == fetch(f"s3://{bucket}/a/b", credential, tmp_path / "back")
    assert {"small": b"small"} == fetch(f"s3://{bucket}/a/b/small", credential, tmp_path / "one")
    assert {} == fetch(f"s3://{bucket}/a/bb", credential, tmp_path / "none")
    assert {} == fetch(f"s3://{bucket}/a/b/sma", credential, tmp_path / "neither")


def test_only_what_changed_or_is_missing_is_sent_again(s3: S3, bucket: str, tmp_path: Path):
    credential = s3.credential("s3://")
    here, journal = tmp_path / "here", tmp_path / "journal"
    some_files(here)
    assert 4 == send(f"s3://{bucket}", credential, here, journal).files
    assert 0 == send(f"s3://{bucket}", credential, here, journal).files
    (here / "small").write_bytes(b"other")
    (s3.folder / "root" / bucket / "empty").unlink()
    assert 2 == send(f"s3://{bucket}", credential, here, journal).files
    assert tree(here) == fetch(f"s3://{bucket}", credential, tmp_path / "back")


def test_an_upload_goes_on_after_broken_connections(s3: S3, bucket: str, tmp_path: Path):
    files = some_files(tmp_path / "here")
    with Proxy(s3.url) as proxy:
        proxy.cut_up, proxy.cuts = 3 << 20, 6
        credential = s3.credential(f"s3://{bucket}", proxy.url)
        send(f"s3://{bucket}", credential, tmp_path / "here", tmp_path / "journal")
        assert 0 == proxy.cuts
    credential = s3.credential(f"s3://{bucket}")
    assert files == fetch(f"s3://{bucket}", credential, tmp_path / "back")


def test_a_download_goes_on_after_broken_connections(s3: S3, bucket: str, tmp_path: Path):
    (s3.folder / "root" / bucket / "large").write_bytes(content := os.urandom(LARGE))
    with Proxy(s3.url) as proxy:
        proxy.cut_down, proxy.cuts = 10 << 20, 5
        credential = s3.credential(f"s3://{bucket}", proxy.url)
        assert {"large": content} == fetch(f"s3://{bucket}", credential, tmp_path / "back")
        assert 0 == proxy.cuts
        # Of what a cut connection brought, at most what was on its way is asked for again.
        assert proxy.down < LARGE + 5 * (8 << 20)


#: Sends or fetches, in a process that a test kills.
PROGRAM = """
import pathlib, sys
from bough.model.object_store import StoreCredential
from tests.e2e.test_store_transfers import fetch, send
how, url, store, folder, journal, key_id, key = sys.argv[1:]
credential = StoreCredential("s3://", key_id, key, override_url=store)
if how == "send":
    send(url, credential, pathlib.Path(folder), pathlib.Path(journal))
else:
    fetch(url, credential, pathlib.Path(folder))
"""


def run_and_kill(proxy: Proxy, how: str, url: str, folder: Path, journal: Path) -> None:
    arguments = [how, url, proxy.url, str(folder), str(journal), KEY_ID, KEY]
    work = subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments])
    assert proxy.holding.wait(PATIENCE_S)
    work.send_signal(signal.SIGKILL)
    assert -signal.SIGKILL == work.wait(PATIENCE_S)
    proxy.go_on()


def test_an_upload_goes_on_in_another_process(s3: S3, bucket: str, tmp_path: Path):
    here, journal = tmp_path / "here", tmp_path / "journal"
    here.mkdir()
    (here / "large").write_bytes(content := os.urandom(LARGE))
    with Proxy(s3.url) as proxy:
        proxy.hold_at(LARGE * 4 // 5)
        run_and_kill(proxy, "send", f"s3://{bucket}/x", here, journal)
    assert {} == fetch(f"s3://{bucket}/x", s3.credential("s3://"), tmp_path / "nothing")
    with Proxy(s3.url) as proxy:
        send(f"s3://{bucket}/x", s3.credential("s3://", proxy.url), here, journal)
        # Four parts are sent at a time, and one may just have arrived.
        assert proxy.up < LARGE - PART_BYTES // 2
    assert {"large": content} == fetch(
        f"s3://{bucket}/x", s3.credential("s3://"), tmp_path / "back"
    )
    assert [] == list(journal.glob("*.upload"))


def test_a_changed_file_does_not_go_on_with_old_parts(s3: S3, bucket: str, tmp_path: Path):
    here, journal = tmp_path / "here", tmp_path / "journal"
    here.mkdir()
    (here / "large").write_bytes(os.urandom(LARGE))
    with Proxy(s3.url) as proxy:
        proxy.hold_at(LARGE * 4 // 5)
        run_and_kill(proxy, "send", f"s3://{bucket}/x", here, journal)
    (here / "large").write_bytes(other := os.urandom(LARGE))
    send(f"s3://{bucket}/x", s3.credential("s3://"), here, journal)
    assert {"large": other} == fetch(f"s3://{bucket}/x", s3.credential("s3://"), tmp_path / "back")


def test_a_download_goes_on_in_another_process(s3: S3, bucket: str, tmp_path: Path):
    (s3.folder / "root" / bucket / "large").write_bytes(content := os.urandom(LARGE))
    back = tmp_path / "back"
    with Proxy(s3.url) as proxy:
        proxy.hold_at(LARGE // 2)
        run_and_kill(proxy, "fetch", f"s3://{bucket}", back, tmp_path)
    with Proxy(s3.url) as proxy:
        credential = s3.credential("s3://", proxy.url)
        assert {"large": content} == fetch(f"s3://{bucket}", credential, back)
        assert proxy.down < LARGE * 3 // 4


@pytest.mark.parametrize("size", [10, LARGE])
def test_what_was_damaged_in_the_store_is_not_taken(s3: S3, bucket: str, tmp_path: Path, size: int):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "file").write_bytes(os.urandom(size))
    credential = s3.credential(f"s3://{bucket}")
    send(f"s3://{bucket}", credential, tmp_path / "here", tmp_path / "journal")
    with (s3.folder / "root" / bucket / "file").open("r+b") as file:
        first = file.read(1)
        file.seek(0)
        file.write(bytes([first[0] ^ 1]))
    with pytest.raises(Damaged, match=f"s3://{bucket}/file was damaged"):
        fetch(f"s3://{bucket}", credential, tmp_path / "back")
    assert {} == tree(tmp_path / "back")


def test_what_others_wrote_is_compared_with_what_the_store_says(
    s3: S3, bucket: str, tmp_path: Path
):
    import obstore  # pyright: ignore[reportMissingImports]

    credential = s3.credential(f"s3://{bucket}")
    store = open_store(url_of(f"s3://{bucket}"), credential)
    obstore.put(store, "one", b"one request")
    obstore.put(store, "parts", os.urandom(LARGE), use_multipart=True)
    fetch(f"s3://{bucket}", credential, tmp_path / "right")
    with (s3.folder / "root" / bucket / "one").open("r+b") as file:
        file.write(b"two")
    with pytest.raises(Damaged, match=r"another (MD5|CRC-32|SHA-256) than the store says"):
        fetch(f"s3://{bucket}/one", credential, tmp_path / "wrong")


def test_a_file_that_is_being_written_is_not_sent(s3: S3, bucket: str, tmp_path: Path):
    (tmp_path / "here").mkdir()
    path = tmp_path / "here" / "large"
    path.write_bytes(os.urandom(LARGE))
    with Proxy(s3.url) as proxy:
        proxy.hold_at(LARGE // 2)
        credential = s3.credential("s3://", proxy.url)
        found: list[object] = []
        work = threading.Thread(
            target=lambda: found.append(
                send(f"s3://{bucket}", credential, tmp_path / "here", tmp_path / "journal")
            )
        )
        work.start()
        assert proxy.holding.wait(PATIENCE_S)
        with path.open("ab") as file:
            file.write(b"more")
        proxy.go_on()
        work.join(PATIENCE_S)
    assert [(0, 0, ("large",))] == found
    assert {} == fetch(f"s3://{bucket}", s3.credential("s3://"), tmp_path / "back")


FAULTS = {
    "no bucket": ({"bucket": "nosuchbucket"}, "there is no such bucket"),
    "wrong key": ({"access_key": "wrong-SECRET"}, "does not know the key of the credential"),
    "unknown key": ({"access_key_id": "nobody"}, "does not know the key of the credential"),
    "no key": (
        {"access_key_id": "", "access_key": ""},
        "does not allow it|its credential has no key",
    ),
    "other region": ({"region": "eu-central-1"}, "is in another region than the credential says"),
    "unreachable": ({"override_url": "closed"}, "cannot be reached"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("size", [10, LARGE])
def test_what_is_wrong_is_said_without_the_secret(
    s3: S3, bucket: str, tmp_path: Path, fault: str, size: int
):
    parts, expected = FAULTS[fault]
    name = parts.get("bucket", bucket)
    given = {part: value for part, value in parts.items() if part != "bucket"}
    if "override_url" in given:
        given["override_url"] = f"http://127.0.0.1:{free_port()}"
    credential = s3.credential(f"s3://{name}", **given)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "file").write_bytes(os.urandom(size))
    with pytest.raises(StoreFailed) as reading:
        fetch(f"s3://{name}/x", credential, tmp_path / "back")
    with pytest.raises(StoreFailed) as writing:
        send(f"s3://{name}/x", credential, tmp_path / "here", tmp_path / "journal")
    messages = [reading.value.message, writing.value.message]
    for message, done in zip(messages, ("listed", "written"), strict=True):
        assert message.startswith(f"s3://{name}/x")
        assert f" could not be {done}: " in message

        assert any(each in message for each in expected.split("|"))
        assert "SECRET" not in message
        assert isinstance(reading.value, BoughError)
        assert reading.value.__suppress_context__
    assert "SECRET" not in repr(credential)
