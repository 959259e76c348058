"""The commands of docs/kubernetes.md, run as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.bed.process import free_port

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "kubernetes.md"
MARK = f"<!-- run by {Path(__file__).relative_to(ROOT)} -->"
#: Says what the commands led to, and ends it as the page says.
THEN = """
echo "$KUBECONFIG"
kill %2 %1
wait
"""


def commands() -> str:
    """The blocks below the marks."""
    found = re.findall(re.escape(MARK) + r"\n```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert 2 == len(found)
    return "".join(found)


def test_the_commands_of_the_page_run_a_gang_on_a_cluster_of_which_then_nothing_is_left(
    bed: Bed, tmp_path: Path
) -> None:
    # The page is about a checkout; what it writes goes elsewhere.
    for name in ("Makefile", "docs", "tests", "src", "scripts", ".venv", "requirements"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "pyproject.toml").symlink_to(ROOT / "pyproject.toml")
    surroundings = {**os.environ, "KUBECONFIG": "", "BOUGH_PORT": str(free_port())}

    done = subprocess.run(
        ["/bin/bash", "-e", "-m", "-c", commands() + THEN],
        cwd=tmp_path,
        env=surroundings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )

    lines = done.stdout.splitlines()
    states = [line.split()[1] for line in lines if line.startswith("worker-")]
    written = [line for line in lines if line.endswith("] a line of the bed")]
    assert (["COMPLETED"] * 4, 4) == (states, len(written))
    kubeconfig = Path(lines[-1])
    assert bed.kubeconfig != kubeconfig
    assert "kubeconfig" == kubeconfig.name
    assert not kubeconfig.exists()
