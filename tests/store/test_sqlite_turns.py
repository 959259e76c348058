"""Processes that write one SQLite file take turns."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from bough.errors import Unavailable
from bough.store import sqlite_turns
from bough.store.sqlite_turns import FileTurns

#: For a machine that is busy with other tests.
PATIENCE_S = 60


@pytest.fixture
def database(tmp_path: Path) -> str:
    path = tmp_path / "bough.db"
    path.touch()
    return str(path)


def test_one_that_has_just_written_waits_behind_one_that_waited(
    database: str, monkeypatch: pytest.MonkeyPatch
):
    busy, patient = FileTurns(database), FileTurns(database)
    waits = threading.Event()
    written: list[str] = []
    look = sqlite_turns.sleep

    def sleep(seconds: float) -> None:
        waits.set()
        look(seconds)

    def write() -> None:
        patient.take(PATIENCE_S)
        written.append("patient")
        patient.give_back()

    busy.take(PATIENCE_S)
    monkeypatch.setattr(sqlite_turns, "sleep", sleep)
    thread = threading.Thread(target=write)
    thread.start()
    assert waits.wait(PATIENCE_S)

    for _ in range(3):
        busy.give_back()
        busy.take(PATIENCE_S)
        written.append("busy")
    thread.join()
    assert ["patient", "busy", "busy", "busy"] == written


def test_one_whose_turn_does_not_come_is_told_so_and_leaves_nothing_locked(database: str):
    first, second, third = (FileTurns(database) for _ in range(3))
    first.take(PATIENCE_S)
    with pytest.raises(Unavailable, match="busy with other changes"):
        second.take(0.01)
    first.give_back()
    third.take(PATIENCE_S)


def test_what_a_process_held_that_is_gone_is_free(database: str):
    held = FileTurns(database)
    held.take(PATIENCE_S)
    held.close()
    FileTurns(database).take(PATIENCE_S)


def test_the_file_is_for_its_owner_alone(database: str):
    FileTurns(database).take(PATIENCE_S)
    about = os.stat(f"{database}.turns")
    assert (0o600, os.stat(database).st_uid) == (about.st_mode & 0o777, about.st_uid)
