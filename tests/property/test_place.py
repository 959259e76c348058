"""Laws of placement, on small random clusters."""

from __future__ import annotations

from collections import Counter
from itertools import count

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from bough.core.gang.demand import needed
from bough.core.gang.sufficiency import stand
from bough.core.gang.tree import GangTree, Held, counts_of
from bough.core.place.placer import Placer
from bough.core.place.result import GangPlacement, NoPlace
from bough.model.cluster import Node
from bough.model.gang import Gang, Pod, PodState, TopologyConstraint
from bough.model.place_policy import Packing, PlacePolicy
from tests.oracles.place import allows, can_start, confined, domain_of
from tests.strategies_place import TOPOLOGY, World, clusters, shapes, worlds

#: Enough for all worlds of this size.
PATIENT = PlacePolicy(work=200_000)
POLICIES = st.sampled_from(
    [
        PATIENT,
        msgspec.structs.replace(PATIENT, packing=Packing.SPREAD),
        msgspec.structs.replace(PATIENT, cpu_pods_by_cpu=True, near_running=False),
        msgspec.structs.replace(PATIENT, outside=False, roomiest_first=True),
    ]
)


def placer_of(world: World, policy: PlacePolicy = PATIENT) -> Placer:
    placer = Placer(world.nodes, [TOPOLOGY], policy)
    placer.add([*world.running, world.gang])
    return placer


def start(
    world: World, policy: PlacePolicy = PATIENT, *, later: bool = False
) -> GangPlacement | NoPlace:
    tree = GangTree.of(world.gang)
    return placer_of(world, policy).start(tree, tree.held, later=later)


def needs_places(world: World) -> bool:
    tree = GangTree.of(world.gang)
    return needed(tree, tree.held) is not None


# Nothing is refused that has a place


@given(worlds(levels=("rack",), nested=False, one_shape=True))
def test_pods_of_one_shape_are_never_refused_needlessly(world: World) -> None:
    assume(needs_places(world))
    expected = can_start(world.gang, world.running, world.nodes, TOPOLOGY)
    assert expected == isinstance(start(world), GangPlacement)


@given(worlds(levels=("rack",), nested=False))
def test_pods_of_several_shapes_are_never_refused_needlessly(world: World) -> None:
    assume(needs_places(world))
    expected = can_start(world.gang, world.running, world.nodes, TOPOLOGY)
    assert expected == isinstance(start(world), GangPlacement)


@given(worlds())
def test_nested_constraints_are_never_refused_needlessly_given_enough_work(world: World) -> None:
    assume(needs_places(world))
    expected = can_start(world.gang, world.running, world.nodes, TOPOLOGY)
    assert expected == isinstance(start(world), GangPlacement)


@given(worlds())
def test_a_search_that_did_not_give_up_has_proved_its_refusal(world: World) -> None:
    assume(needs_places(world))
    found = start(world, PlacePolicy(work=5))
    assume(isinstance(found, NoPlace) and not found.gave_up)
    assert not can_start(world.gang, world.running, world.nodes, TOPOLOGY)


# What is placed obeys every rule


@given(worlds(), POLICIES, st.booleans())
def test_a_gang_is_never_placed_in_part(world: World, policy: PlacePolicy, later: bool) -> None:
    tree = GangTree.of(world.gang)
    found = placer_of(world, policy).start(tree, tree.held, later=later)
    if isinstance(found, NoPlace):
        return
    held = tree.held
    for unit in (found.core, *found.growth):
        before, held = held, tree.with_pods(held, unit.pods)
        standing = stand(tree, counts_of(held))
        assert standing.satisfied(tree.root)
        for node in tree.nodes:
            row = slice(node.first_leaf, node.end_leaf)
            if before[row] != held[row]:
                assert standing.satisfied(node), node.name


@given(worlds(), POLICIES)
def test_no_pod_is_placed_beyond_what_the_gang_needs_and_each_unit_is_the_smallest(
    world: World, policy: PlacePolicy
) -> None:
    tree = GangTree.of(world.gang)
    found = placer_of(world, policy).start(tree, tree.held)
    if isinstance(found, NoPlace):
        return
    held = tree.held
    for unit in (found.core, *found.growth):
        full = tree.with_pods(held, unit.pods)
        for pod in unit.pods if len(unit.pods) > 1 or unit is found.core else ():
            less = tree.without_pods(full, [pod])
            assert _broken_nodes(tree, less) - _broken_nodes(tree, full), pod
        held = full
    names = [assignment.pod for assignment in found.assignments]
    assert len(names) == len(set(names))
    pending = {pod.name for pod in world.gang.pods if pod.state is PodState.PENDING}
    assert set(names) <= pending


