"""What the pages show is true, and what keeps them true would notice if it were not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bough.model.reason import WaitReason
from tests.docs import reference
from tests.docs.blocks import PageError, find_examples
from tests.docs.commands import ROOT, CommandError, Ran, run
from tests.docs.links import broken_links
from tests.docs.modules import missing_modules
from tests.docs.pages import difference, find_pages, rewrite

PAGES = find_pages()
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_a_page_shows_what_the_program_prints(page: Path):
    found = difference(page)

    assert not found, f"`make docs` puts this right:\n{found}"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_no_link_leads_nowhere(page: Path):
    broken = broken_links(page)

    assert not broken, "\n".join(broken)


def test_the_reference_has_every_command():
    text = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")

    shown = [line for line in text.splitlines() if line.startswith("$ ")]

    assert [f"$ {name} --help" for name in reference.command_names()] == shown


def test_every_reason_is_explained():
    text = (ROOT / "docs/why.md").read_text(encoding="utf-8")

    assert [] == [reason for reason in WaitReason if f"| `{reason}` |" not in text]


MAPPED = [
    "core",
    *(f"core/{name}" for name in ("cycle", "explain", "gang", "place", "quota")),
    "model",
    "control",
    *(
        f"control/{name}"
        for name in ("config", "nodes", "people", "pools", "records", "scheduling", "workflows")
    ),
    "store",
]


@pytest.mark.parametrize("name", MAPPED)
def test_the_map_of_a_folder_names_its_modules_and_no_others(name: str):
    folder = ROOT / "src/bough" / name
    map_of_folder = (folder / "__init__.py").read_text(encoding="utf-8")

    shown = re.findall(r"^- (\w+): ", map_of_folder, re.MULTILINE)

    assert sorted(_modules(folder)) == sorted(shown)


#: Folders whose modules are called as what they are about, so that one sentence is their map.
_SAID_IN_A_SENTENCE = ("cli/commands", "cli/text", "server/routes", "store/migrations")


def test_every_other_folder_says_something_about_each_of_its_modules():
    missing: list[str] = []
    for path in sorted((ROOT / "src/bough").rglob("__init__.py")):
        name = path.parent.relative_to(ROOT / "src/bough").as_posix()
        if not name.startswith(_SAID_IN_A_SENTENCE):
            words = set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
            modules = set(_modules(path.parent)) - {"__main__"}
            missing += [f"{name}/{each}" for each in sorted(modules - words)]

    assert [] == missing


def _modules(folder: Path) -> list[str]:
    found = [each.stem for each in folder.glob("*.py") if each.stem != "__init__"]
    with_maps = [each.parent.name for each in folder.glob("*/__init__.py")]
    return found + [each for each in with_maps if each != "migrations"]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_a_page_names_only_modules_that_there_are(page: Path):
    text = page.read_text(encoding="utf-8")

    assert [] == missing_modules(text)


def test_a_page_that_names_a_module_that_is_not_there_is_noticed():
    text = "`core/cycle/nothing.py`, `bough.control.pools.estate`, `store.database.Store`, `cli/`"

    assert ["bough.control.pools.estate", "core/cycle/nothing.py"] == missing_modules(text)


# What keeps them true


def echo(command: tuple[str, ...]) -> Ran:
    """A command that prints its arguments, a line each, and ends with their number."""
    return Ran("".join(f"{word}\n" for word in command[1:]), len(command) - 1)


def page(*lines: str) -> str:
    return "\n".join(lines) + "\n"


def test_an_output_that_is_wrong_is_replaced_and_the_rest_stays():
    text = page("# A", "```console", "$ bough one two", "wrong", "```", "the end")

    assert page("# A", "```console", "$ bough one two", "one", "two", "```", "the end") == rewrite(
        text, echo
    )


def test_an_output_that_is_right_is_left_alone():
    text = page("```console", "$ bough one", "one", "$ bough 'two words'", "two words", "```")

    assert text == rewrite(text, echo)


def test_a_command_may_go_on_in_the_next_line():
    text = page("```console", "$ bough one \\", "    two", "```")

    assert page("```console", "$ bough one \\", "    two", "one", "two", "```") == rewrite(
        text, echo
    )


def test_only_the_head_of_an_output_is_shown_where_the_page_says_so():
    text = page("```console", "$ bough one two three | head -2", "```")

    after = page("```console", "$ bough one two three | head -2", "one", "two", "```")
    assert after == rewrite(text, echo)


def test_a_page_can_show_how_a_command_ended():
    text = page("```console", "$ bough one two", "one", "two", "$ echo $?", "0", "```")

    assert text.replace("\n0\n", "\n2\n") == rewrite(text, echo)


def test_other_blocks_are_not_touched():
    text = page("```sh", "$ bough one", "```", "````md", "```console", "$ bough one", "```", "````")

    assert text == rewrite(text, echo)


def test_an_excerpt_follows_its_file(tmp_path: Path):
    (tmp_path / "story.yaml").write_text("title: A\nsteps:\n- one\n- two\nend: B\n")
    text = page("<!-- excerpt story.yaml title steps -->", "```yaml", "title: old", "```")

    assert page(
        "<!-- excerpt story.yaml title steps -->",
        "```yaml",
        "title: A",
        "steps:",
        "- one",
        "- two",
        "```",
    ) == rewrite(text, root=tmp_path)


def test_an_excerpt_without_keys_is_the_whole_file(tmp_path: Path):
    (tmp_path / "all.yaml").write_text("a: 1\nb: 2\n")

    after = rewrite(page("<!-- excerpt all.yaml -->", "```yaml", "```"), root=tmp_path)

    assert page("<!-- excerpt all.yaml -->", "```yaml", "a: 1", "b: 2", "```") == after


def test_a_python_session_shows_what_it_prints():
    text = page("```pycon", ">>> numbers = [", "...     1, 2]", ">>> sum(numbers)", "4", "```")

    assert text.replace("\n4\n", "\n3\n") == rewrite(text)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["```console", "$ bough one"], "line 1: this block is never closed"),
        (["```console", "one", "```"], "line 2: a console block starts with a command"),
        (["```console", "```"], "line 2: a console block without a command"),
        (["", "  ```console", "$ bough", "```"], "line 2: a console block must not be indented"),
        (["```console", "$ bough 'one", "```"], "line 2: cannot be read as a command"),
        (["```console", "$ echo $?", "```"], "line 2: there is no command before it"),
        (["<!-- excerpt no.yaml -->", "```yaml", "```"], "line 1: there is no file no.yaml"),
        (["```pycon", "sum", "```"], "line 2: a Python session without a line"),
        (["```pycon", ">>> 1", "1", ">>> nothing", "```"], "line 4: (.|\n)*NameError"),
        (["<!-- commands -->"], "line 1: <!-- end of commands --> is missing"),
        (["", "<!-- states -->"], "line 2: <!-- end of states --> is missing"),
    ],
)
def test_what_cannot_be_checked_is_refused_with_its_line(lines: list[str], message: str):
    with pytest.raises(PageError, match=message):
        rewrite(page(*lines), echo)


def test_an_excerpt_of_a_key_that_is_not_there_is_refused(tmp_path: Path):
    (tmp_path / "story.yaml").write_text("title: A\n")

    with pytest.raises(PageError, match="has no steps; it has title"):
        rewrite(page("<!-- excerpt story.yaml steps -->", "```yaml", "```"), root=tmp_path)


@pytest.mark.parametrize("command", [("rm", "-r", "docs"), ("make", "test"), ()])
def test_only_the_programs_own_commands_are_run(command: tuple[str, ...]):
    with pytest.raises(CommandError, match="only bough, osmo and `make help` are"):
        run(command)


def test_errors_and_exit_codes_are_seen_as_in_a_terminal():
    assert Ran("error: nowhere.yaml: no such file or folder\n", 2) == run(
        ("bough", "quota", "check", "nowhere.yaml")
    )


def test_the_lines_of_examples_are_counted_in_the_page():
    found = find_examples(["$ bough one", "one", "$ bough two"], first=11)

    assert [11, 13] == [example.line for example in found]


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path):
    (tmp_path / "other.md").write_text("# Two words, `code`\n")
    text = page(
        "[a](other.md) [b](none.md)",
        "",
        "[c](other.md#two-words-code) [d](other.md#three) `[e](f.md)`",
        "```",
        "[g](h.md)",
        "```",
        "[i](https://example.com)",
    )
    (tmp_path / "page.md").write_text(text)

    assert [
        "line 1: none.md: there is no such file",
        "line 3: other.md#three: there is no such heading",
    ] == broken_links(tmp_path / "page.md")


def test_the_reference_is_made_anew_from_the_commands():
    text = page("# Commands", "<!-- commands -->", "old", "<!-- end of commands -->", "the end")

    after = rewrite(text, echo)

    assert "old" not in after
    assert "## bough quota show\n\n```console\n$ bough quota show --help\nquota\n" in after
    assert after.endswith("<!-- end of commands -->\nthe end\n")


def test_the_states_are_made_anew_from_the_table():
    text = page("<!-- states -->", "yesterday", "<!-- end of states -->")

    after = rewrite(text, echo)

    assert "yesterday" not in after
    assert "    on_a_node --> FAILED_PREEMPTED: preempt\n" in after
    assert "        INITIALIZING --> RUNNING: run\n" in after
    assert "| bind | SCHEDULING | INITIALIZING | the scheduler has assigned a node" in after
    assert "| 3006 | " in after
