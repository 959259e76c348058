"""The numbers for Prometheus: each is there, says what it is, and follows what happens."""

from __future__ import annotations

import re

GAUGES = {
    "bough_workflows_waiting",
    "bough_oldest_wait_seconds",
    "bough_pool_quota_gpus",
    "bough_pool_guaranteed_gpus",
    "bough_pool_used_gpus",
    "bough_pool_borrowed_gpus",
    "bough_gpus_to_drain",
    "bough_capacity_gpus",
    "bough_queue_used_gpus",
    "bough_subpools",
    "bough_leads",
    "bough_cycle_seconds",
    "bough_workers",
}
COUNTERS = {
    "bough_evictions_total",
    "bough_cycles_total",
    "bough_cycle_seconds_total",
    "bough_planning_seconds_total",
    "bough_gangs_started_total",
    "bough_decisions_void_total",
    "bough_cycle_failures_total",
    "bough_scheduler_restarts_total",
    "bough_worker_restarts_total",
}
_SAMPLE = re.compile(r"([a-z_]+)(?:\{(.*)\})? (-?[0-9.]+)\Z")


def test_every_number_has_a_type_and_says_what_it_is(divided):
    divided.run(5, priority="LOW")
    divided.submit(100, priority="LOW")
    divided.settle()

    lines = divided.ask("GET", "/metrics").text.splitlines()

    kinds = dict(line.split()[2:] for line in lines if line.startswith("# TYPE "))
    helps = {line.split()[2]: line.split(" ", 3)[3] for line in lines if line.startswith("# HELP ")}
    assert dict.fromkeys(GAUGES, "gauge") | dict.fromkeys(COUNTERS, "counter") == kinds
    assert set(kinds) == set(helps)
    assert all(text.endswith(".") for text in helps.values())
    samples = [line for line in lines if not line.startswith("#")]
    assert all(_SAMPLE.match(line) for line in samples)
    assert {_SAMPLE.match(line)[1] for line in samples} <= set(kinds)


def test_depth_and_waits_are_by_pool_and_priority(divided):
    divided.run(100, priority="LOW")
    divided.submit(10, priority="LOW")
    divided.time.ms += 90_000
    divided.submit(10, "team--a", priority="LOW")
    divided.settle()

    found = _samples(divided)

    assert 1 == found['bough_workflows_waiting{pool="team",priority="LOW"}']
    assert 90 == found['bough_oldest_wait_seconds{pool="team",priority="LOW"}']
    assert 0 == found['bough_oldest_wait_seconds{pool="team--a",priority="LOW"}']


def test_quota_use_and_what_is_borrowed_are_by_pool(divided):
    divided.run(20, "team--a")
    divided.run(25, "team--a", priority="LOW")

    found = _samples(divided)

    values = {
        name: found[f'bough_pool_{name}_gpus{{pool="team--a"}}']
        for name in ("quota", "guaranteed", "used", "borrowed")
    }
    assert {"quota": 30, "guaranteed": 20, "used": 45, "borrowed": 15} == values
    assert 100 == found["bough_capacity_gpus"]
    assert 45 == found['bough_queue_used_gpus{queue="osmo-pool-ns-team--a"}']


def test_what_must_still_drain_is_counted_until_it_has(divided):
    name = divided.run(30, "team--a")
    assert 0 == _samples(divided)["bough_gpus_to_drain"]

    divided.send("DELETE", "/api/configs/pool/team/subpool/a")
    found = _samples(divided)
    assert 30 == found["bough_gpus_to_drain"]
    assert (2, 1) == (
        found['bough_subpools{state="ACTIVE"}'],
        found['bough_subpools{state="DELETING"}'],
    )

    divided.finish(name)
    found = _samples(divided)
    assert (0, 1) == (found["bough_gpus_to_drain"], found['bough_subpools{state="ARCHIVED"}'])


def test_evictions_are_counted_by_the_level_at_which_they_were_decided(divided):
    divided.run(100, priority="LOW")
    divided.run(30, "team--a")
    divided.run(10)

    found = _samples(divided)

    evictions = {
        name: value for name, value in found.items() if name.startswith("bough_evictions_total")
    }
    assert 1 == sum(evictions.values())
    (name,) = evictions
    assert 'level="pool team",rule="reclaim"' in name


def test_cycles_are_counted_and_timed(divided):
    before = _samples(divided)
    divided.run(1)
    after = _samples(divided)

    assert after["bough_cycles_total"] > before["bough_cycles_total"]
    assert after["bough_cycle_seconds_total"] > before["bough_cycle_seconds_total"]
    assert after["bough_planning_seconds_total"] >= before["bough_planning_seconds_total"]
    assert after["bough_cycle_seconds"] > 0
    assert 1 == after["bough_leads"]
    assert 1 == after["bough_gangs_started_total"] - before["bough_gangs_started_total"]
    assert 0 == after["bough_cycle_failures_total"]


def _samples(house):
    lines = house.ask("GET", "/metrics").text.splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}