def _broken_nodes(tree: GangTree, held: Held) -> set[str]:
    """The subgroups that have pods, but not as many as they need."""
    standing = stand(tree, counts_of(held))
    return {
        node.name
        for node in tree.nodes
        if not standing.satisfied(node) and any(held[node.first_leaf : node.end_leaf])
    } | ({"root"} if not standing.satisfied(tree.root) else set())


@given(worlds(), POLICIES, st.booleans())
def test_no_node_is_overcommitted(world: World, policy: PlacePolicy, later: bool) -> None:
    found = start(world, policy, later=later)
    if isinstance(found, NoPlace):
        return
    pods = {pod.name: pod for pod in world.gang.pods}
    present = [pod for gang in (*world.running, world.gang) for pod in gang.pods if pod.node]
    for node in world.nodes:
        new = [each for each in found.assignments if each.node == node.name]
        there = [pod for pod in present if pod.node == node.name]
        staying = [pod for pod in there if pod.state is PodState.RUNNING]
        waiting = [pods[each.pod] for each in new]
        starting = [pods[each.pod] for each in new if not each.waits]
        if waiting:
            assert _fits(node, staying + waiting, waiting)
        if starting:
            assert _fits(node, there + starting, starting)


def _fits(node: Node, pods: list[Pod], new: list[Pod]) -> bool:
    """Whether a node holds all pods, in every resource of which a new one asks something."""
    return len(pods) <= node.capacity.pods and all(
        sum(getattr(pod.requests, name) for pod in pods) <= getattr(node.capacity, name)
        for name in ("gpus", "cpu_milli", "memory_bytes")
        if any(getattr(pod.requests, name) for pod in new)
    )


@given(worlds(), POLICIES, st.booleans())
def test_pods_are_only_where_they_may_be(world: World, policy: PlacePolicy, later: bool) -> None:
    found = start(world, policy, later=later)
    if isinstance(found, NoPlace):
        return
    nodes = {node.name: node for node in world.nodes}
    pods = {pod.name: pod for pod in world.gang.pods}
    assert all(allows(nodes[each.node], pods[each.pod]) for each in found.assignments)


@given(worlds(), POLICIES)
def test_required_domains_are_respected_by_the_core_and_by_growth(
    world: World, policy: PlacePolicy
) -> None:
    found = start(world, policy)
    if isinstance(found, NoPlace):
        return
    nodes = {node.name: node for node in world.nodes}
    placed = {each.pod: nodes[each.node] for each in found.assignments}
    for constraint, pods in confined(world.gang):
        if constraint.required is None:
            continue
        level = constraint.required
        new = {domain_of(placed[pod.name], TOPOLOGY, level) for pod in pods if pod.name in placed}
        running = {
            domain_of(nodes[pod.node], TOPOLOGY, level)
            for pod in pods
            if pod.state is PodState.RUNNING and pod.node
        } - {None}
        assert None not in new
        assert len(new) <= max(1, len(running))
        assert not running or new <= running


@given(worlds(), POLICIES)
def test_either_all_pods_of_a_unit_wait_or_none(world: World, policy: PlacePolicy) -> None:
    found = start(world, policy, later=True)
    if isinstance(found, NoPlace):
        return
    for unit in (found.core, *found.growth):
        assert len({each.waits for each in unit.assignments}) <= 1
    assert not found.core.waits or all(unit.waits for unit in found.growth)


@given(worlds())
def test_a_gang_that_can_start_now_does_not_wait(world: World) -> None:
    now, later = start(world), start(world, later=True)
    if isinstance(now, NoPlace):
        return
    assert isinstance(later, GangPlacement)
    assert now.core == later.core


# Preferences


@given(clusters(plain=True), shapes(), st.integers(1, 6))
def test_as_few_preferred_domains_are_used_as_possible(
    nodes: list[Node], shape: Pod, size: int
) -> None:
    pods = tuple(msgspec.structs.replace(shape, name=f"p{number}") for number in range(size))
    gang = Gang("gang", "q", pods, minimum=size, constraint=TopologyConstraint(preferred="rack"))
    found = start(World(nodes, [], gang))
    if isinstance(found, NoPlace):
        return
    racks: dict[object, list[Node]] = {}
    for node in nodes:
        racks.setdefault(domain_of(node, TOPOLOGY, "rack"), []).append(node)
    rooms = sorted((_room(members, shape) for members in racks.values()), reverse=True)
    fewest = next(number for number in count(1) if sum(rooms[:number]) >= size)
    by_name = {node.name: node for node in nodes}
    used = {domain_of(by_name[each.node], TOPOLOGY, "rack") for each in found.assignments}
    assert fewest == len(used)


