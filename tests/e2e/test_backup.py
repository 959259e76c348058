"""A site is backed up and restored by the commands, while its server and its tasks run."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.e2e.local import Hosting, Local, find_processes
from tests.e2e.served import PROGRAM


def bough(host: Hosting, *arguments: str) -> Any:
    """Run a command on the server's machine; its answer for programs."""
    done = subprocess.run(
        [PROGRAM, *arguments, "-t", "json", *host.database_options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done
    return json.loads(done.stdout)


def test_a_site_is_as_it_was_when_it_was_backed_up_while_its_server_runs(
    host: Hosting, tmp_path: Path
):
    local = host.start()
    local.pool("team", 50)
    kept = local.run("team", 4, "NORMAL", name="kept")
    ends = local.run("team", 2, "NORMAL", name="ends")
    processes = local.mains(kept)
    file = tmp_path / "site.backup"

    made = bough(host, "backup", str(file))

    assert made["rows"] > 0
    assert made["with_key"] is False
    assert 0o600 == os.stat(file).st_mode & 0o777
    # What happens after the backup is not in it.
    local.finish(ends)
    later = local.run("team", 3, "NORMAL", name="later")
    (stray,) = local.mains(later)
    local.pool("other", 10)
    refused = subprocess.run(
        [PROGRAM, "restore", str(file), *host.database_options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert 2 == refused.returncode
    assert "error: The database is not empty." in refused.stderr

    assert made["rows"] == bough(host, "restore", str(file), "--replace")["rows"]

    assert_restored(local, kept, ends, stray.attempt)
    assert processes == local.mains(kept)
    again = local.run("team", 3, "NORMAL", name="again")
    local.finish(kept, again)
    assert ["COMPLETED", "COMPLETED", "COMPLETED"] == local.statuses(kept, ends, again)


def assert_restored(local: Local, kept: str, ends: str, stray: str) -> None:
    """What was there is there, what ended since has ended, and what came later is gone."""
    local.settle(RUNNING=[kept], COMPLETED=[ends])
    names = [each["name"] for each in local.json("workflow", "list", "--all-users")["workflows"]]
    assert {kept, ends} == set(names)
    assert "other" not in local.client.pools.list()
    local.until(lambda: stray not in [each.attempt for each in find_processes()])


def test_a_site_is_moved_to_another_machine_with_its_key(host: Hosting, tmp_path: Path):
    local = host.start()
    local.pool("team", 50)
    local.done("credential", "set", "key", "--type", "GENERIC", "--payload", "word=secret")
    file = tmp_path / "site.backup"
    assert bough(host, "backup", str(file), "--with-key")["with_key"] is True
    host.stop()
    data = tmp_path / "elsewhere"
    data.mkdir()
    target = Hosting(data, 4)

    done = bough(target, "restore", str(file))

    assert [] == done["warnings"]
    assert 0o600 == os.stat(target.data / "credential-key").st_mode & 0o777
    (target.data / "admin-token").write_text(local.token)
    try:
        moved = target.start()
        # The backend of the old machine is left to an administrator, who can declare it lost.
        shown = moved.json("credential", "list")["credentials"]
        assert ["key"] == [each["cred_name"] for each in shown]
        assert "team" in moved.client.pools.list()
    finally:
        target.stop()
