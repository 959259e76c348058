"""Where pod templates let tasks run: what they select, and which taints they tolerate."""

from __future__ import annotations

import pytest

from bough.control.pools.pod_placement import placements, within
from bough.control.pools.pool_setup import PoolSetup
from bough.model.cluster import Taint, TaintEffect, Toleration
from bough.model.pod_placement import ANYWHERE, PodPlacement
from bough.model.pool import OfferedNode, Platform, Pool

GPU_ONLY = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
TAINT = Taint("gpu", "yes")


def pool(*common: str, **platforms: tuple[str, ...]) -> Pool:
    return Pool(
        "team",
        common_pod_template=common,
        platforms={
            name: Platform(override_pod_template=names) for name, names in platforms.items()
        },
    )


def template(**spec: object) -> dict[str, object]:
    return {"spec": spec}


def test_platforms_have_what_their_pool_has_and_their_own_on_top():
    templates = {
        "base": template(nodeSelector={"arch": "amd64", "disk": "any"}, tolerations=[GPU_ONLY]),
        "fast": template(nodeSelector={"disk": "ssd"}, tolerations=[{"key": "fast"}, GPU_ONLY]),
    }
    found = placements([pool("base", h100=("fast",))], templates)["team"]

    gpu = Toleration("gpu", "Exists", "", TaintEffect.NO_SCHEDULE)
    assert PodPlacement({"arch": "amd64", "disk": "any"}, (gpu,)) == found[""]
    fast = PodPlacement({"arch": "amd64", "disk": "ssd"}, (gpu, Toleration("fast")))
    assert fast == found["h100"]


def test_pools_whose_templates_say_nothing_about_it_are_left_alone():
    assert {} == placements([pool("a")], {"a": template(volumes=[{"name": "x"}])})
    assert {} == placements([pool()], {"a": template(tolerations=[GPU_ONLY])})


@pytest.mark.parametrize(
    "said",
    [
        {"tolerations": [{"key": "{{WF_POOL}}"}], "nodeSelector": {"a": "{{WF_POOL}}"}},
        {"tolerations": [{"key": "a", "effect": "Nothing"}, 3], "nodeSelector": "a"},
        {"tolerations": "all"},
    ],
)
def test_what_cannot_be_known_or_read_counts_for_nothing(said):
    assert {} == placements([pool("a")], {"a": template(**said)})


@pytest.mark.parametrize(
    ("tolerations", "closed"),
    [
        ([], "It has the taint gpu:NoSchedule."),
        ([{"key": "gpu", "value": "no"}], "It has the taint gpu:NoSchedule."),
        ([{"key": "gpu", "value": "yes"}], ""),
        ([{"operator": "Exists"}], ""),
        ([{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}], "It has the taint gpu"),
    ],
)
def test_a_tainted_node_is_open_if_some_task_tolerates_its_taints(tolerations, closed):
    node = OfferedNode("n", taints=(TAINT,))
    found = placements([pool(a=("t",))], {"t": template(tolerations=tolerations)})
    setup = PoolSetup(pools=(pool(a=("t",)),), nodes=(node,), placements=found)

    assert setup.closed(node).startswith(closed)
    assert setup.takes_work(node) == (not closed)


def test_a_taint_that_is_a_wish_closes_nothing_and_what_is_closed_stays_so():
    setup = PoolSetup(pools=(pool(),))
    wish = Taint("gpu", effect=TaintEffect.PREFER_NO_SCHEDULE)

    assert setup.takes_work(OfferedNode("n", taints=(wish,)))
    assert "It is not ready." == setup.closed(OfferedNode("n", closed="It is not ready."))
    assert ANYWHERE == PodPlacement()


def test_all_taints_of_a_node_must_be_tolerated_by_the_same_tasks():
    node = OfferedNode("n", taints=(TAINT, Taint("other")))
    of = pool(a=("one",), b=("two",))
    templates = {
        "one": template(tolerations=[GPU_ONLY]),
        "two": template(tolerations=[{"key": "other"}]),
    }
    setup = PoolSetup(pools=(of,), nodes=(node,), placements=placements([of], templates))

    assert not setup.takes_work(node)


def test_tasks_stay_on_nodes_of_their_pool_whatever_templates_select():
    own = {"bough/pool-team": "yes"}
    asked = {"": PodPlacement({"arch": "amd64", "bough/pool-team": "no"}, (Toleration("gpu"),))}

    assert {"": PodPlacement(own)} == within(own, {})
    assert {"": PodPlacement({"arch": "amd64", **own}, (Toleration("gpu"),))} == within(own, asked)