def _room(nodes: list[Node], pod: Pod) -> int:
    return sum(
        next(
            fit
            for fit in count(0)
            if not allows(node, pod) or not _fits(node, [pod] * (fit + 1), [pod])
        )
        for node in nodes
    )


# Caches and order change nothing


@given(st.lists(worlds(), min_size=1, max_size=4), POLICIES, st.booleans())
def test_memory_never_changes_a_plan(many: list[World], policy: PlacePolicy, later: bool) -> None:
    assert _plan(many, policy, later) == _plan(
        many, msgspec.structs.replace(policy, remember=False), later
    )


@given(st.lists(worlds(), min_size=1, max_size=3), POLICIES)
def test_the_order_in_which_nodes_are_given_changes_nothing(
    many: list[World], policy: PlacePolicy
) -> None:
    first = _plan(many, policy, later=False)
    many[0].nodes.sort(key=lambda node: node.capacity.gpus)
    assert first == _plan(many, policy, later=False)
    many[0].nodes.reverse()
    assert first == _plan(many, policy, later=False)


def _plan(many: list[World], policy: PlacePolicy, later: bool) -> list[GangPlacement | NoPlace]:
    """Place several gangs one after the other; now and then one that runs is told to end."""
    placer = Placer(many[0].nodes, [TOPOLOGY], policy)
    placer.add(many[0].running)
    found: list[GangPlacement | NoPlace] = []
    for number, world in enumerate(many):
        gang = _rename(world.gang, f"gang-{number}")
        tree = GangTree.of(gang)
        for _ in range(2):
            mark = placer.mark()
            found.append(placer.start(tree, tree.held, later=later))
            placer.undo(mark)
        found.append(placer.start(tree, tree.held, later=later))
        for other in many[0].running[number : number + 1]:
            placer.release(other.name, "pod", gone=number % 2 == 0)
    return found


def _rename(gang: Gang, name: str) -> Gang:
    """Another name, and nothing that runs: its nodes are those of another cluster."""
    pods = tuple(
        msgspec.structs.replace(pod, state=PodState.PENDING, node=None) for pod in gang.pods
    )
    return msgspec.structs.replace(gang, name=name, pods=pods)


# Undo


@given(st.lists(worlds(), min_size=2, max_size=4), st.data())
def test_undo_restores_everything(many: list[World], data: st.DataObject) -> None:
    placer = placer_of(many[0])
    marks: list[tuple[int, object]] = []
    for number, world in enumerate(many[1:] * 2):
        marks.append((placer.mark(), _state(placer)))
        gang = _rename(world.gang, f"gang-{number}")
        tree = GangTree.of(gang)
        found = placer.start(tree, tree.held, later=True)
        if isinstance(found, GangPlacement):
            for each in found.assignments:
                if data.draw(st.booleans()):
                    placer.release(gang.name, each.pod, gone=data.draw(st.booleans()))
        for other in many[0].running:
            action = data.draw(st.integers(0, 3))
            if action == 0:
                placer.release(other.name, "pod")
            elif action == 1 and placer.holding(other.name, "pod"):
                placer.keep(other.name, "pod")
    while marks:
        chosen = data.draw(st.integers(0, len(marks) - 1))
        mark, state = marks[chosen]
        placer.undo(mark)
        assert state == _state(placer)
        del marks[chosen:]


def _state(placer: Placer) -> object:
    index = placer.index
    return (
        list(index.idle),
        list(index.later),
        list(index.by_gpus),
        index.anything_ends,
        dict(placer._holdings),
        dict(placer._refused[0]),
        [list(domains.free(level, 0)) for domains in placer.topologies for level in (0, 1)],
    )


@given(st.lists(worlds(), min_size=2, max_size=4))
def test_what_is_free_is_what_no_pod_holds(many: list[World]) -> None:
    placer = placer_of(many[0])
    for number, world in enumerate(many[1:]):
        tree = GangTree.of(_rename(world.gang, f"gang-{number}"))
        placer.start(tree, tree.held, later=True)
    index = placer.index
    taken = Counter[tuple[int, int]]()
    for holding in placer._holdings.values():
        if holding.hold.name != "ENDS":
            for column, amount in enumerate(holding.row):
                taken[holding.at, column] += amount
    for at, row in enumerate(index.later):
        assert row == tuple(
            amount - taken[at, column] for column, amount in enumerate(index.capacity[at])
        )
        assert index.by_gpus[max(0, row[0])] >> at & 1
        assert sum(mask >> at & 1 for mask in index.by_gpus) == 1
