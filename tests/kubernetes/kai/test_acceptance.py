"""AC1 to AC8 of the dynamic subpools design where KAI decides; queues are read from the cluster."""

from __future__ import annotations

from tests.kubernetes.kai.story import Story


def queue_of(story: Story, name: str) -> tuple[str, str]:
    """The queue of a workflow's pod, and of its PodGroup."""
    (pod,) = story.pods(name)
    labels = pod["metadata"]["labels"]
    assert "kai-scheduler" == pod["spec"]["schedulerName"]
    assert labels["runai/queue"] == labels["kai.scheduler/queue"]
    named = labels["kai.scheduler/queue"].removeprefix(story.prefix)
    return named, story.kai.group_of(pod)["spec"]["queue"].removeprefix(story.prefix)


def listed(story: Story, pool: str) -> tuple[int, int, int]:
    """The quota of a pool, what is used and what is available, as `pool list` has it."""
    rows = story.server.client.pools.quotas([pool]).node_sets
    (row,) = [each for node_set in rows for each in node_set.pools if each.name == pool]
    usage = row.resource_usage
    return int(usage.quota_limit), int(usage.quota_used), int(usage.quota_free)


def test_scenario_016_a_pool_without_subpools_goes_on_as_it_was(story: Story):
    story.server.pool("team", 100)
    name = story.run("team", 50, "HIGH")

    assert ("team---shared", "team---shared") == queue_of(story, name)
    story.expect(team=100, team__shared=100)
    assert (100, 50, 50) == listed(story, "team")


def test_scenarios_001_and_002_the_shared_queue_has_what_subpools_leave(story: Story):
    story.server.pool("team", 100)
    story.expect(team=100, team__shared=100)
    story.server.done("pool", "subpool", "create", "team", "a", "--quota", "30")
    story.expect(team=100, team__shared=70, team__a=30)


def test_scenarios_003_023_and_025_guarantees_of_subpools_are_protected(story: Story):
    server = story.server
    server.pool("team", 100)
    for sub, quota in (("a", 30), ("b", 40), ("c", 20)):
        server.done("pool", "subpool", "create", "team", sub, "--quota", str(quota))
    story.expect(team=100, team__shared=10, team__a=30, team__b=40, team__c=20)

    ended = server.osmo(
        "workflow", "submit", "--pool", "team", "--priority", "HIGH", server.spec(15)
    )
    assert (1, "") == (ended.code, ended.output)
    assert "Pool team has 10 GPUs guaranteed for NORMAL/HIGH priority workflows" in ended.errors

    low = story.run("team", 15, "LOW")
    assert ("team---shared", "team---shared") == queue_of(story, low)
    (pod,) = story.pods(low)
    assert "osmo-low" == story.kai.group_of(pod)["spec"]["priorityClassName"]
    # What it uses beyond the quota is KAI's to take, and no reason to hold the child back.
    high = story.run("team--a", 30, "HIGH")
    assert ("team--a", "team--a") == queue_of(story, high)
    assert ["RUNNING", "RUNNING"] == server.statuses(low, high)


def test_scenario_015_what_is_submitted_to_a_subpool_goes_to_its_queue(story: Story):
    story.server.pool("team", 100)
    story.server.done("pool", "subpool", "create", "team", "a", "--quota", "30")
    name = story.run("team--a", 8, "NORMAL")

    assert ("team--a", "team--a") == queue_of(story, name)


def test_scenarios_004_and_005_quota_goes_back_to_the_shared_queue_and_follows_updates(
    story: Story,
):
    server = story.server
    server.pool("team", 100)
    server.done("pool", "subpool", "create", "team", "a", "--quota", "30")
    server.done("pool", "subpool", "create", "team", "b", "--quota", "40")
    story.expect(team=100, team__shared=30, team__a=30, team__b=40)
    server.done("pool", "subpool", "update", "team", "b", "--quota", "50")
    story.expect(team=100, team__shared=20, team__a=30, team__b=50)
    server.done("pool", "subpool", "update", "team", "b", "--quota", "40")
    server.done("pool", "subpool", "delete", "team", "a")
    story.expect(team=100, team__shared=60, team__b=40)
    assert "ARCHIVED" == server.json("pool", "subpool", "show", "team", "a")["subpool_state"]


def test_scenarios_027_and_028_what_is_not_preemptible_waits_for_quota_and_low_does_not(
    story: Story,
):
    story.server.pool("team", 10)
    story.run("team", 8, "HIGH")
    waits = story.server.submit("team", 5, "HIGH")
    low = story.run("team", 5, "LOW")

    assert ["PENDING", "RUNNING"] == story.server.statuses(waits, low)
    assert not [
        pod for pod in story.server.pods() if waits == pod["metadata"]["labels"]["osmo.workflow_id"]
    ]


def test_scenarios_008_and_009_a_subpool_that_is_being_deleted_has_no_quota_and_keeps_its_queue(
    story: Story,
):
    server = story.server
    server.pool("team", 10)
    server.done("pool", "subpool", "create", "team", "a", "--quota", "4")
    name = story.run("team--a", 4, "HIGH")
    server.done("pool", "subpool", "delete", "team", "a")
    story.expect(team=10, team__shared=10, team__a=0)
    assert "RUNNING" == server.status(name)
    server.finish(name)
    story.expect(team=10, team__shared=10)
