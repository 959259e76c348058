"""Every other command understands what a real server answers."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from bough import Client
from bough.errors import Conflict, Forbidden, NotFound, Refused, Unauthenticated
from tests.api.house import OLD_KEYS
from tests.e2e.served import Served, serving


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory):
    """One server for all tests of this module, with a divided pool and a workflow that runs."""
    with serving(tmp_path_factory.mktemp("site")) as served:
        served.done("pool", "create", "team", "--quota", "60", "--description", "for all")
        served.done("pool", "subpool", "create", "team", "a", "--quota", "20")
        served.run("team--a", 5, "NORMAL")
        yield served


def client(site: Served, token: str | None = None) -> Client:
    return Client(site.address, token or site.token)


def test_pools_are_configured(site: Served):
    site.done("pool", "create", "other", "--quota", "4", "--maximum", "8", "--user-gpu-limit", "2")
    site.done("pool", "update", "other", "--quota", "5", "--description", "changed")
    site.done("pool", "rename", "other", "another")
    shown = site.json("pool", "show", "another")
    assert (5, 8, "changed", 2) == (
        shown["resources"]["gpu"]["guarantee"],
        shown["resources"]["gpu"]["maximum"],
        shown["description"],
        shown["user_gpu_limit"],
    )
    site.done("pool", "delete", "another")
    assert 2 == site.osmo("pool", "show", "another").code
    assert "for all" in site.done("pool", "list", "--mode", "used")
    assert "Total Free" in site.done("pool", "list", "--mode", "free")


def test_subpools_are_shown_with_their_history(site: Served):
    site.done("pool", "subpool", "create", "team", "h", "--quota", "1.9")
    site.done("pool", "subpool", "update", "team", "h", "--quota", "2")
    site.done("pool", "subpool", "delete", "team", "h")
    site.done("pool", "subpool", "create", "team", "h", "--quota", "3")
    history = site.json("pool", "subpool", "history", "team", "h")
    assert [1, 2, 2, 3] == [each["data"]["quota"] for each in history]
    assert "ARCHIVED, quota 2" in site.done("pool", "subpool", "history", "team", "h")
    site.done("pool", "subpool", "delete", "team", "h")
    names = [each["name"] for each in site.json("pool", "subpool", "list", "team")]
    every = [each["name"] for each in site.json("pool", "subpool", "list", "team", "-a")]
    assert (["team--a"], ["team--a", "team--h"]) == (names, every)
    assert "State       : ARCHIVED" in site.done("pool", "subpool", "show", "team", "h")


def test_cohorts_are_declared_moved_and_deleted(site: Served):
    site.done("cohort", "create", "company", "--quota", "2", "--lending-limit", "1")
    site.done("cohort", "create", "research", "--parent", "company")
    site.done("cohort", "update", "research", "--weight", "3")
    site.done("pool", "update", "team", "--cohort", "research")
    planned = site.done("cohort", "move", "company", "research", "--plan")
    assert "cohort company stops: its cohorts form a cycle" in planned
    assert "└─ research" in site.done("cohort", "list")
    assert "Weight      : 3" in site.done("cohort", "show", "research")
    assert "└─ osmo-pool-ns-team" in site.done("queue", "list")
    site.done("pool", "update", "team", "--cohort", "")
    site.done("cohort", "delete", "research")
    site.done("cohort", "delete", "company")


@pytest.mark.parametrize("system", ["kueue", "kai"])
def test_the_tree_is_printed_as_objects_that_other_commands_read(
    site: Served, tmp_path: Path, system: str
):
    text, listed = tmp_path / "tree.yaml", tmp_path / "tree.json"
    text.write_text(site.done("kube", "export", system))
    listed.write_text(site.done("kube", "export", system, "-t", "json"))

    found = json.loads(listed.read_text())
    comments = [each for each in text.read_text().splitlines() if each.startswith("#")]
    assert [f"# warning: {each}" for each in found["warnings"]] == comments
    command = ("quota", "show") if system == "kueue" else ("plan",)
    told = site.done(*command, str(text))
    assert told == site.done(*command, str(listed))
    if system == "kueue":
        assert comments
        assert "osmo-pool-ns-team---shared" in told


def test_workflows_are_looked_at(site: Served):
    name = site.json("workflow", "list", "--status", "running")["workflows"][0]["name"]
    assert name in site.done("workflow", "list", "--all-users", "--pool", "team--a")
    assert "RUNNING" in site.done("workflow", "query", name, "-v")
    assert "RUNNING" in site.done("workflow", "why", name)
    assert (
        f"Workflow {name} has logs:\nNothing is kept of what main wrote on backend default.\n"
    ) == site.done("workflow", "logs", name)
    assert f"[{name}] Submitted: {name}" in site.done("workflow", "events", name, "--no-follow")
    assert site.done("workflow", "spec", name).startswith("workflow:")
    site.done("workflow", "tag", "-w", name, "-a", "tagged")
    assert 1 == len(site.json("workflow", "list", "--tags", "tagged")["workflows"])
    assert [name] == [each["workflow_id"] for each in site.json("task", "list")["tasks"]]
    assert "team--a" in site.done("task", "list", "-v")
    assert "team--a" in site.done("task", "list", "--summary", "-a")
    assert name in site.done("task", "list", "-W", "-a")


def test_workflows_are_submitted_checked_and_ended(site: Served):
    spec = site.spec(1)
    text = site.done("workflow", "validate", spec, "--pool", "team")
    assert "Workflow validation succeeded.\n" == text
    assert "gpu: 1" in site.done("workflow", "submit", spec, "--pool", "team", "--dry-run")
    told = site.done("workflow", "submit", spec, "--pool", "team", "--priority", "low")
    assert told.endswith("\nWARNING: LOW priority can be preempted during the run.\n")
    name = told.split("Workflow ID        - ")[1].splitlines()[0]
    again = site.json("workflow", "submit", name, "--pool", "team")["name"]
    site.done("workflow", "cancel", name, again, "--message", "enough")
    for each in (name, again):
        site.until(lambda each=each: "FAILED_CANCELED" == site.status(each))
    assert 2 == site.osmo("workflow", "cancel", name).code
    restarted = site.json("workflow", "restart", name)["name"]
    site.done("workflow", "cancel", restarted)


def test_a_workflow_that_waits_is_explained(site: Served):
    name = site.submit("team", 40, "HIGH")
    other = site.submit("team", 40, "HIGH")
    site.until(lambda: bool(site.json("workflow", "why", other)["groups"]))
    text = site.done("workflow", "why", other, "--remedies")
    assert f"{other}/main-group waits" in text
    assert f"1. wait until {name}/main-group ends\n" in text
    assert "osmo-pool" not in text
    assert "osmo-pool-ns-team--_shared" in site.done("workflow", "why", other, "--queues")
    site.done("workflow", "cancel", name, other)


def test_nodes_are_listed(site: Served):
    assert "large" in site.done("resource", "list", "--pool", "team--a")
    assert "team/default" in site.done("resource", "info", "large")


def test_nodes_are_cordoned_drained_and_let_in_again(site: Served):
    (node,) = site.json("node", "list")["nodes"]
    assert ("large", "READY", 1) == (node["name"], node["status"], node["tasks"])
    assert "Node large is cordoned.\n" == site.done("node", "cordon", "large")
    left = "Node large takes nothing new; 1 task left to run to the end.\n"
    assert left == site.done("node", "drain", "large", "--leave")
    assert "CORDONED" in site.done("node", "list")
    assert "Node large takes work.\n" == site.done("node", "uncordon", "large")
    ended = site.osmo("node", "cordon", "none")
    assert (2, True) == (ended.code, "Node none not found." in ended.errors)


def test_what_was_used_is_added_up(site: Served):
    report = site.json("usage", "--since", "1h")
    assert "pool" == report["by"]
    assert "team--a" in [each["name"] for each in report["rows"]]
    header, *lines = site.done("usage", "--by", "user", "-t", "csv").splitlines()
    assert "user,gpu_hours,guaranteed,preemptible,borrowed" == header
    assert ["admin"] == [line.partition(",")[0] for line in lines]
    assert "Guaranteed" in site.done("usage")


def test_people_have_roles_tokens_and_settings(site: Served):
    site.done("user", "create", "ann", "--roles", "osmo-team-user", "--roles", "osmo-team-admin")
    site.done("user", "update", "ann", "--remove-roles", "osmo-team-admin")
    assert "osmo-team-user" in site.done("user", "get", "ann")
    assert "ann" in site.done("user", "list", "--roles", "osmo-team-user")
    secret = site.done("token", "set", "laptop", "--user", "ann", "-e", "2999-01-31").strip()
    assert "2999-01-31   Active" in site.done("token", "list", "--user", "ann")
    ann = site.as_user(secret)
    ann.done("profile", "set", "pool", "team")
    assert "  default: team\n" in ann.done("profile", "list")
    ann.done("credential", "set", "hub", "--type", "REGISTRY", "--payload", "auth=x")
    assert "hub" in ann.done("credential", "list")
    ann.done("credential", "delete", "hub")
    ended = ann.osmo("pool", "subpool", "create", "team", "mine", "--quota", "1")
    assert (2, True) == (ended.code, "Error code: 403" in ended.errors)
    submitted = ann.json("workflow", "submit", ann.spec(1))["name"]
    ann.done("workflow", "cancel", submitted)
    site.done("token", "delete", "laptop", "--user", "ann")
    assert 2 == ann.osmo("profile", "list").code
    site.done("user", "delete", "ann", "--force")


def test_one_logs_in_with_a_token_and_out(site: Served, tmp_path: Path):
    (tmp_path / "token").write_text(site.token)
    guest = site.as_guest(tmp_path)
    assert 10 == guest.osmo("pool", "list").code
    text = guest.done("login", site.address, "--token-file", str(tmp_path / "token"))
    assert f"Logged in to {site.address} as admin.\n" == text
    assert "team--a" in guest.done("pool", "list")
    guest.done("logout")
    assert 10 == guest.osmo("pool", "list").code
    assert "Server version" in site.done("version")


def test_configuration_is_changed_and_looked_back_at(site: Served):
    site.done("config", "set", "WORKFLOW", "subpool_drain_check_interval=1m", "-d", "faster")
    assert "1m" in site.done("config", "show", "WORKFLOW", "subpool_drain_check_interval")
    assert "faster" in site.done("config", "history", "WORKFLOW")
    assert "POOL" in site.done("config", "list")
    assert "team" in site.done("config", "diff", "POOL:1", "2")
    assert '"team"' in site.done("config", "show", "POOL:2")
    site.done("config", "rollback", "POOL:2")
    assert "config:Update" in site.done("audit", "list", "--subject", "config/workflow")


def test_the_client_raises_what_the_server_means(site: Served):
    asked = client(site)
    with pytest.raises(NotFound):
        asked.subpools.get("team", "nothing")
    with pytest.raises(Conflict):
        asked.subpools.create("team", "a", 1)
    with pytest.raises(Refused) as refused:
        asked.workflows.submit("team--a", Path(site.spec(50)).read_text())
    assert refused.value.workflow_id
    with pytest.raises(Unauthenticated):
        client(site, "bough-wrong").pools.quotas()
    with pytest.raises((Forbidden, Unauthenticated)):
        Client(site.address).queues.list()
    assert "bough_" in asked.metrics()
    assert asked.health()


def test_the_client_hears_what_happens(site: Served):
    asked = client(site)
    heard: list[str] = []
    begun, done = threading.Event(), threading.Event()

    def listen() -> None:
        for event in asked.events(after=0):
            begun.set()
            heard.append(event.kind)
            if event.kind == "subpool.changed" and event.subject == "team--e":
                done.set()
                return

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    assert begun.wait(30)
    asked.subpools.create("team", "e", 1)
    assert done.wait(30), heard
    asked.subpools.delete("team", "e")


# Scenarios of the command line


def test_scenario_007_no_command_shows_the_shared_queue_but_the_list_of_queues(site: Served):
    name = site.submit("team", 30, "HIGH")
    waiting = site.submit("team", 30, "HIGH")
    site.until(lambda: bool(site.json("workflow", "why", waiting)["groups"]))
    for arguments in (
        ("pool", "list"),
        ("pool", "list", "--mode", "used"),
        ("pool", "list", "-t", "json"),
        ("pool", "show", "team"),
        ("pool", "subpool", "list", "team"),
        ("resource", "list", "--pool", "team"),
        ("profile", "list"),
        ("workflow", "list", "--pool", "team"),
        ("workflow", "query", name, "-v"),
        ("workflow", "why", waiting),
        ("task", "list", "-v"),
        ("node", "list"),
    ):
        assert "_shared" not in site.done(*arguments), arguments
    assert "_shared" in site.done("queue", "list")
    site.done("workflow", "cancel", name, waiting)


def test_scenario_076_commands_for_pools_point_to_those_for_subpools(site: Served, tmp_path: Path):
    changes = tmp_path / "changes.yaml"
    changes.write_text("description: x\n")
    before = site.json("pool", "subpool", "show", "team", "a")
    for arguments in (
        ("config", "update", "POOL", "team--a", "--file", str(changes)),
        ("config", "set", "POOL", "description=x", "--name", "team--a"),
        ("pool", "update", "team--a", "--quota", "1"),
        ("pool", "rename", "team--a", "x"),
        ("pool", "delete", "team--a"),
    ):
        refused = site.osmo(*arguments)
        assert (2, "") == (refused.code, refused.output), arguments
        assert "/api/configs/pool/team/subpool/a" in refused.errors, arguments
    assert before == site.json("pool", "subpool", "show", "team", "a")


def test_scenario_118_a_list_of_pools_for_programs_has_every_old_key_and_the_new(site: Served):
    answer = site.json("pool", "list")
    rows = {row["name"]: row for each in answer["node_sets"] for row in each["pools"]}
    assert {
        "quota_used",
        "quota_free",
        "quota_limit",
        "total_usage",
        "total_capacity",
        "total_free",
    } == set(answer["resource_sum"])
    assert set(rows["team"]) == set(rows["team--a"])
    assert set(rows["team"]) >= OLD_KEYS
    assert all(isinstance(each, str) for each in rows["team"]["resource_usage"].values())
    assert ("60", "40", None) == (
        rows["team"]["quota_total"],
        rows["team"]["resource_usage"]["quota_limit"],
        rows["team"]["parent_pool"],
    )
    assert ("team", "a", "ACTIVE") == tuple(
        rows["team--a"][key] for key in ("parent_pool", "subpool_name", "subpool_state")
    )


def test_scenario_120_older_options_of_pool_list_are_still_understood(site: Served):
    assert "Total Free" in site.done("pool", "list", "--mode", "free")
    assert site.done("pool", "list") == site.done("pool", "list", "--quota")


def test_scenario_142_changes_say_so_and_refusals_end_with_2(site: Served):
    create = ("pool", "subpool", "create", "team", "s", "--quota")
    assert "Subpool team--s is created: ACTIVE, quota 2 GPUs.\n" == site.done(*create, "2")
    refused = site.osmo(*create, "2")
    assert (2, "") == (refused.code, refused.output)
    assert refused.errors.startswith("Error message: Subpool team--s ")
    assert refused.errors.endswith("Error code: 409\n")
    changed = site.json("pool", "subpool", "update", "team", "s", "--quota", "3")
    assert ("team--s", 3) == (changed["name"], changed["quota"])
    assert 0 == site.osmo("pool", "subpool", "delete", "team", "s").code


def test_scenario_173_low_comes_with_a_warning(site: Served):
    warning = "WARNING: LOW priority can be preempted during the run."
    for priority, expected in (("LOW", True), ("NORMAL", False)):
        told = site.done(
            "workflow", "submit", site.spec(1), "--pool", "team", "--priority", priority
        )
        assert expected == (warning in told)
        site.done("workflow", "cancel", told.split("Workflow ID        - ")[1].splitlines()[0])
