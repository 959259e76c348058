"""The network of a task: its group, a way out, and no way to this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bough.backends.local.options import LocalOptions, TaskNetwork
from bough.backends.local.sandbox import network_probe
from bough.backends.local.sandbox.network import NetworkSetup
from bough.backends.local.sandbox.network_probe import NetworkTrial, choose_network
from bough.backends.local.task_command import SandboxKind
from bough.errors import Invalid
from bough.model.backend import Sight, Start
from tests.local import networking
from tests.local.bench import PATIENCE_S, Bench

_MISSING = [
    name
    for name in ("slirp4netns", "bwrap", "ip", "nsenter", networking.PYTHON)
    if shutil.which(name) is None
]
needs_all = pytest.mark.skipif(
    os.environ.get("CI") != "true" and (os.geteuid() != 0 or bool(_MISSING)),
    reason=f"NETWORKS OF TASKS ARE NOT TESTED: that takes root and {_MISSING}",
)


@needs_all
@pytest.mark.parametrize("kind", list(SandboxKind))
def test_a_task_reaches_its_group_and_other_machines_and_nothing_of_this_one(kind):
    # Not in /tmp, which tasks do not see anyway.
    with tempfile.TemporaryDirectory(prefix="bough-", dir="/var/lib") as folder:
        Path(folder).chmod(0o755)
        ended = subprocess.run(
            [sys.executable, "-m", "tests.local.networking", kind, folder],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=2 * PATIENCE_S,
        )
    assert 0 == ended.returncode, ended.stderr
    told = json.loads(ended.stdout)
    nothing_here = {"gateway": "nothing", "here": "nothing", "abstract": "nothing"}
    outside = {"elsewhere": "elsewhere", "resolver": "10.0.2.3"}
    in_the_group = {"peer": "peer", **nothing_here, **outside}
    # Tasks that started together; one that came later, also after a restart of the server.
    for when in ("together", "later", "after a restart"):
        assert in_the_group == told[when], when
    assert in_the_group | {"peer": "nothing"} == told["other group"]
    # The server reaches into the network of a group, and of this group alone.
    assert ("peer", "peer") == (told["server"], told["server, after a restart"])
    assert told["server, other group"].startswith("Cannot connect to 127.0.0.1:")
    # The task listens on the server's port, and has not got it when the server is dead.
    assert ConnectionRefusedError is type(OSError(told["the server's port"], ""))
    # Nothing is left once the supervisor was killed.
    assert (True, [], []) == (told["own network"], told["left"], told["records"])
    assert [] == [each for each in told["warnings"] if "network" in each or "REACH" in each]


@needs_all
def test_a_task_without_a_way_out_still_reaches_its_group(tmp_path):
    bench = Bench(tmp_path, private=True, network=TaskNetwork.NONE)
    try:
        attempt = bench.run_shell("ls /sys/class/net > /dev/null; cat /proc/net/dev")
        bench.wait_over(attempt)
        names = [line.split(":")[0].strip() for line in bench.texts(attempt)[2:]]
        assert ["lo"] == [each for each in names if not each.startswith(("sit", "ip6", "tun"))]
        assert () == tuple(each for each in bench.backend.warnings if "REACH" in each)
    finally:
        bench.end()


@needs_all
def test_tasks_of_an_older_version_and_later_ones_of_their_group_share_a_network(tmp_path):
    bench = Bench(tmp_path, private=True, network=TaskNetwork.HOST)
    try:
        # As supervisors of older versions do, those of a server with this setting make none.
        old = bench.run_shell("echo ready; sleep 1000")
        bench.wait_running(old)
        bench.options = LocalOptions(
            folder=bench.options.folder, gpus=8, limits=False, network=TaskNetwork.NONE
        )
        bench.restart()
        own = os.readlink("/proc/self/ns/net")
        for group, expected in (("group", True), ("another", False)):
            launch = bench.launch("readlink", "/proc/self/ns/net")
            bench.backend.start(Start("flow-1", group, (launch,)))
            assert Sight.ENDED is bench.wait_over(launch.attempt).sight
            assert expected is (own == bench.texts(launch.attempt)[0])
    finally:
        bench.end()


def options(network: TaskNetwork, **more) -> LocalOptions:
    return LocalOptions(Path("folder"), network=network, **more)


def choose(monkeypatch, trial: NetworkTrial, network: TaskNetwork, **more):
    monkeypatch.setattr(network_probe, "try_network", lambda _: trial)
    return choose_network(options(network, **more), SandboxKind.NAMESPACES)


def test_sharing_the_network_of_the_machine_is_warned_of():
    setup, (warning,) = choose_network(options(TaskNetwork.HOST), SandboxKind.NAMESPACES)
    assert setup is None
    assert "tasks share this machine's network (--task-network host)" in warning


def test_without_slirp4netns_there_is_no_way_out_and_the_start_says_so_loudly(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    setup, (warning,) = choose(monkeypatch, NetworkTrial(), TaskNetwork.OWN)
    assert (NetworkSetup, None) == (type(setup), setup and setup.slirp)
    assert warning.startswith("TASKS CANNOT REACH ANY OTHER MACHINE")
    assert "slirp4netns is not installed" in warning
    assert () == choose(monkeypatch, NetworkTrial(), TaskNetwork.NONE)[1]


def test_where_no_network_can_be_made_that_of_the_machine_is_shared_unless_forbidden(monkeypatch):
    trial = NetworkTrial("its network cannot be made: Operation not permitted")
    setup, (warning,) = choose(monkeypatch, trial, TaskNetwork.OWN)
    assert setup is None
    assert "because its network cannot be made: Operation not permitted" in warning
    with pytest.raises(Invalid, match="Tasks cannot have networks of their own"):
        choose(monkeypatch, trial, TaskNetwork.NONE)
    with pytest.raises(Invalid, match="no private view"):
        choose_network(options(TaskNetwork.NONE), None)


def test_that_containers_share_the_network_of_the_machine_is_said(monkeypatch):
    _, warnings = choose(monkeypatch, NetworkTrial(), TaskNetwork.NONE, container_runner="docker")
    assert any("that run in their images share this machine's network" in each for each in warnings)
