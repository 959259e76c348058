"""What KAI is told of a gang, what it evicted, and what a cluster looks like to the core."""

from __future__ import annotations

import msgspec
import pytest

from bough.backends.kubernetes.attempt_state import PodAttempt
from bough.backends.kubernetes.kai.evictions import Evictions, KubeEvent, deleted_ms, time_ms
from bough.backends.kubernetes.kai.gang_manifest import let_kai_place, pod_group, subgroup_names
from bough.backends.kubernetes.kai.pod_groups import GangView, KaiPodGroup, differences
from bough.backends.kubernetes.pod_manifest import make_objects
from bough.control.gangs_of_groups import ELSEWHERE, anywhere
from bough.control.pools.pool_setup import PoolSetup
from bough.control.pools.quota_tree import derive
from bough.control.pools.stand_in_nodes import with_stand_ins
from bough.control.scheduling.gang_terms import terms_of
from bough.kube.decoding import WatchEvent, WatchEventKind
from bough.kube.objects import KubePod
from bough.kube.watching import Relisted
from bough.model.backend import GangTerms, Sight
from bough.model.cluster import Resources
from bough.model.gang import Gang, Pod, PodState, SubGroup, SubGroupSet, TopologyConstraint
from bough.model.names import QueueName
from bough.model.pool import OfferedNode, Pool, TopologyKey
from bough.model.workflow import GroupSpec, TaskSpec
from tests.kubernetes.pods import ATTEMPT, SITE, launch, pod, start

QUEUE = QueueName("ns", "team", "a")
POOL = Pool("team", topology_keys=(TopologyKey("rack", "example.com/rack"),))
TOPOLOGY = "osmo-pool-ns-team-topology"


def group(*subgroups: SubGroup, **fields: object) -> GroupSpec:
    """Two tasks for each leaf, or two without any."""
    parents = {each.parent for each in subgroups}
    leaves = [each.name for each in subgroups if each.name not in parents] or [None]
    tasks = tuple(
        TaskSpec(f"{leaf}-{each}", Resources(1), subgroup=leaf) for leaf in leaves for each in "ab"
    )
    return GroupSpec("group", tasks, subgroups=subgroups, **fields)  # type: ignore[arg-type]


def test_every_minimum_is_said_and_levels_are_labels():
    near = TopologyConstraint(required="rack", preferred="example.com/rack")
    terms = terms_of(group(constraint=near), QUEUE, "osmo-high", POOL)

    level = "example.com/rack"
    assert (
        GangTerms(
            "osmo-pool-ns-team--a", "osmo-high", 2, (), TopologyConstraint(TOPOLOGY, level, level)
        )
        == terms
    )
    assert 1 == terms_of(group(minimum=1), QUEUE, "osmo-high", POOL).minimum
    assert terms_of(group(constraint=near), QUEUE, "osmo-high", Pool("team")).constraint is None


def test_inner_subgroups_count_subgroups_and_leaves_count_pods():
    spec = group(SubGroup("all"), SubGroup("one", "all"), SubGroup("two", "all", 1))
    terms = terms_of(spec, QUEUE, "osmo-low", POOL)
    made = pod_group(SITE, start(launch()), terms)["spec"]

    assert 1 == made["minSubGroup"]
    assert [
        {"name": "all", "minSubGroup": 2},
        {"name": "one", "parent": "all", "minMember": 2},
        {"name": "two", "parent": "all", "minMember": 1},
    ] == made["subGroups"]


def test_a_set_of_subgroups_gets_a_parent_that_keeps_it_together():
    near = TopologyConstraint(required="rack")
    spec = group(
        SubGroup("one"), SubGroup("two"), SubGroup("far"), sets=(SubGroupSet(("one", "two"), near),)
    )
    found = {each.name: each for each in terms_of(spec, QUEUE, "osmo-low", POOL).subgroups}

    assert ["set-0", "set-0", None] == [found[each].parent for each in ("one", "two", "far")]
    assert (2, "example.com/rack") == (
        found["set-0"].minimum,
        found["set-0"].constraint and found["set-0"].constraint.required,
    )
    elastic = msgspec.structs.replace(spec, minimum=1)
    kept = {each.parent for each in terms_of(elastic, QUEUE, "osmo-low", POOL).subgroups}
    assert {None} == kept


