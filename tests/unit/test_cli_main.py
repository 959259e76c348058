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


@pytest.mark.parametrize("name", ["bough", "osmo"])
def test_the_command_goes_by_both_of_its_names(name: str):
    program = Path(sys.executable).with_name(name)
    result = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, f"{name} {VERSION}\n")


@pytest.mark.parametrize("words", [(), ("pool",)])
def test_a_group_without_a_command_prints_its_help(words: tuple[str, ...]):
    asked, bare = bough(*words, "--help"), bough(*words)
    assert (0, asked.stdout, "") == (bare.returncode, bare.stdout, bare.stderr)


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
    shown, modules = imported_by(arguments)
    assert "Usage: bough" in shown
    assert not {"json", "msgspec", "shutil", "socket", "yaml", "bough.tools"} & modules


def test_the_list_of_commands_imports_none_of_them():
    shown, modules = imported_by(["--help"])
    assert "Show GPU-hours" in shown
    assert [] == [name for name in modules if name.startswith("bough.cli.commands")]


def test_a_shell_completes_commands_without_importing_them():
    shown, modules = imported_by([], _BOUGH_COMPLETE="bash_complete", COMP_WORDS="bough ")
    assert {f"plain,{name}" for name in cli.COMMANDS} == set(shown.splitlines())
    assert [] == [name for name in modules if name.startswith("bough.cli.commands")]
    shown, _ = imported_by([], _BOUGH_COMPLETE="bash_complete", COMP_WORDS="bough --v")
    assert "plain,--version" == shown


def test_a_shell_without_a_server_needs_no_client(tmp_path: Path):
    nowhere = {"BOUGH_SERVER": "", "XDG_CONFIG_HOME": str(tmp_path), "COMP_CWORD": "3"}
    words = {"_BOUGH_COMPLETE": "bash_complete", "COMP_WORDS": "bough workflow logs "}
    shown, modules = imported_by([], **nowhere, **words)
    assert ("", True) == (shown, "bough.cli.commands.workflow" in modules)
    assert not {"msgspec", "socket", "bough.client.client"} & modules


def imported_by(arguments: list[str], **environment: str) -> tuple[str, set[str]]:
    """What a command prints, and all that it imports."""
    code = (
        f"import sys\nfrom bough.cli.main import run\ncode = run({arguments!r})\n"
        "print(*sys.modules, file=sys.stderr)\nsys.exit(code)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "COMP_CWORD": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == result.returncode, result.stderr
    return result.stdout.rstrip("\n"), set(result.stderr.split())


def test_the_list_of_commands_says_of_each_what_its_own_help_says():
    context = click.Context(cli.program)
    for commands in cli.SECTIONS.values():
        for name, (_, text) in commands.items():
            command = cli.program.get_command(context, name)
            assert command is not None
            assert command.get_short_help_str(200) == text


def test_what_runs_beside_a_command_is_awaited_before_the_program_ends():
    code = (
        "import threading, time\nfrom bough.cli import main\n"
        "def beside():\n    time.sleep(0.2)\n    print('beside')\n"
        "main.run = lambda *_: threading.Thread(target=beside).start() or 3\nmain.main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (3, b"beside\n") == (result.returncode, result.stdout)


def test_wrong_usage_ends_with_2():
    for arguments in (["quta"], ["quota", "show"], ["quota", "show", "--nothing", "x"]):
        result = bough(*arguments)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith("error: ")


def test_what_there_is_comes_from_one_option(capsys: pytest.CaptureFixture[str]):
    assert 2 == cli.run(["serve", "--gpus", "2", "--nodes", "nodes.yaml"])
    assert "--gpus and --nodes cannot be used together." in capsys.readouterr().err


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
