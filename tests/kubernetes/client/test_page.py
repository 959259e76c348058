"""The commands of docs/kubernetes.md, run as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from bough.kube.client import Client
from bough.kube.kubeconfig import find_access
from bough.kube.objects import NODES
from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.bed.objects import GPU

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "kubernetes.md"
MARK = f"<!-- run by {Path(__file__).relative_to(ROOT)} -->"
#: Says what the commands led to, and waits until the test has looked.
THEN = """
echo "$KUBECONFIG"
read -r done
kill %1
wait %1
"""


def commands() -> str:
    """The block below the mark."""
    found = re.findall(re.escape(MARK) + r"\n```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert 1 == len(found)
    return found[0]


def test_the_commands_of_the_page_start_a_cluster_that_goes_when_its_process_does(
    bed: Bed, tmp_path: Path
) -> None:
    # The page is about a checkout; what it writes goes elsewhere.
    for name in ("Makefile", "tests", "src", "scripts", ".venv", "requirements", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    with subprocess.Popen(
        ["/bin/bash", "-e", "-m", "-c", commands() + THEN],
        cwd=tmp_path,
        env={**os.environ, "KUBECONFIG": ""},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        lines = iter(shell.stdout.readline, "")
        kubeconfig = next(line.strip() for line in lines if line.strip().endswith("/kubeconfig"))
        assert str(bed.kubeconfig) != kubeconfig
        client = Client(find_access(kubeconfig, None, {}))
        gpus = [(each.status.allocatable or {}).get(GPU) for each in client.list(NODES).items]
        client.close()
        shell.stdin.write("done\n")
        shell.stdin.flush()
        shell.stdin.close()
        shell.wait()
    assert ["8"] * 8 == gpus
    assert not Path(kubeconfig).exists()