def test_names_of_subgroups_are_valid_and_stay_apart():
    terms = GangTerms("q", "p", 1, tuple(map(SubGroup, ("A_b", "a-b", "A-b", "a.b"))))
    names = subgroup_names(terms)

    assert "a-b" == names["a-b"]
    assert 4 == len(set(names.values()))


def test_a_pod_that_kai_places_names_its_gang_and_no_node():
    terms = GangTerms("queue", "osmo-low", 1, (SubGroup("part", minimum=1),))
    task = launch(subgroup="part", nodes_excluded=("bad",))
    made = make_objects(SITE, "bough", start(task), task)
    let_kai_place(made.pod, task, terms)

    spec, metadata = made.pod["spec"], made.pod["metadata"]
    assert "nodeName" not in spec
    assert "kai-scheduler" == spec["schedulerName"]
    assert "queue" == metadata["labels"]["kai.scheduler/queue"] == metadata["labels"]["runai/queue"]
    assert "part" == metadata["labels"]["kai.scheduler/subgroup-name"]
    named = pod_group(SITE, start(task), terms)["metadata"]["name"]
    assert {"pod-group-name": named} == metadata["annotations"]
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert [{"key": "metadata.name", "operator": "NotIn", "values": ["bad"]}] == term["matchFields"]


def event(at: str, name: str = "g1", reason: str = "Evict") -> KubeEvent:
    body = {
        "metadata": {"creationTimestamp": at},
        "reason": reason,
        "message": "for b",
        "involvedObject": {"kind": "PodGroup", "name": name},
    }
    return msgspec.convert(body, KubeEvent)


@pytest.mark.parametrize(
    ("at", "why"),
    [("23:59:40Z", "for b"), ("23:59:00Z", "for b"), ("23:50:00Z", ""), ("23:59:58Z", "for b")],
)
def test_a_pod_was_evicted_if_kai_said_so_when_it_was_deleted(at: str, why: str):
    # It was deleted at 23:59:59.
    (at_ms,) = [deleted_ms(pod(deleted=True))]
    evictions = Evictions()
    assert "g1" == evictions.take(event(f"2026-01-31T{at}"))
    assert evictions.take(event(f"2026-01-31T{at}", reason="Scheduled")) is None

    assert at_ms is not None
    assert why == evictions.of("g1", 0, at_ms)
    assert "" == evictions.of("other", 0, at_ms)


def test_an_eviction_is_not_of_pods_that_came_after_it():
    (at_ms,) = [deleted_ms(pod(deleted=True))]
    assert at_ms is not None
    evictions = Evictions()
    evictions.take(event("2026-01-31T23:59:40Z"))

    assert "for b" == evictions.of("g1", at_ms - 19_000, at_ms)
    assert "" == evictions.of("g1", at_ms - 18_000, at_ms)
    # No server was there to see when it was deleted.
    assert ["for b", ""] == [evictions.of("g1", at_ms - ms, None) for ms in (3_600_000, 18_000)]


def test_an_eviction_within_the_second_in_which_a_task_began_to_run_is_of_its_pod():
    evictions = Evictions()
    evictions.take(event("2026-01-31T23:59:40Z"))
    said_ms = time_ms("2026-01-31T23:59:40Z")

    assert "for b" == evictions.of("g1", said_ms + 999, None)
    assert "" == evictions.of("g1", said_ms + 1_000, None)


def attempt(found: KubePod) -> PodAttempt:
    made = PodAttempt(ATTEMPT)
    made.take(found, 1)
    return made


def test_what_was_evicted_is_preempted_and_what_was_deleted_is_lost():
    for evicted, sight in (("for b", Sight.PREEMPTED), ("", Sight.LOST)):
        known = attempt(pod(deleted=True))
        known.evicted = evicted
        known.take_gone(2)
        assert sight is known.observed().sight
        assert "n" == known.observed().node
        assert evicted in known.observed().message


def test_what_a_scheduler_says_on_the_pod_itself_counts_too():
    said = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    known = attempt(pod(deleted=True, conditions=[{**said, "message": "for c"}]))
    known.take_gone(2)

    assert (Sight.PREEMPTED, True) == (known.observed().sight, "for c" in known.observed().message)


def unbound(**status: object) -> KubePod:
    found = pod("Pending", **status)
    return msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, node_name=""))


