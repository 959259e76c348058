"""Sessions by the backend alone: in every kind of sandbox, and where there is none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bough.backends.local.command import SandboxKind
from bough.errors import Conflict
from bough.model.session import SessionKind, SessionRequest
from tests.local import networking
from tests.local.bench import PATIENCE_S, Bench

needs_all = pytest.mark.skipif(
    os.environ.get("CI") != "true"
    and (
        os.geteuid() != 0 or shutil.which("bwrap") is None or not Path(networking.PYTHON).exists()
    ),
    reason="SESSIONS IN SANDBOXES ARE NOT TESTED: that takes root, bwrap and python3",
)


@needs_all
@pytest.mark.parametrize("kind", list(SandboxKind))
def test_a_session_is_in_the_namespaces_of_its_task_in_every_kind_of_sandbox(kind):
    with tempfile.TemporaryDirectory(prefix="bough-", dir="/var/lib") as folder:
        Path(folder).chmod(0o755)
        ended = subprocess.run(
            [sys.executable, "-m", "tests.local.reaching", kind, folder],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=2 * PATIENCE_S,
        )
    assert 0 == ended.returncode, ended.stderr
    told = json.loads(ended.stdout)
    assert told["task"] == told["session"]
    assert os.readlink("/proc/self/ns/mnt") not in told["session"]
    assert os.readlink("/proc/self/ns/net") not in told["session"]
    assert ([{"exit_code": 5, "message": ""}], [True, 5]) == (told["status"], told["ended"])
    assert "of the task" == told["port"]
    assert [] == told["left"]


def test_without_a_network_of_its_own_no_port_is_forwarded(tmp_path):
    bench = Bench(tmp_path, private=False)
    try:
        task = bench.shell("echo up; exec sleep 1000")
        bench.start(task)
        bench.wait_text(task.attempt, "up")
        with pytest.raises(Conflict, match="shares the network of its machine"):
            bench.backend.open_session(task.attempt, SessionRequest(SessionKind.PORT_FORWARD))
        os.close(bench.backend.open_session(task.attempt, SessionRequest(SessionKind.EXEC)))
        bench.stop(task.attempt)
        bench.wait_over(task.attempt)
        with pytest.raises(Conflict, match="does not run"):
            bench.backend.open_session(task.attempt, SessionRequest(SessionKind.EXEC))
    finally:
        bench.end()
