"""What holds for every command: how it ends, in which form it answers, what its help says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from bough.cli import exit_codes
from bough.cli.command import Command, CommandGroup
from bough.cli.main import COMMANDS, SECTIONS, program
from bough.cli.main import run as run_program
from bough.cli.options import format_option
from bough.errors import (
    BoughError,
    Broken,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Refused,
    Throttled,
    Unauthenticated,
    Unavailable,
)
from tests.unit.conftest import Osmo

ROOT = Path(__file__).parents[2]
#: They print nothing of their own, or only what a shell reads.
WITHOUT_FORMAT = [
    "workflow exec",
    "workflow port-forward",
    "workflow rsync connect",
    "workflow rsync download",
    "workflow rsync upload",
    "kube group",
    "kube schedule",
    "kube webhook",
    "serve",
    "completion",
]
#: Their `-t` is `--task`, as scripts for `osmo` have it.
WITH_TASK = ["workflow logs", "workflow events"]
#: Words that no command prints.
STIFF = re.compile(
    r"\b(whoever|whom|somebody|nobody|who asks|is over|may go|what is to be)\b", re.IGNORECASE
)


def commands(group: click.Group = program, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command that is no group, with its path."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        assert isinstance(found, Command | CommandGroup), f"{path}{name}"
        if isinstance(found, click.Group):
            yield from commands(found, f"{path}{name} ")
        else:
            yield f"{path}{name}", found


def spellings(command: click.Command) -> set[str]:
    return {
        name
        for parameter in command.params
        if parameter.name == "format_type"
        for name in parameter.opts
    }


def test_every_command_that_prints_speaks_json():
    found = dict(commands())
    assert len(found) > 70
    assert WITHOUT_FORMAT == [path for path, each in found.items() if not spellings(each)]
    rest = [path for path, each in found.items() if "-t" not in spellings(each)]
    assert {*WITHOUT_FORMAT, *WITH_TASK} == set(rest)


@pytest.mark.parametrize("path", [path for path, _ in commands()])
def test_every_command_ends_with_2_where_its_arguments_are_wrong(
    path: str, capsys: pytest.CaptureFixture[str]
):
    # `run` ends with the exit codes of others, and has one for everything that is its own fault.
    expected = 125 if path == "run" else 2
    assert expected == run_program([*path.split(), "--no-such-option"])
    output, errors = capsys.readouterr()
    first, usage, hint = errors.splitlines()[:3]
    assert ("", "error: No such option") == (output, first[:21])
    assert usage.startswith(f"usage: bough {path} ")
    assert "hint:" in (hint[:5], errors.splitlines()[-1][:5])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Refused("no"), 1),
        (Invalid("no"), 2),
        (Unauthenticated("no"), 2),
        (Forbidden("no"), 2),
        (NotFound("no"), 2),
        (Conflict("no"), 2),
        (Broken("no"), 2),
        (Unavailable("no"), 10),
        (Throttled("no"), 75),
        (KeyboardInterrupt(), 3),
        (click.Abort(), 3),
        (click.UsageError("no"), 2),
        (ZeroDivisionError("no"), 2),
    ],
)
def test_every_command_ends_with_the_same_codes(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
):
    def fail(**_: object) -> None:
        raise error

    context = click.Context(program)
    for path in ("pool list", "quota check"):
        group = program.get_command(context, path.split()[0])
        assert isinstance(group, click.Group)
        command = group.get_command(context, path.split()[1])
        assert command is not None
        monkeypatch.setattr(command, "callback", fail)
        assert code == run_program([*path.split(), *(["x"] if path.startswith("quota") else [])])


def test_an_error_that_a_server_sent_is_told_from_one_of_our_own():
    sent = BoughError("no")
    sent.http_status = 500
    assert (10, 2) == (exit_codes.exit_code(sent), exit_codes.exit_code(BoughError("no")))


def test_the_codes_are_explained_in_the_help_and_in_the_reference(osmo: Osmo):
    helped = " ".join(osmo("--help").output.split())
    for page in ("docs/reference/cli.md", "docs/cli-guide.md"):
        rows = re.findall(r"^\| (\d+) \|", (ROOT / page).read_text(), re.MULTILINE)
        assert [str(code) for code in exit_codes.MEANINGS] == rows, page
    for code, meaning in exit_codes.MEANINGS.items():
        assert f"{code} {meaning.replace(', or', ' or')}" in helped


def test_an_error_has_one_form_and_another_for_scripts_of_osmo(
    bough: Osmo, osmo: Osmo, tmp_path: Path
):
    missing = str(tmp_path / "none.yaml")
    told = f"{missing}: no such file or folder"
    assert (2, "", f"error: {told}\n") == bough("quota", "show", missing)
    assert (2, "", f"Error message: {told}\nError code: 2\n") == osmo("quota", "show", missing)
    for run in (bough, osmo):
        code, output, errors = run("quota", "show", missing, "-t", "json")
        assert (2, "") == (code, errors)
        assert f'{{\n  "message": "{told}",\n  "code": 2\n}}\n' == output


def test_commands_are_sorted_by_what_people_do(bough: Osmo):
    lines = bough("--help").output.splitlines()
    titles = [line.rstrip(":") for line in lines if line.endswith(":")]
    assert ["First steps", "Options", *SECTIONS] == titles
    assert list(COMMANDS) == [name for names in SECTIONS.values() for name in names]
    assert all(len(line) <= 80 for line in lines)


def test_examples_in_help_have_lines_of_their_own(bough: Osmo):
    shown = bough("workflow", "exec", "--help").output

    assert "  Examples:\n    bough workflow exec train-1 main\n" in shown
    for path, _ in commands():
        assert "\\b" not in bough(*path.split(), "--help").output, path


def test_help_is_written_as_people_speak():
    stiff: list[str] = []
    for path, command in commands():
        texts = [command.help or "", command.epilog or ""]
        texts += [each.help or "" for each in command.params if isinstance(each, click.Option)]
        stiff += [f"{path}: {text}" for text in texts if STIFF.search(text)]
        unhelped = [
            each.name for each in command.params if isinstance(each, click.Option) and not each.help
        ]
        assert [] == unhelped, path
    assert [] == stiff


def test_options_are_explained_by_sentences():
    odd = [
        f"{path} {option.opts[0]}: {option.help}"
        for path, command in commands()
        for option in command.params
        if isinstance(option, click.Option)
        and not re.match(r"[A-Z-].*[.)]$", (option.help or "").strip(), re.DOTALL)
    ]
    assert [] == odd


# Words that are no command


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("logs", "bough workflow logs"),
        ("submit", "bough workflow submit"),
        ("ls", "bough workflow list"),
        ("ps", "bough workflow list"),
        ("kill", "bough workflow cancel"),
        ("sumbit", "bough workflow submit"),
        ("wrkflow list", "bough workflow"),
        ("jobs", "bough workflow"),
        ("subpool", "bough pool subpool"),
        ("whoami", "bough profile"),
        ("workflow ls", "bough workflow list"),
        ("workflow stop", "bough workflow cancel"),
        ("pool subpool rm", "bough pool subpool delete"),
        ("pool lst", "bough pool list"),
        ("quta", "bough quota"),
    ],
)
def test_a_wrong_word_is_answered_with_the_right_command(bough: Osmo, words: str, meant: str):
    code, output, errors = bough(*words.split())
    assert (2, "") == (code, output)
    assert errors.splitlines()[0].endswith(f"Did you mean `{meant}`?")


def test_a_word_of_several_commands_is_answered_with_some_of_them(bough: Osmo):
    told = bough("drain").errors.splitlines()[0]
    assert "error: There is no command `bough drain`. Did you mean `bough node drain`?" == told
    told = bough("roles").errors.splitlines()[0]
    assert told.endswith("Did you mean `bough token roles`?")


def test_a_word_that_means_nothing_is_answered_with_nothing(bough: Osmo):
    told = bough("xyzzy").errors.splitlines()[0]
    assert "error: There is no command `bough xyzzy`." == told


@click.command(cls=Command)
@format_option
def sleepy(format_type: str) -> None:
    raise click.Abort(format_type)


def test_a_question_without_an_answer_is_an_interrupt(bough: Osmo, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(COMMANDS, "sleepy", __name__)
    assert (3, "", "\ninterrupted\n") == bough("sleepy")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["help"], ["--help"]),
        (["help", "workflow"], ["workflow", "--help"]),
        (["help", "workflow", "submit"], ["workflow", "submit", "--help"]),
        (["pool", "help", "list"], ["pool", "list", "--help"]),
    ],
)
def test_help_is_a_command_too(
    words: list[str], meant: list[str], capsys: pytest.CaptureFixture[str]
):
    shown: list[str] = []
    for arguments in (words, meant):
        assert 0 == run_program(arguments)
        shown.append(capsys.readouterr().out)

    assert shown[0] == shown[1]
    assert f"Usage: bough {' '.join(meant[:-1])}".rstrip() in shown[0]


def test_help_for_no_command_names_the_one_that_is_meant(capsys: pytest.CaptureFixture[str]):
    assert 2 == run_program(["help", "worflow"])
    assert "There is no command `bough worflow`. Did you mean `bough workflow`?" in (
        capsys.readouterr().err
    )
    assert 2 == run_program(["help", "version", "x"])
    assert "error: `bough version` has no commands." in capsys.readouterr().err


def test_json_has_one_form_whatever_is_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("BOUGH_SERVER", "http://127.0.0.1:1")
    example = str(ROOT / "docs/examples/busy.yaml")
    for arguments in (["version"], ["plan", example], ["why", example, "none"], ["pool", "list"]):
        run_program([*arguments, "-t", "json"])
        lines = capsys.readouterr().out.splitlines()
        assert "{" == lines[0], arguments
        assert '  "' == lines[1][:3], arguments
