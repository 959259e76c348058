"""The program as a whole: starting, failing, ending."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import click
import pytest

from bough.cli import main as cli
from bough.errors import Conflict
from bough.version import VERSION

EXAMPLE = str(files("bough") / "examples" / "organisation")
PROGRAM = [sys.executable, "-c", "from bough.cli.main import main; main()"]

#: What `bough --version` must not import: it would make every start slow.
FORBIDDEN = (
    "bough.core",
    "bough.formats",
    "bough.model",
    "bough.tools",
    "msgspec",
    "yaml",
    "sqlalchemy",
    "sqlite3",
    "asyncio",
    "http.server",
    "fastapi",
    "starlette",
    "uvicorn",
    "litestar",
    "aiohttp",
    "flask",
    "pydantic",
    "kubernetes",
)


def bough(*arguments: str, **more) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments], capture_output=True, text=True, check=False, **more
    )


def test_the_version_is_printed():
    result = bough("--version")
    assert (result.returncode, result.stdout) == (0, f"bough {VERSION}\n")


def test_starting_imports_nothing_heavy():
    code = (
        "import sys\nfrom bough.cli.main import run\n"
        "code = run(['--version'])\nprint(code, *sorted(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    code_and_modules = result.stdout.splitlines()[-1].split()
    assert code_and_modules[0] == "0"
    heavy = [
        name
        for name in code_and_modules[1:]
        if any(name == bad or name.startswith(f"{bad}.") for bad in FORBIDDEN)
    ]
    assert heavy == []


@pytest.mark.parametrize("arguments", [["-h"], ["quota", "-h"], ["quota", "show", "--help"]])
def test_help_needs_nothing_heavy_either(arguments: list[str]):
    code = (
        f"import sys\nfrom bough.cli.main import run\ncode = run({arguments!r})\n"
        "assert not {'yaml', 'msgspec', 'bough.tools'} & set(sys.modules)\nsys.exit(code)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert "Usage: bough" in result.stdout


def test_wrong_usage_ends_with_2():
    for arguments in (["quta"], ["quota", "show"], ["quota", "show", "--nothing", "x"]):
        result = bough(*arguments)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith("error: ")


def test_what_there_is_comes_from_one_option(capsys: pytest.CaptureFixture[str]):
    assert 2 == cli.run(["serve", "--gpus", "2", "--nodes", "nodes.yaml"])
    assert "--gpus and --nodes exclude each other." in capsys.readouterr().err


def test_the_port_may_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("BOUGH_PORT", "many")
    assert 2 == cli.run(["serve"])
    assert "'many' is not a valid integer" in capsys.readouterr().err


def test_an_error_is_one_line_on_standard_error_and_ends_with_2():
    result = bough("quota", "show", "nowhere.yaml")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "error: nowhere.yaml: no such file or folder\n"


def test_a_reader_that_goes_away_is_no_error_message(tmp_path: Path):
    reading, writing = os.pipe()
    os.close(reading)
    with (tmp_path / "errors").open("w+b") as errors:
        code = subprocess.run(
            [*PROGRAM, "quota", "show", EXAMPLE], stdout=writing, stderr=errors, check=False
        ).returncode
        os.close(writing)
        errors.seek(0)
        assert (code, errors.read()) == (2, b"")


@click.command()
def raising() -> None:
    raise ZeroDivisionError("a bug")


@click.command()
def interrupted() -> None:
    raise KeyboardInterrupt


@click.command()
def conflicting() -> None:
    raise Conflict("the queue is \x1b[31mgone", hint="look again", details=("one", "two"))


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(cli.COMMANDS, "raising", __name__)
    monkeypatch.setitem(cli.COMMANDS, "interrupted", __name__)
    monkeypatch.setitem(cli.COMMANDS, "conflicting", __name__)


def test_a_full_disk_is_no_bug():
    with open("/dev/full", "w") as disk:
        full = subprocess.run(
            [sys.executable, "-m", "bough", "--help"],
            stdout=disk,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert 2 == full.returncode
    assert [
        "error: the system refuses: No space left on device",
        "hint: set BOUGH_DEBUG=1 to see where it happened",
    ] == full.stderr.splitlines()


@pytest.mark.usefixtures("commands")
def test_a_bug_is_one_line_that_asks_for_a_report(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("BOUGH_DEBUG", raising=False)
    assert cli.run(["raising"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "error: this is a bug in Bough, please report it: ZeroDivisionError: a bug",
        "hint: set BOUGH_DEBUG=1 to see where it happened",
    ]


@pytest.mark.usefixtures("commands")
def test_a_bug_is_shown_in_full_when_debugging(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BOUGH_DEBUG", "1")
    assert cli.run(["raising"]) == 2
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.usefixtures("commands")
def test_an_interrupt_ends_with_3(capsys: pytest.CaptureFixture[str]):
    assert cli.run(["interrupted"]) == 3
    assert capsys.readouterr().err.strip() == "interrupted"


@pytest.mark.usefixtures("commands")
def test_an_error_is_printed_with_details_and_hint(capsys: pytest.CaptureFixture[str]):
    assert cli.run(["conflicting"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "error: the queue is \\x1b[31mgone",
        "  one",
        "  two",
        "hint: look again",
    ]


def test_every_command_in_the_table_exists_and_says_what_it_does():
    context = click.Context(cli.program)
    for name in cli.program.list_commands(context):
        command = cli.program.get_command(context, name)
        assert command is not None
        assert re.match(r"[A-Z].{10,}\.", command.get_short_help_str(200))


def test_what_a_command_does_is_said_whole_in_80_columns():
    def cut(group: click.Group, path: str) -> list[str]:
        context = click.Context(group)
        names = group.list_commands(context)
        room = 80 - 6 - max(map(len, names))
        found: list[str] = []
        for name in names:
            command = group.get_command(context, name)
            assert command is not None
            if command.get_short_help_str(room).endswith("..."):
                found.append(f"{path} {name}")
            if isinstance(command, click.Group):
                found += cut(command, f"{path} {name}")
        return found

    assert [] == cut(cli.program, "bough")
