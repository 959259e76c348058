"""Hypothesis strategies that the property tests share: small quota trees and their histories."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st

from bough.core.quota.tree import (
    Change,
    DeleteCohort,
    DeleteQueue,
    PutCohort,
    PutQueue,
    QuotaTree,
)
from bough.model.quota import (
    Cohort,
    FlavorQuotas,
    FlavorResource,
    NodeKind,
    Queue,
    Quota,
    ResourceGroup,
    TreeNode,
)

COHORTS = ("a", "b", "c", "d", "e")
QUEUES = ("p", "q", "r", "s")
FLAVORS = ("big", "small")
AMOUNTS = st.integers(0, 9)
LIMITS = st.none() | AMOUNTS
WEIGHTS = st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(1), Fraction(2)])
RESOURCES = [FlavorResource(flavor, "gpu") for flavor in FLAVORS]


@st.composite
def resource_groups(draw: st.DrawFn, *, nominal: st.SearchStrategy[int] = AMOUNTS):
    flavors = draw(st.lists(st.sampled_from(FLAVORS), unique=True, max_size=2))
    if not flavors:
        return ()
    quotas = st.builds(Quota, nominal, LIMITS, LIMITS)
    listed = tuple(FlavorQuotas(name, {"gpu": draw(quotas)}) for name in flavors)
    return (ResourceGroup(("gpu",), listed),)


def cohorts(parents: st.SearchStrategy[str | None]) -> st.SearchStrategy[Cohort]:
    return st.builds(Cohort, st.sampled_from(COHORTS), parents, resource_groups(), WEIGHTS)


def queues(parents: st.SearchStrategy[str | None]) -> st.SearchStrategy[Queue]:
    return st.builds(Queue, st.sampled_from(QUEUES), parents, resource_groups(), WEIGHTS)


PARENTS = st.none() | st.sampled_from(COHORTS)


def changes() -> st.SearchStrategy[Change]:
    """Any change, cycles and deletions of what others name among them."""
    return st.one_of(
        st.builds(PutCohort, cohorts(PARENTS)),
        st.builds(PutQueue, queues(PARENTS)),
        st.builds(DeleteCohort, st.sampled_from(COHORTS)),
        st.builds(DeleteQueue, st.sampled_from(QUEUES)),
    )


@st.composite
def forests(draw: st.DrawFn) -> tuple[list[Cohort], list[Queue]]:
    """Declarations without a cycle: a cohort's parent comes later in the alphabet."""
    declared = [
        Cohort(name, draw(st.none() | st.sampled_from(COHORTS[index + 1 :] or (None,))))
        for index, name in enumerate(COHORTS)
        if draw(st.booleans())
    ]
    return (
        [Cohort(c.name, c.parent, draw(resource_groups()), draw(WEIGHTS)) for c in declared],
        [
            Queue(name, draw(PARENTS), draw(resource_groups()), draw(WEIGHTS))
            for name in QUEUES
            if draw(st.booleans())
        ],
    )


def usages() -> st.SearchStrategy[tuple[str, dict[FlavorResource, int]]]:
    return st.tuples(
        st.sampled_from(QUEUES),
        st.dictionaries(st.sampled_from(RESOURCES), st.integers(1, 6), min_size=1),
    )


def admit_what_fits(tree: QuotaTree, requests: list[tuple[str, dict[FlavorResource, int]]]) -> None:
    """Fill a tree by its own rule, so that it is in a legal state."""
    for queue, request in requests:
        if TreeNode(NodeKind.QUEUE, queue) in tree and tree.refusal(queue, request) is None:
            tree.add_usage(queue, request)
