"""Plain text tables and drawn trees."""

from __future__ import annotations

from bough.cli.output import printable
from bough.cli.tables import render_table, tree_stems


def test_columns_are_as_wide_as_their_widest_cell_and_numbers_stand_to_the_right():
    table = render_table(["NAME", "N"], [["a", "5"], ["longer", "1000"]], numbers=[1])
    assert table == "NAME       N\na          5\nlonger  1000"


def test_a_table_without_rows_is_its_header():
    assert render_table(["A", "B"], []) == "A  B"


def test_a_tree_is_drawn_with_lines():
    depths = [0, 1, 2, 2, 1, 0, 1]
    names = ["a", "b", "c", "d", "e", "f", "g"]
    drawn = []
    for name, (first, following) in zip(names, tree_stems(depths), strict=True):
        drawn += [first + name, following]
    assert [line.rstrip() for line in drawn] == [
        "a",
        "│",
        "├─ b",
        "│  │",
        "│  ├─ c",
        "│  │",
        "│  └─ d",
        "│",
        "└─ e",
        "",
        "f",
        "│",
        "└─ g",
        "",
    ]


def test_a_very_wide_tree_is_drawn():
    stems = tree_stems([0, 1, *[2] * 100_000])
    assert (stems[2][0], stems[-1][0]) == ("   ├─ ", "   └─ ")


def test_characters_that_would_do_something_to_a_terminal_are_written_out():
    assert printable("a\x1b[31mé\n\u202e") == "a\\x1b[31mé\\n\\u202e"
