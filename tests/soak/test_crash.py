"""As tests/e2e/test_crash.py, ten times as long; and keepers are killed, and the disk is full."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from tests.crash.crashes import crash, say, scene, seed_of_this_run
from tests.crash.laws import FOLLOWED_OR_LOST
from tests.crash.postgres import cannot, durable_postgres

ROOT = Path(__file__).parents[2]
KILLS = 200
BUDGET_S = 3_600


def test_a_server_that_is_killed_two_hundred_times_loses_nothing_on_sqlite(tmp_path: Path):
    with scene(tmp_path, seed_of_this_run()) as now:
        assert KILLS == crash(now, KILLS, BUDGET_S)
        now.settle()


def test_a_server_that_is_killed_two_hundred_times_loses_nothing_on_postgresql(tmp_path: Path):
    with durable_postgres() as postgres, scene(tmp_path, seed_of_this_run(), postgres.url) as now:
        assert KILLS == crash(now, KILLS, BUDGET_S)
        now.settle()


def test_keepers_and_wardens_that_are_killed_under_load_lose_nothing(tmp_path: Path):
    with scene(tmp_path, seed_of_this_run()) as now:
        with now.load.running():
            for number in range(20):
                time.sleep(now.random.uniform(0.2, 0.8))
                found = now.server.keepers() if number % 4 else now.server.wardens()
                if found:
                    with suppress(ProcessLookupError):
                        os.kill(now.random.choice(found), signal.SIGKILL)
        now.settle(FOLLOWED_OR_LOST)


def test_a_full_disk_takes_nothing_on_and_loses_nothing(tmp_path: Path):
    alone = ["unshare", "--mount", "--propagation", "private"]
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"], check=False).returncode:
        cannot("No disk can be mounted: that needs root, and namespaces of mounts.")
    command = [*alone, sys.executable, "-m", "tests.crash.disk", tmp_path, str(seed_of_this_run())]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    say(done.stdout)
    assert 0 == done.returncode, done.stderr
