"""Damaged objects sent to the webhook: each is answered by a review, never by another exception.

An apiserver sends what people apply, as far as a definition of others lets it pass. The damage is
seeded: a failure can be repeated by its number.
"""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import settings

from bough.kube_webhook.reviews import LONGEST_ERROR, MOST_NAMED, answer_review
from bough.model.cluster import Topology, TopologyLevel
from bough.model.fair_queue import FairQueue
from bough.model.pod_group import PodGroup, SubGroupSpec
from bough.model.quota import Cohort
from tests.damaged import places
from tests.property.test_mutated_yaml import ODD_KEYS, ODD_TEXTS, ODD_VALUES
from tests.webhook_reviews import Cluster, cohort, pod, pod_group, queue, review

REVIEWS = 40 * settings().max_examples
BATCHES = 4
_LEVEL = {"topology": "t", "requiredTopologyLevel": "rack"}
_AMOUNTS = {"name": "nvidia.com/gpu", "nominalQuota": "4", "borrowingLimit": 1, "lendingLimit": 0}
_GROUPS = [
    {"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "f", "resources": [_AMOUNTS]}]}
]
OBJECTS: list[dict[str, Any]] = [
    pod_group(minMember=4, priorityClassName="high", topologyConstraint=_LEVEL),
    pod_group(
        minSubGroup=1,
        subGroups=[
            {"name": "above", "minSubGroup": 1, "topologyConstraint": _LEVEL},
            {"name": "a", "parent": "above", "minMember": 2},
            {"name": "b", "parent": "above", "minMember": 1},
        ],
    ),
    pod("g", "decode"),
    queue("below", "above"),
    {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": "t"},
        "spec": {"levels": [{"nodeLabel": "zone"}, {"nodeLabel": "example.com/rack"}]},
    },
    cohort("below", "above", resourceGroups=_GROUPS, fairSharing={"weight": "2"}),
    {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "q"},
        "spec": {
            "cohortName": "above",
            "resourceGroups": _GROUPS,
            "preemption": {"reclaimWithinCohort": "Any", "borrowWithinCohort": {"policy": "Never"}},
            "namespaceSelector": {"matchLabels": {"team": "a"}},
        },
    },
]
ODD: list[Any] = [
    *(value for value in ODD_VALUES if value != float("inf")),
    *ODD_TEXTS,
    *("below", "above", "leaf", "a", "g", 2**63, -(2**63), 1e308, -1e-300, "9" * 400),
]


def damage(source: random.Random) -> Any:
    """One of the objects, with up to four places of it replaced, renamed, removed or doubled."""
    written = copy.deepcopy(source.choice(OBJECTS))
    for _ in range(source.randrange(1, 5)):
        container, key = source.choice(list(places(written)))
        way = source.randrange(5)
        if way == 0:
            del container[key]
        elif way == 1 and isinstance(container, dict):
            container[source.choice(ODD_KEYS)] = container.pop(key)
        elif way == 2 and isinstance(container, list):
            container.extend(copy.deepcopy(container) * source.randrange(1, 3))
        elif way == 3:
            container[key] = copy.deepcopy(source.choice(OBJECTS)["spec"])
        else:
            container[key] = copy.deepcopy(source.choice(ODD))
        if not list(places(written)):
            break
    return written


def cluster() -> Cluster:
    """One with something of everything, in part as odd as what is sent."""
    made = Cluster()
    leaves = (SubGroupSpec(name="decode", min_member=1), SubGroupSpec(name="b", parent="gone"))
    made.pod_groups["ns/g"] = PodGroup("g", "ns", min_sub_group=1, subgroups=leaves)
    made.queues["above"] = FairQueue("above", parent="below")
    made.cohorts["above"] = Cohort("above", parent="below")
    made.known_topologies = (Topology("t", (TopologyLevel("example.com/rack", "rack"),)),)
    return made


@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_damaged_object_is_answered_by_a_review(batch: int):
    around, seen = cluster(), Counter[bool]()
    for number in range(batch, REVIEWS, BATCHES):
        written = damage(random.Random(number))
        before = random.Random(number).choice([None, *OBJECTS])
        try:
            body = review(written, before, operation="UPDATE" if before else "CREATE")
            response = json.loads(answer_review(body, around))["response"]
        except Exception as error:
            raise AssertionError(f"damage {number}: {json.dumps(written)[:2_000]}") from error
        assert "u" == response["uid"]
        seen[response["allowed"]] += 1
        if not response["allowed"]:
            told = response["status"]["message"]
            assert told, number
            assert len(told) <= (MOST_NAMED + 1) * (LONGEST_ERROR + len("; ")), number
    # Both answers were given, or the damage is too much or too little.
    assert min(seen[True], seen[False]) > 0
