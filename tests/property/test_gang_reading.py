"""Every file is either refused with reasons or becomes a gang that holds together."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bough.core.gang.from_pod_group import normalise
from bough.core.gang.sufficiency import minimum_pods
from bough.core.gang.tree import GangTree
from bough.core.gang.validation import check_pod_group, check_pods
from bough.formats.yaml.composer import compose
from bough.formats.yaml.documents import Document
from bough.model.cluster import Topology, TopologyLevel
from bough.model.gang import Pod, TopologyConstraint
from bough.model.pod_group import PodGroup, SubGroupSetSpec, SubGroupSpec, TopologyConstraints
from bough.model.problem import Severity
from bough.tools.gang import describe
from bough.tools.load_gangs import gather

NAMES = st.sampled_from(["a", "b", "c", "d", "A", "default"])
CONSTRAINTS = st.builds(
    TopologyConstraint,
    topology=st.sampled_from([None, "t"]),
    required=st.sampled_from([None, "block", "rack"]),
    preferred=st.sampled_from([None, "block", "rack"]),
)
RACK = TopologyConstraint("t", "rack")
TOPOLOGIES = st.sampled_from(
    [
        None,
        [Topology("t", (TopologyLevel("block"), TopologyLevel("rack", "r")))],
        [
            Topology("t", (TopologyLevel("block"), TopologyLevel("rack"))),
            Topology("u", (TopologyLevel("row"),)),
        ],
    ]
)
PODS = st.lists(st.none() | NAMES, max_size=4).map(
    lambda subgroups: [Pod(f"pod-{index}", each) for index, each in enumerate(subgroups)]
)

#: What may stand in a file where something else was expected.
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "1.5", "Running"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=3,
)
OBJECTS: list[dict[str, Any]] = [
    {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "pg"},
        "spec": {
            "queue": "q",
            "minSubGroup": 1,
            "subGroups": [{"name": "a", "minMember": 1}, {"name": "b", "minMember": 1}],
            "topologyConstraints": {
                "global": {"requiredTopologyLevel": "rack"},
                "subGroups": {"a": {"requiredTopologyLevel": "rack"}},
                "subGroupSets": [{"subGroups": ["a"], "constraint": {"topology": "t"}}],
            },
        },
    },
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "labels": {"kai.scheduler/subgroup-name": "a"},
            "annotations": {"pod-group-name": "pg"},
        },
        "spec": {"containers": [{"resources": {"requests": {"cpu": 1}}}], "schedulingGates": []},
        "status": {"phase": "Pending"},
    },
    {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": "q"},
        "spec": {"parentQueue": "r", "resources": {"gpu": {"quota": 1, "limit": -1}}},
    },
    {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": "t"},
        "spec": {"levels": [{"nodeLabel": "rack", "alias": "r"}]},
    },
]


@st.composite
def pod_groups(draw: st.DrawFn) -> PodGroup:
    """Mostly valid, in the newer or the older form; in places a number or a name is wrong."""
    names = [chr(ord("a") + index) for index in range(draw(st.integers(0, 5)))]
    parents = {
        name: draw(st.sampled_from([None, *names[:index]])) for index, name in enumerate(names)
    }
    newer = draw(st.booleans())
    slips = draw(st.sampled_from([False, False, True]))

    def minimum(name: str | None) -> dict[str, int | None]:
        children = sum(parent == name for parent in parents.values())
        value = draw(st.integers(1, children or 3))
        if slips:
            value = draw(st.sampled_from([value, value, -1, 0, 9]))
        if not children:
            return {"min_member": value}
        return {"min_sub_group" if newer else "min_member": draw(st.sampled_from([None, value]))}

    subgroups = tuple(
        SubGroupSpec(
            name=name,
            parent=draw(NAMES) if slips and draw(st.booleans()) else parent,
            constraint=draw(st.sampled_from([None, None, RACK])),
            **minimum(name),
        )
        for name, parent in parents.items()
    )
    siblings = [name for name, parent in parents.items() if parent is None]
    free = [each.name for each in subgroups if each.constraint is None]
    return PodGroup(
        name="pg",
        subgroups=subgroups,
        constraint=draw(st.sampled_from([None, None, RACK])),
        constraints=TopologyConstraints(
            fallback=draw(st.none() | CONSTRAINTS),
            subgroups={name: RACK for name in free if draw(st.booleans())},
            sets=draw(
                st.sampled_from([(), (SubGroupSetSpec(tuple(siblings[:2] or ["x"]), RACK),)])
            ),
        ),
        **minimum(None),
    )


@given(pod_groups(), TOPOLOGIES, PODS)
def test_a_pod_group_without_errors_becomes_a_gang_that_can_be_laid_out(
    pod_group: PodGroup, topologies: list[Topology] | None, pods: list[Pod]
) -> None:
    problems = check_pod_group(pod_group, topologies)
    if any(problem.severity is Severity.ERROR for problem in problems):
        return
    gang = normalise(pod_group, pods, topologies or ())
    tree = GangTree.of(gang)
    for node in tree.nodes:
        assert 1 <= node.minimum
        assert node.is_leaf or node.minimum <= len(node.children)
    assert 1 <= minimum_pods(tree)
    strays = {problem.subject for problem in check_pods(pod_group, pods)}
    assert strays == {f"Pod/{pod.name}" for pod in tree.strays}
    for group in gang.sets:
        assert group.members
    if topologies:
        labels = {level.label for topology in topologies for level in topology.levels}
        for node in tree.nodes:
            if node.constraint is not None and node.constraint.required is not None:
                assert node.constraint.required in labels


@given(st.data())
def test_files_with_anything_in_them_are_read_without_a_crash(data: st.DataObject) -> None:
    texts: list[Document] = []
    for each in OBJECTS:
        broken = spoil(each, data) if data.draw(st.booleans()) else each
        (value, line), *_ = compose(json.dumps(broken), "file")  # JSON is YAML
        texts.append(Document(value, "file", line))
    found = gather(texts)
    for gang in found.gangs:
        assert gang.name == describe(gang).name


def spoil(value: Any, data: st.DataObject) -> Any:
    """Replace something, somewhere, by something else; or take it away."""
    if isinstance(value, dict) and value and data.draw(st.integers(0, 4)):
        key = data.draw(st.sampled_from(sorted(value)))
        if data.draw(st.integers(0, 5)) == 0:
            return {name: each for name, each in value.items() if name != key}
        return {**value, key: spoil(value[key], data)}
    if isinstance(value, list) and value and data.draw(st.integers(0, 4)):
        return [spoil(value[0], data), *value[1:]]
    return data.draw(VALUES)
