"""YAML streams into values with lines, within limits."""

from __future__ import annotations

import pytest
import yaml

from bough.formats.yaml import composer
from bough.formats.yaml.composer import LinedDict, LinedList, Unreadable, Value, compose


def values(text: str) -> list[Value]:
    return [value for value, _ in compose(text, "some.yaml")]


def refusal(text: str) -> str:
    with pytest.raises(Unreadable) as caught:
        values(text)
    return caught.value.message


def test_documents_come_in_order_with_the_line_they_start_on():
    text = "a: 1\n---\n- x\n---\n\n\nb: {c: [1, 2]}\n"
    assert list(compose(text, "")) == [({"a": 1}, 1), (["x"], 2), ({"b": {"c": [1, 2]}}, 4)]


def test_quoted_and_block_scalars_stay_text():
    assert values("['5', \"true\"]\n--- |\n  null\n--- >-\n  ~\n") == [["5", "true"], "null\n", "~"]


def test_mappings_and_sequences_know_their_lines():
    (value,) = values("a:\n  - x\n  -\n    b: 1\nc: {d: 2,\n  e: 3}\n")
    assert isinstance(value, LinedDict)
    assert (value.line, value.lines) == (1, [1, 5])
    items = value["a"]
    assert isinstance(items, LinedList)
    assert items.lines == [2, 4]
    flow = value["c"]
    assert isinstance(flow, LinedDict)
    assert (flow.line_of("d"), flow.line_of("e"), flow.line_of("f")) == (5, 6, None)


def test_an_alias_stands_for_what_its_anchor_named():
    assert values("a: &x {k: [1]}\nb: *x\nc: &y z\nd: *y\n") == [
        {"a": {"k": [1]}, "b": {"k": [1]}, "c": "z", "d": "z"}
    ]


def test_an_anchor_ends_with_its_document():
    assert refusal("a: &x 1\n---\nb: *x\n").startswith("some.yaml:3:4: the alias *x")


def test_an_alias_inside_its_own_anchor_is_refused():
    assert "the alias *x stands for nothing defined above it" in refusal("&x [*x]")


def test_a_key_twice_is_refused_with_both_lines():
    assert refusal("a: 1\nb: 2\na: 3\n") == (
        "some.yaml:3:1: the key 'a' stands here twice, first on line 1"
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("1: x", "the key 1 is not text"),
        ("true: x", "the key True is not text"),
        ("~: x", "the key None is not text"),
        ("? [a]\n: x", "the key a mapping or list is not text"),
        ("? {a: 1}\n: x", "the key a mapping or list is not text"),
    ],
)
def test_a_key_that_is_not_text_is_refused(text: str, what: str):
    assert what in refusal(text)


def test_words_that_other_readers_take_for_boolean_may_be_keys():
    assert values("on: 1\nyes: 2\n") == [{"on": 1, "yes": 2}]


def test_a_merge_key_is_refused():
    assert refusal("a: &x {b: 1}\nc:\n  <<: *x\n").startswith("some.yaml:3:3: merge keys (<<)")


@pytest.mark.parametrize(
    "text", ["a: !!python/object:os.system 1", "a: !mine {b: 1}", "a: !!set {b, c}", "!!omap []"]
)
def test_tags_of_others_are_refused(text: str):
    assert "is not supported" in refusal(text)


@pytest.mark.parametrize("ended", ["\n", "\r", "\r\n", "\x85", "\u2028"])
def test_only_so_many_tags_are_declared(ended: str):
    """The parser takes a time for them that grows with the square of their number."""
    declared = [f"%TAG !t{number}! tag:x{ended}" for number in range(composer.MAXIMUM_TAGS)]

    assert [["%TAG"]] == values("".join((*declared, f"---{ended}- '%TAG'{ended}")))
    more = "".join((*declared, f"%TAG !t! tag:y{ended}", "--- 1"))
    assert "some.yaml: more than 100 %TAG directives" == refusal(more)


def test_a_long_name_of_an_alias_is_not_repeated():
    assert len(refusal("*" + "a" * 100_000)) < 200


def test_tags_that_only_repeat_the_type_are_accepted():
    assert values("a: !!map {b: !!seq [!!str 5]}") == [{"a": {"b": ["5"]}}]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: [1\nb: 2\n", "some.yaml:2:2"),
        ("a: b: c\n", "some.yaml:1:5"),
        ("a:\n\t- b\n", "some.yaml:2:1"),
        ("a: 'b\n", "some.yaml:2:1"),
    ],
)
def test_a_syntax_error_has_line_and_column(text: str, place: str):
    assert refusal(text).startswith(f"{place}: no valid YAML: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: b\nc: \x01\n", "some.yaml:2:4: the character U+0001 must not stand in YAML"),
        ("a: \x7f", "some.yaml:1:4: the character U+007F must not stand in YAML"),
        ("é: \x00", "some.yaml:1:4: the character U+0000 must not stand in YAML"),
    ],
)
def test_a_forbidden_character_has_line_and_column(text: str, message: str):
    assert refusal(text) == message


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_nesting_beyond_the_limit_is_refused(opening: str):
    assert refusal(opening * 100_000).endswith("nested more than 64 levels deep")


def test_nesting_up_to_the_limit_is_read():
    assert values("[" * 64 + "]" * 64) != []


def test_nesting_is_counted_through_aliases():
    text = f"a: &x {'[' * 40}{']' * 40}\nb: {'[' * 30}*x{']' * 30}\n"
    assert refusal(text).endswith("nested more than 64 levels deep")


def test_a_text_beyond_the_limit_is_refused():
    assert "10,000,000 characters" in refusal("name: " + "x" * 10_000_000)


def test_an_alias_bomb_is_refused():
    rows = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 40)]
    text = "\n".join(["a0: &a0 [x, x, x, x, x, x, x, x, x]", *rows])
    assert "more than 10,000,000 values" in refusal(text)


def test_an_alias_bomb_over_several_documents_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(composer, "MAXIMUM_VALUES", 50)
    assert "more than 50 values" in refusal("\n---\n".join(["[a, b, c, d]"] * 20))


def test_an_alias_counts_as_much_as_it_stands_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(composer, "MAXIMUM_VALUES", 12)
    assert values("[&x [1, 2, 3], *x]") == [[[1, 2, 3], [1, 2, 3]]]
    assert "more than 12 values" in refusal("[&x [1, 2, 3], *x, *x]")


def test_the_parser_without_libyaml_gives_the_same(monkeypatch: pytest.MonkeyPatch):
    text = "a: &x {k: [1, yes]}\nb: *x\n---\n- 'q'\n- |\n  t\n"
    fast = list(compose(text, ""))
    monkeypatch.setattr(composer, "_LOADER", yaml.SafeLoader)
    assert list(compose(text, "")) == fast
    assert refusal("[" * 100_000).endswith("nested more than 64 levels deep")
    assert refusal("a: \x01").endswith("the character U+0001 must not stand in YAML")
