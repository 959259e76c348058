"""What pages tell people to do first works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from bough import Client
from tests.api.served import Served
from tests.docs.blocks import find_fences
from tests.e2e.served import serving

ROOT = Path(__file__).parents[2]


def test_the_first_steps_of_the_readme_lead_to_a_workflow(tmp_path: Path):
    (script,) = (each for each in scripts(ROOT / "README.md") if "bough login" in each)
    with Served(tmp_path / "data", "--example", "--backend", "virtual") as server:
        script = script.replace("http://127.0.0.1:8265", server.address)
        script = script.replace(".bough/example", str(tmp_path / "data"))
        printed = run(script, tmp_path)

    assert "Logged in to " in printed
    assert "Workflow hello-1 has logs:" in printed


def test_the_page_of_the_server_sets_settings_and_lets_figures_be_read(tmp_path: Path):
    page = ROOT / "docs" / "server.md"
    (written,) = (each for each in scripts(page) if "bough token set" in each)
    # A command may go on in the next line; there is no backend that one could delete.
    commands = r"`(bough\s+config\s+(?!delete)[^`]*)`"
    found = re.findall(commands, page.read_text(encoding="utf-8"))
    said = [" ".join(each.split()) for each in found]
    assert len(said) >= 3

    with serving(tmp_path) as served:
        served.done("pool", "create", "team", "--quota", "4")
        login = f"export BOUGH_SERVER={served.address} BOUGH_TOKEN={served.token}\ncd {tmp_path}\n"
        for each in said:
            run(login + each, tmp_path)
        token = run(login + written, tmp_path).split()[-1]

        assert "bough_pool_quota_gpus" in Client(served.address, token).metrics()


def scripts(page: Path) -> list[str]:
    """What stands in the blocks of a page."""
    lines = page.read_text(encoding="utf-8").split("\n")
    return ["\n".join(lines[each.opening + 1 : each.closing]) for each in find_fences(lines)]


def run(script: str, folder: Path) -> str:
    """Run a script from the top of the project, with the commands at hand; what it printed."""
    programs = Path(sys.executable).parent
    ended = subprocess.run(
        ["/bin/bash", "-ec", script],
        env={
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "XDG_CONFIG_HOME": str(folder),
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (0, "") == (ended.returncode, ended.stderr), script
    return ended.stdout
