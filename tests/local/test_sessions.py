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

from bough.backends.local.task_command import SandboxKind
from bough.errors import Conflict
from bough.model.session import SessionKind, SessionRequest
from bough.websocket.frames import BINARY, frame
from tests.local import networking
from tests.local.bench import PATIENCE_S, Bench, processes_of, until
from tests.local.reaching import Line

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


@needs_all
def test_what_a_session_discards_goes_to_a_device_of_its_task(tmp_path):
    """By another mount, as that of the machine, root could change the mode and owner of it."""
    bench = Bench(tmp_path, private=True)
    try:
        task = bench.shell("echo up; exec sleep 1000")
        bench.start(task)
        bench.wait_text(task.attempt, "up")
        before = set(processes_of(task.attempt))
        line = Line(bench, task.attempt, SessionRequest(SessionKind.RSYNC))
        control = line.connect()
        control.sendall(frame(BINARY, b'{"key": "one"}', masked=True))
        assert "one" == line.news().key
        with line.connect("one"), control:
            (serving, *_) = until(lambda: sorted(set(processes_of(task.attempt)) - before))
            text = Path(f"/proc/{serving}/fdinfo/2").read_text()
            (number,) = (each[7:].strip() for each in text.splitlines() if each[:7] == "mnt_id:")
            mounts = Path(f"/proc/{serving}/mountinfo").read_text().splitlines()
            found = [each.split()[4] for each in mounts if each.split()[0] == number]
        line.socket.close()
        # The second where the server may not make devices.
        assert found in (["/dev"], ["/dev/null"])
    finally:
        bench.end()
