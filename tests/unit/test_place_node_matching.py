from __future__ import annotations

import pytest

from bough.core.place.node_bits import positions
from bough.core.place.node_matching import Matcher, terms_of, tolerates
from bough.model.cluster import Match, Taint, TaintEffect, Toleration
from bough.model.gang import Pod
from tests.places import node

NODES = [
    node("n0", labels={"disk": "fast", "size": "8"}),
    node("n1", labels={"disk": "slow", "size": "12"}),
    node("n2", labels={"size": "big"}),
    node("n3", cordoned=True, labels={"disk": "fast"}),
]


def allowed(pod: Pod) -> list[int]:
    return list(positions(Matcher(NODES).eligible(terms_of(pod)).allowed))


def test_a_pod_without_terms_may_go_to_every_node_that_is_open() -> None:
    assert [0, 1, 2] == allowed(Pod("p"))


def test_every_label_of_a_selector_must_match() -> None:
    assert [0] == allowed(Pod("p", node_selector={"disk": "fast", "size": "8"}))
    assert [] == allowed(Pod("p", node_selector={"disk": "fast", "size": "12"}))


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        (Match("disk", "In", ("fast", "slow")), [0, 1]),
        (Match("disk", "NotIn", ("fast",)), [1, 2]),
        (Match("disk", "Exists"), [0, 1]),
        (Match("disk", "DoesNotExist"), [2]),
        (Match("size", "Gt", ("8",)), [1]),
        (Match("size", "Lt", ("12",)), [0]),
        (Match("size", "Gt", ("x",)), []),
        (Match("metadata.name", "In", ("n1", "n2")), [1, 2]),
        (Match("metadata.name", "NotIn", ("n1",)), [0, 2]),
    ],
)
def test_operators_match_labels_as_in_kubernetes(match: Match, expected: list[int]) -> None:
    assert expected == allowed(Pod("p", affinity=((match,),)))


def test_one_term_of_an_affinity_is_enough_and_all_of_its_conditions_are_needed() -> None:
    fast, slow = Match("disk", "In", ("fast",)), Match("disk", "In", ("slow",))
    large = Match("size", "Gt", ("10",))
    assert [0, 1] == allowed(Pod("p", affinity=((fast,), (slow, large))))
    assert [0] == allowed(Pod("p", affinity=((fast,), (fast, large))))


def test_a_term_without_conditions_matches_nothing() -> None:
    assert [] == allowed(Pod("p", affinity=((),)))


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration("key", "Equal", "value"), True),
        (Toleration("key", "Equal", "other"), False),
        (Toleration("key", "Exists"), True),
        (Toleration("other", "Exists"), False),
        (Toleration("", "Exists"), True),
        (Toleration("", "Equal", "value"), True),
        (Toleration("key", "Exists", effect=TaintEffect.NO_SCHEDULE), True),
        (Toleration("key", "Exists", effect=TaintEffect.NO_EXECUTE), False),
    ],
)
def test_a_toleration_matches_key_value_and_effect(toleration: Toleration, expected: bool) -> None:
    assert expected == tolerates(toleration, Taint("key", "value"))


def test_taints_keep_pods_off_and_soft_ones_only_advise() -> None:
    nodes = [
        node("n0", taints=(Taint("a"), Taint("b", effect=TaintEffect.PREFER_NO_SCHEDULE))),
        node("n1", taints=(Taint("b", effect=TaintEffect.PREFER_NO_SCHEDULE),)),
        node("n2", taints=(Taint("c", effect=TaintEffect.NO_EXECUTE),)),
    ]
    eligible = Matcher(nodes).eligible(terms_of(Pod("p")))
    assert (0b010, 0b010) == (eligible.allowed, eligible.avoided)
    tolerant = Pod("p", tolerations=(Toleration("a", "Exists"), Toleration("b", "Exists")))
    eligible = Matcher(nodes).eligible(terms_of(tolerant))
    assert (0b011, 0) == (eligible.allowed, eligible.avoided)
