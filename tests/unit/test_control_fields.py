"""What people send: numbers, durations, exit codes, pools."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.control.change_recording import differences
from bough.control.fields import (
    check_exit_actions,
    exit_action,
    read_duration_s,
    read_exit_codes,
    read_gpus,
    read_limit,
    read_weight,
)
from bough.control.pools.pool_fields import read_pool
from bough.errors import Invalid
from bough.model.change_record import Difference
from bough.model.pool import Pool

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


def refused(action, *args) -> str:
    with pytest.raises(Invalid) as caught:
        action(*args)
    return caught.value.message


def test_gpus_are_rounded_down():
    assert [30, 0, 0, 10**9] == [read_gpus("x", each) for each in (30.99, 0, 0.5, 10**9)]


def test_no_limit_is_nothing_or_minus_one():
    assert [None, None, 0] == [read_limit("x", each) for each in (None, -1, 0)]
    assert "x must be from 0 to 1,000,000,000 GPUs, not -2." == refused(read_limit, "x", -2)


def test_a_weight_is_whole_as_half_of_one_would_count_for_nothing():
    assert [0, 2, 10**9] == [read_weight("x", each) for each in (0, 2.0, 10**9)]
    for bad in (0.5, -1, 10**9 + 1, float("nan"), float("inf"), True, "1", None):
        assert f"x must be a whole number from 0 to 1,000,000,000, not {bad!r}." == refused(
            read_weight, "x", bad
        )


@given(JSON)
def test_whatever_is_sent_for_gpus_is_a_number_or_refused(value):
    try:
        assert 0 <= read_gpus("x", value) <= 10**9
    except Invalid as error:
        assert error.message.startswith("x must be")  # noqa: PT017 - both ends are right


def test_durations():
    texts = ("90s", "15m", "8h", "60d", "1h30m")
    assert [90, 900, 28_800, 5_184_000, 5_400] == [read_duration_s("x", text) for text in texts]
    for bad in ("", "15", "-1m", "1 m", "m", 15, None, "1y", "9" * 400):
        assert refused(read_duration_s, "x", bad).startswith("x")


def test_exit_codes_are_ranges_with_both_ends():
    assert ((0, 0), (1, 10), (3006, 3006)) == read_exit_codes("x", "0,1-10, 3006")
    for bad in ("", "a", "1-", "1--2", "1;2"):
        assert refused(read_exit_codes, "x", bad)


def test_a_range_of_exit_codes_that_has_none_is_refused():
    message = refused(check_exit_actions, "Task t: exitActions", {"FAIL": "1,10-2"})

    assert "Task t: exitActions.FAIL: 10-2 has no codes; write 2-10." == message
    check_exit_actions("Task t: exitActions", {"FAIL": "1,2-10,3-3"})


def test_the_first_who_says_anything_about_an_exit_code_decides():
    task, pool, default = {"FAIL": "3"}, {"RESCHEDULE": "1-5"}, {"RESCHEDULE": "3006"}

    found = [exit_action(code, task, pool, default) for code in (3, 4, 3006, 9)]

    assert ["FAIL", "RESCHEDULE", "RESCHEDULE", None] == found


@given(st.dictionaries(st.sampled_from([*Pool.__struct_fields__, "resources", "x"]), JSON))
def test_whatever_is_sent_for_a_pool_is_a_pool_or_refused(document):
    try:
        assert "team" == read_pool("team", document).name
    except Invalid as error:
        assert error.message  # noqa: PT017 - both ends are right


def test_differences_are_told_field_by_field():
    before = {"a": 1, "b": {"c": [1], "d": 2}, "e": 0}
    after = {"a": 1, "b": {"c": [1, 2], "d": 2}, "f": 0}

    assert [
        Difference("b.c", [1], [1, 2]),
        Difference("e", 0, None),
        Difference("f", None, 0),
    ] == list(differences(before, after))
