"""What people send: numbers, durations, exit codes, pools."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.control.config.settings import _changed, settings_answer
from bough.control.fields import (
    check_exit_actions,
    exit_action,
    read_duration_s,
    read_exit_codes,
    read_gpus,
    read_limit,
)
from bough.control.pools.pool_fields import merge_pool, pool_document, read_pool
from bough.control.pools.pools import PoolView
from bough.control.recording import differences
from bough.errors import Invalid
from bough.model.pool import GpuQuota, Pool, PoolStatus
from bough.model.record import Difference
from bough.model.settings import WorkflowSettings
from bough.model.subpool import Subpool, SubpoolState
from bough.server.pool_documents import show_pool

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


def test_a_pool_that_was_shown_can_be_sent_back():
    pool = Pool(
        "team",
        gpu=GpuQuota(4, None, 2),
        description="ours",
        cohort="org",
        default_exit_actions={"RESCHEDULE": "3006"},
        default_exec_timeout="8h",
    )

    assert pool == read_pool("team", pool_document(pool))
    assert -1 == pool_document(pool)["resources"]["gpu"]["maximum"]


def test_a_merge_changes_only_what_is_sent():
    pool = Pool("team", gpu=GpuQuota(4, 8), description="ours")

    merged = merge_pool(pool, {"resources": {"gpu": {"guarantee": 5}}, "description": None})

    assert Pool("team", gpu=GpuQuota(5, 8)) == merged


def test_what_is_wrong_with_a_pool_is_said():
    cases = [
        ({"colour": "red"}, "there is no field colour"),
        ({"name": "other"}, "rename it"),
        ({"resources": {"cpu": {}}}, "resources must be"),
        ({"resources": {"gpu": {"quota": 1}}}, "there is no field resources.gpu.quota"),
        ({"resources": {"gpu": {"guarantee": "x"}}}, "must be a number of GPUs"),
        ({"resources": {"gpu": {"guarantee": 5, "maximum": 4}}}, "below the guarantee"),
        ({"default_platform": "h100"}, "Default platform h100 not in platforms"),
        ({"platforms": {"a b": {}}}, "Platform name"),
        ({"platforms": []}, "platforms must be an object"),
        ({"platforms": {"a": 1}}, "Expected `object`"),
        ({"default_exec_timeout": "soon"}, "is no duration"),
        ({"default_exit_actions": {"RETRY": "1"}}, "RETRY"),
        ({"enable_maintenance": "yes"}, "Expected `bool`"),
        ({"user_gpu_limit": "all"}, "user_gpu_limit must be"),
        (None, "expected an object"),
    ]
    for document, expected in cases:
        assert expected in refused(read_pool, "team", document)


@given(st.dictionaries(st.sampled_from([*Pool.__struct_fields__, "resources", "x"]), JSON))
def test_whatever_is_sent_for_a_pool_is_a_pool_or_refused(document):
    try:
        assert "team" == read_pool("team", document).name
    except Invalid as error:
        assert error.message  # noqa: PT017 - both ends are right


def test_a_subpool_is_shown_as_its_pool_with_another_name_quota_edge_and_state():
    pool = Pool("team", gpu=GpuQuota(100), description="ours")
    subpool = Subpool("team", "a", SubpoolState.DELETING, 30)
    whole = msgspec.to_builtins(show_pool(PoolView("team", pool, PoolStatus.ONLINE)))
    part = msgspec.to_builtins(show_pool(PoolView("team--a", pool, PoolStatus.ONLINE, subpool)))
    own = {"name", "quota", "parent_pool", "subpool_name", "subpool_state", "resources"}

    assert {key: part[key] for key in part if key not in own} == {
        key: whole[key] for key in whole if key not in own
    }
    assert ("team--a", 0, "DELETING") == (part["name"], part["quota"], part["subpool_state"])


def test_differences_are_told_field_by_field():
    before = {"a": 1, "b": {"c": [1], "d": 2}, "e": 0}
    after = {"a": 1, "b": {"c": [1, 2], "d": 2}, "f": 0}

    assert [
        Difference("b.c", [1], [1, 2]),
        Difference("e", 0, None),
        Difference("f", None, 0),
    ] == list(differences(before, after))


def test_settings_are_sent_and_shown_with_units():
    shown = settings_answer(WorkflowSettings())
    assert ("15m", "60d") == (shown.subpool_drain_check_interval, shown.default_exec_timeout)
    changed = _changed(WorkflowSettings(), {"subpool_drain_check_interval": "90s"})
    assert 90 == changed.subpool_drain_check_interval_s
    for bad in (
        {"x": 1},
        {"subpool_drain_check_interval": "0s"},
        {"max_num_tasks": -1},
        {"subpool_drain_check_interval_s": 5},
        {"max_num_tasks": "many"},
        None,
    ):
        assert refused(_changed, WorkflowSettings(), bad).startswith("Workflow configuration")