def test_what_waits_for_a_place_is_not_given_up_and_says_what_its_gang_waits_for():
    known = attempt(unbound())
    assert not known.give_up(1_000, 10_000_000)
    known.gang_waits = "no room"
    assert known.look_again(5)
    assert ("no room", None) == (known.observed().message, known.observed().node)

    known.take(pod("Pending"), 10_000_000)
    assert ("", "n") == (known.observed().message, known.observed().node)
    assert not known.give_up(1_000, 10_000_500)
    assert known.give_up(1_000, 10_001_001)


def test_for_the_core_such_a_cluster_has_room_for_all_that_quota_admits():
    nodes = (OfferedNode("real", "kai", gpus=8), OfferedNode("own", "other", gpus=4))
    pools = (Pool("team", backend="kai"), Pool("rest", backend="other"))
    setup = with_stand_ins(PoolSetup(pools, nodes=nodes), lambda each: each == "kai")

    own = [each for each in setup.nodes if each.backend != "kai"]
    assert nodes[1:] == tuple(own)
    assert 8 * 8 <= sum(each.gpus for each in setup.nodes if each.backend == "kai")
    assert "real" not in [each.name for each in setup.nodes]
    forest = derive(setup, "ns")
    assert 2 == len(forest.flavors)
    assert nodes == with_stand_ins(PoolSetup(pools, nodes=nodes), lambda _: False).nodes


def test_a_gang_that_is_placed_elsewhere_keeps_its_quota_and_holds_no_node():
    near = TopologyConstraint("t", required="rack")
    pods = (Pod("a", state=PodState.RUNNING, node="real"), Pod("b", node_selector={"x": "y"}))
    gang = Gang("g", "q", pods, (SubGroup("s", constraint=near),), constraint=near)
    found = anywhere(gang)

    assert [ELSEWHERE, None] == [each.node for each in found.pods]
    assert {} == found.pods[1].node_selector
    assert found.constraint is found.subgroups[0].constraint is None


def seen(wanted: dict[str, object], **spec: object) -> KaiPodGroup:
    """A PodGroup as a cluster has it, with other fields."""
    written = {**wanted, "spec": {**wanted["spec"], **spec}}  # type: ignore[dict-item]
    return msgspec.convert(written, KaiPodGroup)


def test_what_others_did_to_a_pod_group_is_named_and_what_a_cluster_fills_in_is_not():
    spec = group(SubGroup("one"), SubGroup("two"))
    wanted = pod_group(SITE, start(launch()), terms_of(spec, QUEUE, "osmo-low", POOL))
    one, two = wanted["spec"]["subGroups"]

    filled_in = [{**one, "minSubGroup": None, "more": 1}, two]
    assert [] == list(differences(wanted, seen(wanted, subGroups=filled_in, backoffLimit=3)))
    for changes, told in (
        ({"queue": "other"}, "queue is other, not osmo-pool-ns-team--a"),
        ({"subGroups": [one]}, "subGroups is "),
        ({"subGroups": [one, {**two, "minMember": 9}]}, "subGroups is "),
        ({"preemptibility": "preemptible"}, "preemptibility is preemptible, but should not be"),
    ):
        (found,) = differences(wanted, seen(wanted, **changes))
        assert found.startswith(told)


def test_a_pod_group_differs_once_all_were_listed_and_by_its_name_whatever_its_labels():
    wanted = pod_group(SITE, start(launch()), terms_of(group(), QUEUE, "osmo-low", POOL))
    uuid = wanted["metadata"]["labels"]["osmo.group_uuid"]
    view = GangView()
    view.want(uuid, wanted)
    assert not view.differs(uuid)

    assert {uuid} == view.hear(Relisted((), "1"))
    assert view.differs(uuid)
    there = seen(wanted)
    assert {uuid} == view.hear(WatchEvent(WatchEventKind.ADDED, there, "2"))
    assert not view.differs(uuid)
    meta = msgspec.structs.replace(there.metadata, labels={"osmo.group_uuid": "other"})
    changed = msgspec.structs.replace(there, metadata=meta)
    assert {uuid} == view.hear(WatchEvent(WatchEventKind.MODIFIED, changed, "3"))
    assert view.differs(uuid)
    assert {uuid} == view.hear(WatchEvent(WatchEventKind.DELETED, changed, "4"))
    assert view.differs(uuid)
    view.drop(uuid)
    assert not view.differs(uuid)
