"""Random small clusters, and gangs that want places in them, for Hypothesis."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from bough.model.cluster import (
    Node,
    Resources,
    Taint,
    TaintEffect,
    Toleration,
    Topology,
    TopologyLevel,
)
from bough.model.gang import (
    Gang,
    Pod,
    PodState,
    SubGroup,
    SubGroupSet,
    TopologyConstraint,
)

TOPOLOGY = Topology("wires", (TopologyLevel("zone"), TopologyLevel("rack", "shelf")))
LEVELS = ("zone", "rack")
SMALL = Resources(gpus=1, cpu_milli=1, memory_bytes=1)
SOFT = Taint("soft", effect=TaintEffect.PREFER_NO_SCHEDULE)
HARD = Taint("hard")


@dataclass
class World:
    """A cluster with gangs on it, and one that waits."""

    nodes: list[Node]
    running: list[Gang]
    gang: Gang


@st.composite
def clusters(draw: st.DrawFn, largest: int = 5, *, plain: bool = False) -> list[Node]:
    """Some nodes in two zones with two racks each; racks of both zones have the same names.

    Some nodes lack labels, and sometimes all of them do.
    """
    nodes: list[Node] = []
    outside = not plain and draw(st.integers(0, 9)) == 0
    for number in range(draw(st.integers(1, largest))):
        labels = {"zone": draw(st.sampled_from("ab")), "rack": draw(st.sampled_from("xy"))}
        if outside or (not plain and draw(st.integers(0, 9)) == 0):
            del labels[draw(st.sampled_from(LEVELS))]
        if draw(st.booleans()):
            labels["disk"] = "fast"
        taints = () if plain else draw(st.sampled_from([(), (), (), (), (SOFT,), (HARD,)]))
        capacity = Resources(
            gpus=draw(st.integers(0, 4)),
            cpu_milli=draw(st.integers(1, 6)),
            memory_bytes=draw(st.integers(2, 6)),
            pods=draw(st.sampled_from([1, 2, 9, 9])),
        )
        cordoned = not plain and draw(st.integers(0, 14)) == 0
        nodes.append(Node(f"n{number}", capacity, labels, taints, cordoned=cordoned))
    return draw(st.permutations(nodes))


@st.composite
def shapes(draw: st.DrawFn) -> Pod:
    """A pod without a name."""
    requests = Resources(
        gpus=draw(st.integers(0, 3)),
        cpu_milli=draw(st.integers(0, 3)),
        memory_bytes=draw(st.integers(0, 2)),
    )
    selector = {"disk": "fast"} if draw(st.integers(0, 5)) == 0 else {}
    tolerations = (Toleration("hard", "Exists"),) if draw(st.integers(0, 3)) == 0 else ()
    return Pod("", requests=requests, node_selector=selector, tolerations=tolerations)


@st.composite
def running_gangs(draw: st.DrawFn, nodes: list[Node]) -> list[Gang]:
    """Single pods that take some room, and some that are ending."""
    gangs: list[Gang] = []
    for number, node in enumerate(nodes):
        if draw(st.integers(0, 2)) == 0:
            state = draw(st.sampled_from([PodState.RUNNING, PodState.RELEASING]))
            pod = Pod("pod", requests=SMALL, state=state, node=node.name)
            gangs.append(Gang(f"other-{number}", "q", (pod,), minimum=1))
    return gangs


@st.composite
def worlds(
    draw: st.DrawFn,
    *,
    levels: tuple[str, ...] = LEVELS,
    nested: bool = True,
    one_shape: bool = False,
    most_pods: int = 6,
    started: bool = True,
) -> World:
    """A cluster and a gang with constraints; nested or not, at some of the levels."""
    nodes = draw(clusters())
    running = draw(running_gangs(nodes))
    return World(nodes, running, draw(_gangs(nodes, levels, nested, one_shape, most_pods, started)))


@st.composite
def _gangs(
    draw: st.DrawFn,
    nodes: list[Node],
    levels: tuple[str, ...],
    nested: bool,
    one_shape: bool,
    most_pods: int,
    started: bool,
) -> Gang:
    kinds = draw(st.lists(shapes(), min_size=1, max_size=1 if one_shape else 2))
    subgroups = draw(st.sampled_from([(), (), _FLAT, _FLAT, _DEEP]))
    leaves = [name for name, parent in subgroups if name not in dict(subgroups).values()] or [None]
    constraints = _constraints(
        draw, [None, *(name for name, _ in subgroups)], levels, subgroups, nested
    )
    pods: list[Pod] = []
    sizes = {leaf: draw(st.integers(1, max(2, most_pods // len(leaves)))) for leaf in leaves}
    for leaf in (leaf for leaf, size in sizes.items() for _ in range(size)):
        kind = draw(st.sampled_from(kinds))
        runs = started and draw(st.integers(0, 7)) == 0
        pods.append(
            Pod(
                name=f"p{len(pods)}",
                subgroup=leaf,
                requests=kind.requests,
                node_selector=kind.node_selector,
                tolerations=kind.tolerations,
                state=PodState.RUNNING if runs else PodState.PENDING,
                node=draw(st.sampled_from(nodes)).name if runs else None,
            )
        )
    inner = {parent for _, parent in subgroups}
    return Gang(
        name="gang",
        queue="q",
        pods=tuple(pods),
        subgroups=tuple(
            SubGroup(
                name,
                parent,
                draw(st.none() | st.integers(1, 2))
                if name in inner
                else draw(st.integers(1, sizes[name])),
                constraints.get(name),
            )
            for name, parent in subgroups
        ),
        minimum=draw(st.none() | st.integers(1, 2))
        if subgroups
        else draw(st.integers(1, sizes[None])),
        constraint=constraints.get(None),
        sets=_sets(draw, subgroups, levels) if nested else (),
    )


_FLAT = (("a", None), ("b", None), ("c", None))
_DEEP = (("l", None), ("l1", "l"), ("l2", "l"), ("r", None), ("r1", "r"), ("r2", "r"))


def _constraints(
    draw: st.DrawFn,
    names: list[str | None],
    levels: tuple[str, ...],
    subgroups: tuple[tuple[str, str | None], ...],
    nested: bool,
) -> dict[str | None, TopologyConstraint]:
    """Constraints for some nodes of the tree; unless nested, none stands above another."""
    if not levels:
        return {}
    parents = dict(subgroups)
    found: dict[str | None, TopologyConstraint] = {}
    for name in names:
        above = name is not None and (None in found or parents[name] in found)
        if draw(st.booleans()) or (above and not nested):
            continue
        required = draw(st.none() | st.sampled_from(levels)) if nested else levels[-1]
        preferred = draw(st.none() | st.sampled_from(LEVELS)) if nested else None
        found[name] = TopologyConstraint(required=required, preferred=preferred)
    return found


def _sets(
    draw: st.DrawFn, subgroups: tuple[tuple[str, str | None], ...], levels: tuple[str, ...]
) -> tuple[SubGroupSet, ...]:
    if subgroups != _FLAT or not levels or draw(st.integers(0, 2)):
        return ()
    return (SubGroupSet(("a", "b"), TopologyConstraint(required=draw(st.sampled_from(levels)))),)
