"""Tests of nodes by schedule: how they are configured, and which a backend is told of."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from bough.control.config.backend_tests import schedule_fault
from bough.control.scheduling.node_tests import TestWatch
from bough.model.backend import BackendAbilities
from bough.model.node_test import NodeTest
from tests.api.house import House

PATH = "/api/configs/backend_test"
BACKEND = "/api/configs/backend/default"
POD = {"spec": {"containers": [{"name": "task", "image": "probe"}]}}
NIGHTLY: dict[str, Any] = {
    "description": "all GPUs",
    "cron_schedule": "0 2 * * *",
    "test_timeout": "10m",
    "node_conditions": ["gpu"],
    "common_pod_template": ["probe"],
}


class Cluster:
    """What a backend is told."""

    name = "default"

    def __init__(self) -> None:
        self.told: list[tuple[NodeTest, ...]] = []
        self.troubles: tuple[str, ...] = ()

    def keep_tests(self, tests: tuple[NodeTest, ...]) -> None:
        self.told.append(tests)

    def test_troubles(self) -> tuple[str, ...]:
        return self.troubles


@pytest.fixture
def pods(house: House) -> House:
    """A site whose backend makes pods, with a template for pods that test."""
    abilities = {"default": BackendAbilities(makes_pods=True)}
    house.authenticator.site = dataclasses.replace(house.site, abilities=abilities)
    house.engine.settle()
    house.send("PUT", "/api/configs/pod_template", {"configs": {"probe": POD}})
    return house


def test_tests_are_written_changed_used_and_removed(pods: House):
    pods.send("PUT", PATH, {"configs": {"nightly": NIGHTLY}, "description": "first"})
    # An answer can be edited and sent back.
    shown = pods.get(f"{PATH}/nightly")
    pods.send("PUT", f"{PATH}/weekly", {"configs": {**NIGHTLY, "cron_schedule": "0 3 * * 0"}})
    pods.send("PUT", f"{PATH}/nightly", {"configs": shown})

    assert {"name": "nightly", **NIGHTLY} == shown == pods.get(f"{PATH}/nightly")
    changed = pods.send("PATCH", f"{PATH}/weekly", {"configs_dict": {"test_timeout": None}})
    assert ("300s", "0 3 * * 0") == (changed["test_timeout"], changed["cron_schedule"])
    pods.send("POST", BACKEND, {"configs": {"tests": ["nightly"]}})
    assert ["nightly"] == pods.get(BACKEND)["tests"]
    used = (409, "Backend test nightly is used by backend default.")
    assert used == pods.refused("DELETE", f"{PATH}/nightly")
    template = (409, "Pod template probe is used by backend test nightly.")
    assert template == pods.refused("DELETE", "/api/configs/pod_template/probe")
    pods.send("DELETE", f"{PATH}/weekly")
    assert ["nightly"] == list(pods.get(PATH))
    history = pods.get("/api/configs/history?config_types=BACKEND_TEST")["configs"]
    assert [5, 4, 3, 2, 1] == [each["revision"] for each in history]
    rollback = {"config_type": "BACKEND_TEST", "revision": 2}
    pods.send("POST", "/api/configs/history/rollback", rollback)
    assert ["nightly", "weekly"] == list(pods.get(PATH))
    entry = pods.get("/api/audit?subject=config/backend_test")["entries"][0]
    assert ["nightly"] == list(entry["before"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cron_schedule": "often"}, "cron_schedule: 'often' must have five fields: minute, hour"),
        ({"cron_schedule": "0 24 * * *"}, "cron_schedule: hour cannot be '24': it is * or from 0"),
        ({"node_conditions": []}, "node_conditions must name one at least."),
        ({"node_conditions": ["a b"]}, "node_conditions: 'a b' is not the name of a condition."),
        ({"common_pod_template": ["none"]}, "pod template 'none' not found."),
        ({"common_pod_template": ["empty"]}, "its pod templates have no containers to run."),
        ({"common_pod_template": ["odd"]}, "its pod templates have no containers to run."),
        ({"common_pod_template": ["asking"]}, "pod template asking has the variable USER_CPU,"),
        ({"test_timeout": "2d"}, "test_timeout must be from 1s to 1d, not 2d."),
        ({"name": "other"}, "its name cannot be 'other'."),
        ({"color": "red"}, "Object contains unknown field `color`"),
    ],
)
def test_what_cannot_be_run_is_refused_by_its_field(pods: House, change, message: str):
    asking = {"spec": {"containers": [{"name": "{{USER_CPU}}"}]}}
    empty, odd = {"metadata": {"labels": {"a": "b"}}}, {"spec": {"containers": 5}}
    templates = {"empty": empty, "odd": odd, "asking": asking}
    pods.send("PUT", "/api/configs/pod_template", {"configs": templates})
    body = {"configs": {"good": NIGHTLY, "bad": {**NIGHTLY, **change}}}

    status, text = pods.refused("PUT", PATH, body)

    assert 400 == status
    assert text.startswith("Backend test bad: ")
    assert message in text
    assert {} == pods.get(PATH)


@pytest.mark.parametrize(
    ("tests", "message"),
    [
        (["none"], "Backend test 'none' not found; write it first."),
        (["nightly", "nightly"], "Backend test 'nightly' is named twice."),
        ("nightly", "Backend default: tests must be a list of names, not 'nightly'."),
    ],
)
def test_a_backend_names_only_tests_that_there_are(pods: House, tests, message: str):
    pods.send("PUT", f"{PATH}/nightly", {"configs": NIGHTLY})

    assert (400, message) == pods.refused("POST", BACKEND, {"configs": {"tests": tests}})
    assert [] == pods.get(BACKEND)["tests"]


def test_a_backend_that_makes_no_pods_tests_no_nodes(house: House):
    house.engine.settle()
    house.send("PUT", "/api/configs/pod_template", {"configs": {"probe": POD}})
    house.send("PUT", f"{PATH}/nightly", {"configs": NIGHTLY})
    status, message = house.refused("POST", BACKEND, {"configs": {"tests": ["nightly"]}})

    assert 400 == status
    assert "Backend default: tests: only a backend that makes pods, and decides where" in message


def test_a_cluster_is_told_of_every_change_and_its_troubles_become_events(pods: House):
    cluster = Cluster()
    watch = TestWatch(pods.authenticator.site, cluster)
    pods.send("PUT", f"{PATH}/nightly", {"configs": NIGHTLY})
    watch.attend()
    pods.send("POST", BACKEND, {"configs": {"tests": ["nightly"]}})
    watch.attend()
    watch.attend()

    wanted = NodeTest("nightly", "0 2 * * *", 600, ("osmo.nvidia.com/gpu",), (POD,))
    assert [(), (wanted,)] == cluster.told
    # What is wrong with a template later is said; other tests would go on.
    asking = {"spec": {"containers": [{"name": "{{USER_CPU}}"}]}}
    pods.send("PUT", "/api/configs/pod_template", {"configs": {"probe": asking}})
    cluster.troubles = ("it is forbidden",)
    watch.attend()
    watch.attend()

    assert () == cluster.told[-1]
    with pods.site.store.read() as connection:
        rows = connection.exec_driver_sql(
            "SELECT message FROM events WHERE kind = 'cluster.trouble' ORDER BY number"
        )
        said = [row[0] for row in rows]
    assert 2 == len(said)
    assert "pod template probe has the variable USER_CPU" in said[0]
    assert "it is forbidden" == said[1]


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("* * * * *", True),
        ("*/5 0-12/2 1,15 1-12 0-7", True),
        ("60 * * * *", False),
        ("5-1 * * * *", False),
        ("*/0 * * * *", False),
        ("1, * * * *", False),
        ("* * 0 * *", False),
        ("* * * *", False),
        ("@daily", False),
    ],
)
def test_a_schedule_has_five_fields_within_their_bounds(text: str, right: bool):
    assert right == (schedule_fault(text) is None)
