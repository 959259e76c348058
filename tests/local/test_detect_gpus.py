"""GPUs are found by asking nvidia-smi, and offered where an option says so."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.backends.local import detect_gpus as gpus_module
from bough.backends.local.detect_gpus import MEBIBYTE, Gpu, find_gpus
from bough.backends.local.detect_nodes import (
    count_cpu_milli,
    count_memory,
    find_nodes,
    host_name,
    number_gpus,
)
from bough.backends.local.options import LocalOptions
from bough.backends.local.sandbox.cgroup_mounts import read_hierarchies
from bough.model.names import plain_name_fault
from bough.model.pool import OfferedNode


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a program of that name before all others."""

    def install(script: str) -> None:
        program = tmp_path / "bin" / "nvidia-smi"
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\n" + script)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    return install


def test_gpus_are_told_by_number_name_and_memory(nvidia_smi):
    nvidia_smi(
        'test "$*" = "--query-gpu=index,uuid,name,memory.total --format=csv,noheader" || exit 9\n'
        "echo '1, GPU-b, NVIDIA H100 80GB HBM3, 81559 MiB'\n"
        "echo '0, GPU-a, NVIDIA H100 80GB HBM3, 81559 MiB'\n"
    )

    expected = tuple(
        Gpu(index, uuid, "NVIDIA H100 80GB HBM3", 81_559 * MEBIBYTE)
        for index, uuid in ((0, "GPU-a"), (1, "GPU-b"))
    )
    assert (expected, ()) == find_gpus()


def test_a_gpu_that_shares_the_memory_of_the_machine_is_a_gpu(nvidia_smi):
    nvidia_smi("echo '0, GPU-a, NVIDIA GB10, [N/A]'")

    assert ((Gpu(0, "GPU-a", "NVIDIA GB10", None),), ()) == find_gpus()


def test_a_machine_without_the_program_has_no_gpus_and_nothing_is_wrong(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))

    assert ((), ()) == find_gpus()


def test_a_program_that_fails_is_told_with_what_it_said(nvidia_smi):
    nvidia_smi('echo "couldn\'t communicate with the NVIDIA driver" >&2; exit 9')

    warning = (
        "nvidia-smi failed with exit code 9: no GPUs were found "
        "(couldn't communicate with the NVIDIA driver)"
    )
    assert ((), (warning,)) == find_gpus()


def test_a_program_that_hangs_is_not_waited_for(nvidia_smi):
    nvidia_smi("exec sleep 600")

    assert (
        (),
        ("nvidia-smi did not answer within 0.2 seconds: no GPUs were found",),
    ) == find_gpus(timeout_s=0.2)


def test_a_program_that_cannot_be_run_is_told(nvidia_smi, tmp_path):
    nvidia_smi("")
    (tmp_path / "bin" / "nvidia-smi").write_bytes(b"\x7fELF nonsense")

    assert (
        (),
        ("nvidia-smi cannot be run (Exec format error): no GPUs were found",),
    ) == find_gpus()


def test_what_is_not_understood_is_told_and_the_rest_is_used(nvidia_smi):
    nvidia_smi("printf 'Hello\\033[31m\\n0, GPU-a, A100, 10 MiB\\n0, GPU-b, A100, 10 MiB\\n'")

    assert (
        (Gpu(0, "GPU-a", "A100", 10 * MEBIBYTE),),
        (
            "nvidia-smi wrote a line that is not understood: Hello [31m",
            "nvidia-smi told GPU 0 twice; the first one counts",
        ),
    ) == find_gpus()


@given(st.text())
def test_whatever_the_program_writes_is_read(text: str):
    found, warnings = gpus_module._read(text)

    assert len(text.splitlines()) >= len(found) + len(warnings)
    assert sorted({each.index for each in found}) == [each.index for each in found]


def test_the_machine_is_one_node_with_what_it_has(nvidia_smi, tmp_path):
    nvidia_smi("echo '0, GPU-a, NVIDIA A100, 10 MiB'")

    (machine,), warnings = find_nodes(LocalOptions(tmp_path / "not" / "yet" / "there"))

    assert () == warnings
    assert (host_name(), 1) == (machine.name, machine.gpus)
    assert 0 < machine.cpu_milli <= 1_000 * (os.cpu_count() or 1)
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < machine.memory_bytes <= pages
    assert 0 < machine.storage_bytes
    assert "NVIDIA-A100" == machine.labels["nvidia.com/gpu.product"]


