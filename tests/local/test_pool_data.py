"""The data of pools: whole or not there, within its quota, and never left behind for ever."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.backends.local.errors import CopyFailed
from bough.backends.local.options import LocalOptions
from bough.backends.local.pool_data import folder_copying, pool_store
from bough.backends.local.pool_data.pool_folder import opened_pool, space_folder
from bough.backends.local.pool_data.pool_store import DRAFT_S, LocalPoolData
from bough.backends.local.task_command import Copy, PoolPlace
from bough.errors import BoughError, Conflict, Invalid, Unavailable
from bough.model.pool_data import ContentPart, DataEntry, PoolSpace

DAY_MS = 86_400_000


class Kept:
    """The data of one pool, at a time that a test sets."""

    def __init__(self, folder: Path, quota: int = 1 << 20) -> None:
        self.now_ms = time.time_ns() // 1_000_000
        self.options = LocalOptions(folder)
        self.space = PoolSpace("id", quota, 10 * 86_400, "p")
        self.data = LocalPoolData(self.options, lambda: self.now_ms)

    @property
    def folder(self) -> Path:
        return space_folder(self.options, self.space)

    def write(self, files: dict[str, bytes], below: str = "", draft: str = "drafted-1") -> None:
        entries = [DataEntry(path, sha(each), len(each)) for path, each in files.items()]
        missing = self.data.draft(self.space, draft, entries)
        parts = {sha(each): each for each in files.values()}
        self.data.receive(
            self.space, [ContentPart(name, len(parts[name]), 0, parts[name]) for name in missing]
        )
        self.data.publish(self.space, draft, below, "ann")

    def read(self, path: str = "") -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for each in self.data.list_files(self.space, path, "", 10_000).files:
            part = self.data.read_part(self.space, each.path, 0, 1 << 30)
            assert part is not None
            assert sha(part[1]) == each.sha256
            found[each.path] = part[1]
        return found

    def place(self, path: str) -> PoolPlace:
        return PoolPlace(str(self.folder), path, self.space.quota_bytes, "p", "ann")

    def store(self, source: Path, path: str, **more: object) -> None:
        folder_copying.store_tree(Copy(str(source), "", **more), self.place(path))  # pyright: ignore[reportArgumentType]

    def fetch(self, path: str, target: Path, **more: object) -> None:
        folder_copying.fetch_tree(Copy("", str(target), **more), self.place(path))  # pyright: ignore[reportArgumentType]

    def contents(self) -> int:
        """How many contents are on the disk, named or not."""
        return sum(1 for each in (self.folder / "contents").rglob("*") if each.is_file())


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "local")


def tree(folder: Path) -> dict[str, bytes]:
    found = (each for each in folder.rglob("*") if each.is_file() and not each.is_symlink())
    return {str(each.relative_to(folder)): each.read_bytes() for each in found}


_NAMES = st.text(st.sampled_from("ab./0-ü "), min_size=1, max_size=6)
_FILES = st.dictionaries(_NAMES, st.binary(max_size=20), max_size=5)


@given(st.lists(st.tuples(st.sampled_from(["", "a", "a/b"]), _FILES), max_size=4))
def test_what_is_read_is_what_was_written_last_and_no_path_is_both(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[str, dict[str, bytes]]]
):
    kept = Kept(tmp_path_factory.mktemp("laws"))
    expected: dict[str, bytes] = {}
    for number, (below, files) in enumerate(writes):
        try:
            kept.write(files, below, draft=f"drafted-{number}")
        except BoughError:
            # All of it or nothing.
            assert expected == kept.read()
            continue
        expected |= {f"{below}/{name}" if below else name: each for name, each in files.items()}
    found = kept.read()
    assert expected == found
    assert all(not other.startswith(f"{path}/") for path in found for other in found)
    usage = kept.data.usage(kept.space)
    drafted = sum({sha(each): len(each) for each in found.values()}.values())
    assert usage.used_bytes >= drafted
    kept.now_ms += 2 * DAY_MS
    kept.data.clean([kept.space])
    assert drafted == kept.data.usage(kept.space).used_bytes


def test_a_draft_shows_nothing_until_it_is_published(kept: Kept):
    content = b"content"
    entry = DataEntry("a/b", sha(content), len(content))
    assert {entry.sha256: 0} == kept.data.draft(kept.space, "drafted-1", [entry])
    with pytest.raises(Conflict, match="1 contents of the draft have not come yet"):
        kept.data.publish(kept.space, "drafted-1", "", "ann")
    kept.data.receive(kept.space, [ContentPart(entry.sha256, 7, 0, content)])
    assert {} == kept.read()
    assert 1 == kept.data.publish(kept.space, "drafted-1", "x", "ann")
    assert {"x/a/b": content} == kept.read()
    with pytest.raises(Conflict, match="nothing to write"):
        kept.data.publish(kept.space, "drafted-1", "x", "ann")


def test_parts_come_in_order_and_a_wrong_checksum_is_dropped(kept: Kept):
    content = os.urandom(1_000)
    name = sha(content)

    def send(offset: int, part: bytes) -> dict[str, int]:
        return dict(kept.data.receive(kept.space, [ContentPart(name, 1_000, offset, part)]))

    entry = DataEntry("a", name, 1_000)
    kept.data.draft(kept.space, "drafted-1", [entry])
    assert {name: 400} == send(0, content[:400])
    assert {name: 400} == send(0, content[:400])
    assert {name: 400} == send(500, content[500:])
    assert {name: 400} == kept.data.draft(kept.space, "drafted-1", [entry])
    with pytest.raises(Invalid, match="another checksum"):
        send(400, bytes(600))
    assert {name: 0} == kept.data.draft(kept.space, "drafted-1", [entry])
    send(0, content[:400])
    assert {} == send(400, content[400:])
    kept.data.publish(kept.space, "drafted-1", "", "ann")
    assert {"a": content} == kept.read()


@pytest.mark.parametrize(
    "entry",
    [
        DataEntry("../a", "0" * 64, 1),
        DataEntry("a\nb", "0" * 64, 1),
        DataEntry("a/", "0" * 64, 1),
        DataEntry("a", "0" * 63, 1),
        DataEntry("a", "../" + "0" * 61, 1),
        DataEntry("a", "0" * 64, -1),
        DataEntry("a", "0" * 64, 1, modified_ns=1 << 70),
    ],
)
def test_an_entry_that_cannot_be_is_refused(kept: Kept, entry: DataEntry):
    with pytest.raises(Invalid):
        kept.data.draft(kept.space, "drafted-1", [entry])


def test_uploads_that_are_never_finished_cannot_fill_the_index(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pool_store, "MOST_DRAFTED", 3)
    entries = [DataEntry(name, sha(b""), 0) for name in "abc"]
    kept.data.draft(kept.space, "drafted-1", entries[:2])
    with pytest.raises(Conflict, match="not finished have 3 files"):
        kept.data.draft(kept.space, "drafted-2", entries[:2])
    kept.data.draft(kept.space, "drafted-2", entries[:1])
    # What was refused is not there, and what is finished no longer counts.
    kept.data.receive(kept.space, [ContentPart(sha(b""), 0, 0, b"")])
    assert 1 == kept.data.publish(kept.space, "drafted-2", "", "ann")
    kept.data.draft(kept.space, "drafted-3", entries[:1])


def test_contents_that_no_draft_names_are_refused(kept: Kept):
    with pytest.raises(Conflict, match="No draft"):
        kept.data.receive(kept.space, [ContentPart(sha(b"x"), 1, 0, b"x")])


def test_the_quota_holds_also_for_many_writers_at_once(tmp_path: Path):
    kept = Kept(tmp_path, quota=5_000)
    refused: list[str] = []

    def write(number: int) -> None:
        content = os.urandom(1_000)
        try:
            kept.write({f"{number}": content}, draft=f"drafted-{number}")
        except Conflict as error:
            refused.append(error.message)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    used = kept.data.usage(kept.space).used_bytes
    assert used <= 5_000
    assert 12 - len(kept.read()) == len(refused)
    assert all("The data of pool p is full" in each for each in refused)


def test_what_the_disk_has_no_room_for_is_refused_before_it_is_sent(tmp_path: Path):
    kept = Kept(tmp_path, quota=1 << 60)
    with pytest.raises(Unavailable, match="has no room for 512"):
        kept.data.draft(kept.space, "drafted-1", [DataEntry("a", "0" * 64, 1 << 49)])
    assert 0 == kept.data.usage(kept.space).used_bytes


def test_two_drafts_of_which_each_fits_do_not_both(tmp_path: Path):
    kept = Kept(tmp_path, quota=1_500)
    for whole in (True, False):
        contents = [os.urandom(1_000) for _ in range(2)]
        for number, each in enumerate(contents):
            entry = DataEntry("a", sha(each), 1_000)
            kept.data.draft(kept.space, f"drafted-{number}", [entry])
        size = 1_000 if whole else 400
        parts = [ContentPart(sha(each), 1_000, 0, each[:size]) for each in contents]
        kept.data.receive(kept.space, parts[:1])
        with pytest.raises(Conflict, match="The data of pool p is full"):
            kept.data.receive(kept.space, parts[1:])
        kept.now_ms += 2 * DAY_MS
        kept.data.clean([kept.space])
        assert 0 == kept.data.usage(kept.space).used_bytes


def test_a_folder_goes_in_and_comes_out_without_links(kept: Kept, tmp_path: Path):
    source = tmp_path / "out"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "a").write_bytes(b"a")
    (source / "run").write_bytes(b"#!")
    (source / "run").chmod(0o700)
    (source / "same").write_bytes(b"a")
    (source / "link").symlink_to("/etc/passwd")
    os.mkfifo(source / "pipe")
    kept.store(source, "x")

    assert {"x/deep/a": b"a", "x/run": b"#!", "x/same": b"a"} == kept.read()
    for only_read in (True, False):
        target = tmp_path / f"in-{only_read}"
        kept.fetch("x", target, only_read=only_read)
        assert {"deep/a": b"a", "run": b"#!", "same": b"a"} == tree(target)
        assert os.access(target / "run", os.X_OK)
    kept.fetch("x/deep/a", tmp_path / "one", only_read=True)
    assert {"a": b"a"} == tree(tmp_path / "one")
    kept.fetch("nowhere", tmp_path / "none")
    assert {} == tree(tmp_path / "none")


def test_what_was_fetched_to_be_changed_changes_nothing_in_the_pool(kept: Kept, tmp_path: Path):
    kept.write({"a": b"before"})
    kept.fetch("", tmp_path / "work")
    with (tmp_path / "work" / "a").open("wb") as file:
        file.write(b"after!")
    assert {"a": b"before"} == kept.read()


def test_a_folder_that_does_not_fit_leaves_nothing(tmp_path: Path):
    kept = Kept(tmp_path / "local", quota=2_500)
    source = tmp_path / "out"
    source.mkdir()
    for number in range(4):
        (source / f"{number}").write_bytes(os.urandom(1_000))
    with pytest.raises(CopyFailed, match="bough://p/x could not be written: The data of pool p"):
        kept.store(source, "x")
    assert {} == kept.read()
    kept.data.clean([kept.space])
    assert (0, 0) == (kept.data.usage(kept.space).used_bytes, kept.contents())


@pytest.mark.parametrize("step", ["keep_contents", "publish_draft", "copy_hashed"])
def test_a_writer_that_is_killed_shows_nothing_and_is_cleaned_up(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
):
    kept.write({"x/old": b"old"})
    source = tmp_path / "out"
    source.mkdir()
    for number in range(3):
        (source / f"{number}").write_bytes(os.urandom(100))
    real: Callable[..., object] = getattr(folder_copying, step)
    calls: list[int] = []

    def die(*arguments: object) -> object:
        done = real(*arguments)
        calls.append(1)
        if step != "copy_hashed" or len(calls) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    child = os.fork()
    if child == 0:
        monkeypatch.setattr(folder_copying, step, die)
        try:
            kept.store(source, "x")
        finally:
            os._exit(1)
    assert -signal.SIGKILL == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert {"x/old": b"old"} == kept.read()
    kept.store(source, "x")
    assert 4 == len(kept.read())
    # A day later nothing is left of the one that was killed.
    kept.now_ms += 2 * DRAFT_S * 1_000
    for each in (kept.folder / "incoming").iterdir():
        os.utime(each, (0, 0))
    kept.data.clean([kept.space])
    assert (4, []) == (kept.contents(), list((kept.folder / "incoming").iterdir()))
    assert 303 == kept.data.usage(kept.space).used_bytes


def test_a_content_that_nothing_names_is_found_and_dropped(kept: Kept):
    kept.write({"a": b"a"})
    stray = kept.folder / "contents" / "ab" / ("c" * 62)
    stray.parent.mkdir(exist_ok=True)
    stray.write_bytes(b"left by a crash")
    kept.data.clean([kept.space])
    assert (1, {"a": b"a"}) == (kept.contents(), kept.read())


def test_files_are_kept_for_their_time_since_they_were_written_or_used(kept: Kept):
    kept.write({"old": b"old", "used": b"used"})
    kept.now_ms += 9 * DAY_MS
    with opened_pool(kept.folder) as (index, _), index.writing():
        index.use("used", kept.now_ms)
    kept.write({"new": b"new"}, draft="drafted-2")
    assert 0 == kept.data.clean([kept.space])
    kept.now_ms += 2 * DAY_MS
    assert 1 == kept.data.clean([kept.space])
    assert {"used": b"used", "new": b"new"} == kept.read()
    assert 2 == kept.contents()


def test_the_data_of_a_pool_that_is_gone_goes_too(kept: Kept):
    kept.write({"a": b"a"})
    kept.now_ms += 100 * DAY_MS
    for days in (0, 29):
        kept.now_ms += days * DAY_MS
        kept.data.clean([])
        assert kept.folder.exists()
    kept.now_ms += DAY_MS
    kept.data.clean([])
    assert not kept.folder.exists()


def test_a_pool_that_comes_back_has_all_of_its_data(kept: Kept):
    space = msgspec.structs.replace(kept.space, keep_s=365 * 86_400)
    kept.write({"a": b"a"})
    for _ in range(5):
        kept.now_ms += 20 * DAY_MS
        kept.data.clean([])
        kept.data.clean([space])
    assert {"a": b"a"} == kept.read()


def test_a_checkpoint_writes_only_what_has_changed(kept: Kept, tmp_path: Path):
    source = tmp_path / "model"
    source.mkdir()
    (source / "same").write_bytes(b"same")
    (source / "other").write_bytes(b"one")
    kept.store(source, "run", named=True)
    before = {
        each.path: each.stored_ms for each in kept.data.list_files(kept.space, "", "", 9).files
    }
    (source / "other").write_bytes(b"two!")
    kept.store(source, "run", named=True)
    after = {
        each.path: each.stored_ms for each in kept.data.list_files(kept.space, "", "", 9).files
    }
    assert {"run/model/same": b"same", "run/model/other": b"two!"} == kept.read()
    assert before["run/model/same"] == after["run/model/same"]
    assert before["run/model/other"] < after["run/model/other"]
