"""Names of pools, subpools and queues."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bough.core.names import label_fault
from bough.model.names import (
    QueueName,
    canonical_name,
    exported_name,
    pool_name_fault,
    queue_name_fault,
    subpool_name_fault,
)

#: Such parts give every kind of valid name, and never the delimiter.
PARTS = st.lists(st.sampled_from(["a", "Z", "0", "_x", ".b", "-c", "__d"]), max_size=6)
NAMES = st.builds(lambda first, parts: first + "".join(parts), st.sampled_from("aB"), PARTS)
QUEUES = st.builds(QueueName, st.just("ns"), NAMES, st.none() | st.just("_shared") | NAMES)


def test_queue_names_are_written_as_the_design_has_them():
    assert [
        "osmo-default-ns",
        "osmo-pool-ns-team",
        "osmo-pool-ns-team--_shared",
        "osmo-pool-ns-team--a",
    ] == [
        str(QueueName("ns", *parts))
        for parts in ((), ("team",), ("team", "_shared"), ("team", "a"))
    ]
    assert "team--a" == canonical_name("team", "a")


@given(NAMES)
def test_the_strategy_gives_valid_names(name):
    assert (None, None) == (pool_name_fault(name), subpool_name_fault(name))


@given(QUEUES)
def test_a_queue_name_that_was_written_can_be_read(queue):
    assert queue == QueueName.parse(str(queue), "ns")


def test_other_names_are_not_read():
    for text in ("", "team", "osmo-default-other", "osmo-pool-ns-", "osmo-pool-ns---a"):
        assert QueueName.parse(text, "ns") is None
    assert QueueName("ns") == QueueName.parse("osmo-default-ns", "ns")


def test_scenario_013_the_shared_leaf_has_a_valid_name_in_kubernetes():
    assert "osmo-pool-ns-team---shared" == QueueName("ns", "team", "_shared").exported
    assert "osmo-pool-ns-team--a" == QueueName("ns", "team", "a").exported


@given(st.lists(QUEUES, unique=True, max_size=12))
def test_scenario_013_names_in_kubernetes_are_valid_and_unique(queues):
    exported = [queue.exported for queue in queues]

    assert [None] * len(queues) == [label_fault(name) for name in exported]
    assert len(exported) == len(set(exported))


def test_scenario_013_an_underscore_is_no_dash():
    pool, subpool = QueueName("ns", "a__b"), QueueName("ns", "a", "b")

    assert pool.exported != subpool.exported


def test_what_is_wrong_with_a_name_is_said_with_the_name():
    assert pool_name_fault("team") is None
    assert 'Pool name "a--b" is not valid! Name must not contain "--"' in (
        pool_name_fault("a--b") or ""
    )
    assert (
        'Pool name "1a" is not valid! Name can only be alphanumeric and contain dash or underscore.'
        == pool_name_fault("1a")
    )
    assert 'Names that begin with "_" are reserved' in (subpool_name_fault("_shared") or "")
    assert "\x1b" not in (pool_name_fault("a\x1b[31m") or "")
    assert len(pool_name_fault("-" * 10_000) or "") < 250


def test_a_queue_name_fits_a_label():
    fits = QueueName("ns", "p" * 41, "_shared")

    assert (63, None) == (len(str(fits)), queue_name_fault("Pool", "p", fits))
    too_long = QueueName("ns", "p" * 42, "_shared")
    assert "64 characters" in (queue_name_fault("Pool", "p", too_long) or "")


def test_names_that_kubernetes_does_not_allow_do_not_meet_there():
    names = ["team", "Team", "te_am", "te.am", "te-am", "x" * 64, "x" * 65]
    found = [exported_name(each) for each in names]

    assert ["team", "te-am"] == [found[0], found[4]]
    assert len(names) == len(set(found))
    assert [None] * len(names) == [label_fault(each) for each in found]
