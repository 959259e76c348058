"""The page about sharing a cluster is lived through: every command on it, in its order."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.api.served import Served

PAGE = Path(__file__).parents[2] / "docs" / "sharing.md"
NODE = """\
apiVersion: v1
kind: Node
metadata: {name: gpu-7}
status: {allocatable: {nvidia.com/gpu: "100", cpu: "400", memory: 2Ti, pods: "200"}}
"""


def test_every_command_of_the_page_does_what_it_says(tmp_path):
    (tmp_path / "nodes.yaml").write_text(NODE)
    options = ("--backend", "virtual", "--nodes", str(tmp_path / "nodes.yaml"))
    with Served(tmp_path / "data", *options) as server:
        environment = {
            **os.environ,
            "BOUGH_SERVER": server.address,
            "BOUGH_TOKEN": server.token,
            "XDG_CONFIG_HOME": str(tmp_path),
        }
        failed = []
        for command in commands():
            ended = subprocess.run(
                [sys.executable, "-m", *command],
                env=environment,
                cwd=tmp_path,
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
            if ended.returncode:
                failed.append((command, ended.stderr))
        assert [] == failed
        subpool = server.get("/api/configs/pool/vision/subpool/labels")
        assert ("ARCHIVED", "research") == (
            subpool["subpool_state"],
            server.get("/api/configs/pool/vision")["cohort"],
        )


def commands() -> list[list[str]]:
    """The commands in blocks and in the text, as words."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.findall(r"^(bough .*)$|`(bough [^`]*)`", text, re.MULTILINE)
    words = [shlex.split(block or inline, comments=True) for block, inline in found]
    assert len(words) > 25
    # What waits for input, and what goes into a file, is the shell's.
    return [line[: line.index(">")] if ">" in line else line for line in words if "ID…" not in line]
