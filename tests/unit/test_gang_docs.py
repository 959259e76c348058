"""What docs/gangs.md shows of the program is what the program prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from bough.cli.main import run

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```console\n\$ (?P<command>bough .*)\n(?P<output>(?:.*\n)*?)```\n")
SHOWN = [
    (match["command"], match["output"])
    for match in BLOCK.finditer((ROOT / "docs/gangs.md").read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[command for command, _ in SHOWN])
def test_the_output_that_is_shown_is_real(command: str, output: str, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    run(shlex.split(command)[1:])
    assert output == capsys.readouterr().out


def test_the_page_shows_both_commands():
    assert {"show", "check"} == {command.split()[2] for command, _ in SHOWN}