def test_gpus_that_are_offered_come_with_the_machines_own_cpus_memory_and_disk(tmp_path):
    (machine,), (warning,) = find_nodes(LocalOptions(tmp_path, gpus=100))

    assert (100, count_cpu_milli(), count_memory(), shutil.disk_usage(tmp_path).total) == (
        machine.gpus,
        machine.cpu_milli,
        machine.memory_bytes,
        machine.storage_bytes,
    )
    assert machine.cpu_milli <= 1_000 * (os.cpu_count() or 1)
    assert (
        f"100 GPUs are offered, whatever this machine has, with {machine.cpu_milli // 1_000} CPUs "
        f"and {machine.memory_bytes // 2**30} GiB of memory"
    ) == warning


def test_cpus_memory_and_disk_that_are_told_are_offered_instead(tmp_path):
    options = LocalOptions(
        tmp_path, gpus=2, cpu_milli=500_000, memory_bytes=2**50, storage_bytes=2**55
    )

    (machine,), (warning,) = find_nodes(options)

    told = (machine.cpu_milli, machine.memory_bytes, machine.storage_bytes)
    assert (500_000, 2**50, 2**55) == told
    assert warning.endswith("with 500 CPUs and 1048576 GiB of memory")


def test_gpus_are_offered_where_there_are_none(nvidia_smi, tmp_path):
    options = LocalOptions(tmp_path)
    nvidia_smi("true")
    (machine,), (warning,) = find_nodes(options)
    assert (8, True) == (machine.gpus, warning.startswith("8 GPUs are offered"))

    nvidia_smi("echo '0, GPU-a, NVIDIA A100, 10 MiB'")
    (machine,), warnings = find_nodes(options)
    assert (1, ()) == (machine.gpus, warnings)


def test_no_gpus_are_made_up_where_those_that_are_there_cannot_be_asked(nvidia_smi, tmp_path):
    nvidia_smi("echo driver mismatch >&2; exit 18")

    (machine,), (warning,) = find_nodes(LocalOptions(tmp_path))

    assert 0 == machine.gpus
    assert "nvidia-smi failed with exit code 18: no GPUs were found (driver mismatch)" == warning


def test_nodes_that_are_told_are_offered_as_they_are(tmp_path):
    nodes = (OfferedNode("a", gpus=8), OfferedNode("b", gpus=4))

    assert (
        nodes,
        ("2 nodes are offered as told, whatever this machine has; tasks run here",),
    ) == find_nodes(LocalOptions(tmp_path, nodes=nodes))


def test_the_name_of_the_host_is_made_a_valid_name(monkeypatch):
    for name in ("gpu-box", "gpu_box.example.org", "7of9", "-x-", "", "grün mit leer", "9" * 300):
        monkeypatch.setattr("socket.gethostname", lambda name=name: name)

        assert (name, None) == (name, plain_name_fault("Node", host_name()))


def test_gpus_that_were_found_are_shared_out_between_the_nodes():
    found = tuple(Gpu(index, f"GPU-{index}", "x") for index in (0, 2, 3, 5))
    nodes = (OfferedNode("a", gpus=1), OfferedNode("b", gpus=3))

    assert {"a": (0,), "b": (2, 3, 5)} == number_gpus(nodes, found)


def test_gpus_that_are_only_offered_are_counted_from_0_on_each_node():
    nodes = (OfferedNode("a", gpus=2), OfferedNode("b", gpus=3))

    assert {"a": (0, 1), "b": (0, 1, 2)} == number_gpus(nodes)


MOUNTS = """\
25 1 8:1 / / rw - ext4 /dev/sda rw
31 25 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755
32 31 0:29 /docker/ab /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
33 31 0:30 / /sys/fs/cgroup/mem\\040ory rw - cgroup cgroup rw,memory
34 31 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate
"""
OWN = "4:memory:/a/b\n2:cpu,cpuacct:/docker/ab/c\n1:name=systemd:/x\n0::/../outside\n"


def test_control_groups_of_both_versions_are_found_where_they_are_mounted():
    found = read_hierarchies(MOUNTS, OWN)

    assert [
        (("cpu", "cpuacct"), "/sys/fs/cgroup/cpu,cpuacct/c"),
        (("memory",), "/sys/fs/cgroup/mem ory/a/b"),
        (("unified",), "/sys/fs/cgroup/unified"),
    ] == [(each.controllers, str(each.own)) for each in found]
    assert ["b", "a", "mem ory"] == [each.name for each in found[1].ancestors()]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "150000 100000"}, 1_500),
        ({"cpu.max": "max 100000"}, None),
        ({"cpu.cfs_quota_us": "50000", "cpu.cfs_period_us": "100000"}, 500),
        ({"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000"}, None),
        ({"cpu.max": "nonsense"}, None),
        ({}, None),
    ],
)
def test_a_quota_of_cpus_is_respected(files, expected, tmp_path):
    from bough.backends.local.detect_nodes import _cpu_quota

    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n")

    assert expected == _cpu_quota(tmp_path)
