"""What the page about the server tells an administrator to do works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from bough import Client
from tests.docs.blocks import find_fences
from tests.e2e.served import serving

PAGE = Path(__file__).parents[2] / "docs" / "server.md"


def test_the_page_of_the_server_sets_settings_and_lets_figures_be_read(tmp_path: Path):
    text = PAGE.read_text(encoding="utf-8")
    lines = text.split("\n")
    scripts = ["\n".join(lines[each.opening + 1 : each.closing]) for each in find_fences(lines)]
    written = [script for script in scripts if "bough token set" in script]
    said = re.findall(r"`(bough config [^`]*)`", text)
    assert (1, True) == (len(written), len(said) >= 3)

    with serving(tmp_path) as served:
        served.done("pool", "create", "team", "--quota", "4")
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "BOUGH_SERVER": served.address,
            "BOUGH_TOKEN": served.token,
        }
        printed = ""
        for script in (*said, *written):
            ended = subprocess.run(
                ["/bin/bash", "-ec", script],
                env=environment,
                cwd=tmp_path,
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
            assert (0, "") == (ended.returncode, ended.stderr), script
            printed = ended.stdout
        token = printed.split()[-1]

        assert "bough_pool_quota_gpus" in Client(served.address, token).metrics()
