"""All rows of a database as a file, and back; from one kind of database into the other."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa

from bough.errors import BoughError, Conflict, Invalid
from bough.store.dump import DumpHead, check_dump, load_dump, write_dump
from bough.store.migration import FOUNDATION, upgrade
from bough.store.schema import METADATA
from tests.store.usecases import Store, event_order
from tests.store.world import World, newest_revision

#: What is said of the transactions that wrote events, which are others after a restore.
OF_TRANSACTIONS = ("written_in", "begun_after")


def quiet(_table: str, _rows: int) -> None:
    """Progress that is not shown."""


def write(store: Store, path: Path, key: str | None = None) -> int:
    def head(revision: str, numbers: dict[str, int]) -> DumpHead:
        return DumpHead("0.1.0", "2026-11-16T00:00:00+00:00", revision, numbers, key=key)

    with path.open("wb") as file:
        return write_dump(store, file, head, quiet)


def contents(store: Store) -> dict[str, list[dict[str, object]]]:
    """All rows, as far as they are not about one database alone."""
    found: dict[str, list[dict[str, object]]] = {}
    with store.read() as connection:
        for table in METADATA.sorted_tables:
            if table.name == "leadership":
                continue
            rows = connection.execute(sa.select(table).order_by(*table.primary_key)).mappings()
            found[table.name] = [
                {name: value for name, value in row.items() if name not in OF_TRANSACTIONS}
                for row in rows
                if row.get("name") not in ("restored", "version", "setup", "access")
            ]
    return found


@pytest.fixture
def busy(team: World) -> World:
    """A site in which much has happened."""
    team.split(a=30, b=40)
    team.user("alice", "osmo-team-user")
    done = team.run(10)
    team.run(20, "team--a")
    team.submit(30)
    team.settle()
    team.finish(done)
    team.settle()
    return team


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path):
    """An empty database of either kind."""
    if request.param == "sqlite":
        store = Store.open(tmp_path / "restored.db")
    else:
        store = Store.open(request.getfixturevalue("postgres").make(migrated=False))
    yield store
    store.close()


def test_a_database_comes_back_as_it_was_in_either_kind_of_database(
    busy: World, empty: Store, tmp_path: Path
):
    path = tmp_path / "dump"
    before = contents(busy.site.store)
    rows = write(busy.site.store, path)

    load_dump(empty, path, "first", replace=False, tell=quiet)

    assert before == contents(empty)
    # The version and the setup are not compared: they go on from those that were there before.
    assert rows == sum(map(len, before.values())) + 2
    assert newest_revision() == check_dump(path)[0].revision
    # A site goes on there, and gives no number twice.
    assert next_number(empty) > max(map(number_of, before["audit"]))


def number_of(row: dict[str, object]) -> int:
    return int(str(row["number"]))


def next_number(store: Store) -> int:
    """Of an entry of the audit that is written now."""
    entry = sa.insert(METADATA.tables["audit"]).values(
        at_ms=0, actor="admin", origin="", action="test", subject="test"
    )
    with store.write() as connection:
        return connection.execute(entry).inserted_primary_key[0]


def test_what_is_there_is_replaced_only_where_that_is_said_and_numbers_go_on(
    busy: World, tmp_path: Path
):
    path = tmp_path / "dump"
    before = contents(busy.site.store)
    write(busy.site.store, path)
    busy.submit(3)
    busy.pool("later", 0)
    after = contents(busy.site.store)
    with pytest.raises(Conflict, match="The database is not empty"):
        load_dump(busy.site.store, path, "first", replace=False, tell=quiet)
    assert after == contents(busy.site.store)

    load_dump(busy.site.store, path, "first", replace=True, tell=quiet)

    assert before == contents(busy.site.store)
    assert next_number(busy.site.store) > max(map(number_of, after["audit"]))


def test_a_dump_of_an_older_revision_is_migrated(databases, tmp_path: Path):
    old = Store.open(databases.make(migrated=False))
    upgrade(old, FOUNDATION)
    path = tmp_path / "dump"
    head = DumpHead("0.0.1", "2026-01-01T00:00:00+00:00", FOUNDATION, {})
    row = {"name": "team", "gpu_guarantee": 8, "gpu_weight": 1, "config": {}, "created_ms": 0}
    event = {"number": 7, "at_ms": 0, "kind": "pool.changed", "subject": "team", "message": ""}
    write_lines(path, head, ["pools", row], ["events", {**event, "written_in": 900_000_000}])
    load_dump(old, path, "first", replace=True, tell=quiet)
    with old.read() as connection:
        assert [7] == [each.number for each in event_order.events_after(connection, 0)]
    found = contents(old)["pools"]
    assert [("team", 8)] == [(each["name"], each["gpu_guarantee"]) for each in found]
    old.close()


def write_lines(path: Path, head: DumpHead, *rows: object) -> None:
    """A dump with these rows."""
    lines = b"".join(msgspec.json.encode(each) + b"\n" for each in (head, *rows))
    end = {"rows": len(rows), "sha256": hashlib.sha256(lines).hexdigest()}
    path.write_bytes(gzip.compress(lines + msgspec.json.encode(end) + b"\n"))


def flip(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]


def change_a_row(content: bytes) -> bytes:
    return gzip.compress(gzip.decompress(content).replace(b'"team"', b'"tean"', 1))


def drop_the_end(content: bytes) -> bytes:
    lines = gzip.decompress(content).splitlines(keepends=True)
    return gzip.compress(b"".join(lines[:-1]))


def drop_a_row(content: bytes) -> bytes:
    lines = gzip.decompress(content).splitlines(keepends=True)
    return gzip.compress(b"".join((*lines[:3], *lines[4:])))


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda _: b"", "is empty"),
    "cut in the middle": (lambda content: content[: len(content) // 2], "its end is missing"),
    "cut by one byte": (lambda content: content[:-1], "its end is missing"),
    "without its last line": (drop_the_end, "its end is missing"),
    "with a flipped byte": (flip, "damaged"),
    "with a changed row": (change_a_row, "its checksum is wrong"),
    "without a row": (drop_a_row, "its checksum is wrong"),
    "text": (lambda _: b"workflow: {}\n", "is not a backup of Bough"),
    "another gzip": (lambda _: gzip.compress(b"{}\n"), "is not a backup of Bough"),
    "an SQLite file": (lambda _: b"SQLite format 3\0" + bytes(4_080), "is not a backup of Bough"),
}


def test_a_file_that_is_no_whole_dump_is_refused_and_changes_nothing(busy: World, tmp_path: Path):
    whole, path = tmp_path / "whole", tmp_path / "dump"
    write(busy.site.store, whole)
    before = contents(busy.site.store)
    for change, said in DAMAGES.values():
        path.write_bytes(change(whole.read_bytes()))
        with pytest.raises(Invalid) as caught:
            load_dump(busy.site.store, path, "first", replace=True, tell=quiet)
        assert said in caught.value.message
        assert str(path) in caught.value.message
    assert before == contents(busy.site.store)


def test_a_dump_of_a_newer_program_is_refused_by_name(busy: World, tmp_path: Path):
    path = tmp_path / "dump"
    newer = DumpHead("9.0.0", "2036-01-01T00:00:00+00:00", "9999", {})
    for head, said in ((newer, "revision 9999"), (DumpHead("9", "", "1", {}, form=2), "form 2")):
        write_lines(path, head)
        with pytest.raises(BoughError, match=said) as caught:
            load_dump(busy.site.store, path, "first", replace=True, tell=quiet)
        assert "made by version 9" in str(caught.value.hint)


def test_rows_that_do_not_fit_change_nothing(busy: World, tmp_path: Path):
    path = tmp_path / "dump"
    head = DumpHead("0.1.0", "2026-01-01T00:00:00+00:00", newest_revision(), {})
    before = contents(busy.site.store)
    for row in (["nothing", {}], ["pools", {"name": "team"}], ["pools", {"colour": "red"}]):
        write_lines(path, head, row)
        with pytest.raises(BoughError):
            load_dump(busy.site.store, path, "first", replace=True, tell=quiet)
        assert before == contents(busy.site.store)
