"""What pages tell people to write is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bough.cli.main import run
from bough.model.settings import WorkflowSettings

ROOT = Path(__file__).parents[2]


def test_every_variable_that_a_page_names_exists():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = {name for page in pages for name in _variables(page)}
    known = {name for module in (ROOT / "src").rglob("*.py") for name in _variables(module)}

    assert {"BOUGH_TOKEN", "BOUGH_TASK"} <= named
    assert set() == named - known


def _variables(file: Path) -> list[str]:
    return re.findall(r"\bBOUGH_[A-Z_]+\b", file.read_text(encoding="utf-8"))


def test_every_option_of_the_server_is_on_its_page(capsys: pytest.CaptureFixture[str]):
    page = (ROOT / "docs" / "server.md").read_text(encoding="utf-8")
    assert 0 == run(["serve", "--help"])
    options = re.findall(r"^  (?:-\w, )?(--[\w-]+)", capsys.readouterr().out, re.MULTILINE)
    options.remove("--help")

    assert "--port" in options
    assert [] == [name for name in options if f"`{name}" not in page]


def test_every_setting_is_on_the_page_of_the_server_and_no_other_is_named():
    pages = {page.name: page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md")}
    settings = {name.removesuffix("_s") for name in WorkflowSettings.__struct_fields__}
    named = re.findall(r"setting `(\w+)|config set WORKFLOW (\w+)=", "\n".join(pages.values()))

    assert [] == [name for name in sorted(settings) if f"`{name}`" not in pages["server.md"]]
    assert {"termination_grace"} <= {one or other for one, other in named} <= settings
