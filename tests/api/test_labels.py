"""Labels of workflows over HTTP: the policy for them, and lists that ask for them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.house import House, spec

SETTINGS = "/api/configs/workflow"
SUBMIT = "/api/pool/team/workflow"
VALUES = ["robotics", "sim"]
MISSING = (
    "The workflow is missing required label 'team': add it to its labels, or --label team=VALUE"
)


def rule(enforcement: str, key: str = "team", **fields: Any) -> dict[str, Any]:
    return {"key": key, "allow_list": VALUES, "enforcement": enforcement, **fields}


def change(team: House, **labels_config: Any) -> dict[str, Any]:
    body = {"configs_dict": {"labels_config": labels_config}}
    return team.send("PATCH", SETTINGS, body)["labels_config"]


def submit(team: House, *labels: str, query: str = "") -> dict[str, Any]:
    more = "&".join((*(f"label={each}" for each in labels), query))
    return team.send("POST", f"{SUBMIT}?{more}", {"file": spec()})


def refusal(team: House, *labels: str, query: str = "") -> str:
    more = "&".join((*(f"label={each}" for each in labels), query))
    status, message = team.refused("POST", f"{SUBMIT}?{more}", {"file": spec()})
    assert 400 == status
    return message


def listed(team: House, query: str) -> list[str]:
    return [each["name"] for each in team.get(f"/api/workflow?{query}&order=ASC")["workflows"]]


def test_there_is_no_policy_until_one_is_written(team: House):
    assert {"policy": [], "pod_label_prefix": ""} == team.get(SETTINGS)["labels_config"]
    assert [] == submit(team)["warnings"]


def test_a_policy_is_kept_as_written_and_changed_part_by_part(team: House):
    change(team, policy=[rule("warn")])
    found = change(team, pod_label_prefix="example.com/")

    expected = [rule("warn", assert_message="")]
    assert {"policy": expected, "pod_label_prefix": "example.com/"} == found
    assert found == team.get(SETTINGS)["labels_config"]


def test_the_history_and_the_audit_have_it_and_a_rollback_restores_it(team: House):
    change(team, policy=[rule("warn")])
    change(team, policy=[])
    back = {"config_type": "WORKFLOW", "revision": 1}
    team.send("POST", "/api/configs/history/rollback", back)

    assert [rule("warn", assert_message="")] == team.get(SETTINGS)["labels_config"]["policy"]
    revisions = team.get("/api/configs/history?config_types=WORKFLOW&order=ASC")["configs"]
    policies = [len(each["data"]["labels_config"]["policy"]) for each in revisions]
    assert [1, 0, 1] == policies
    entries = team.get("/api/audit?subject=config/workflow")["entries"]
    assert 3 == len([each for each in entries if "labels_config" in each["after"]])


@pytest.mark.parametrize("query", ["", "validation_only=true"])
def test_an_enforced_label_is_needed_and_nothing_is_kept_without_it(team: House, query: str):
    change(team, policy=[rule("enforce", assert_message="Ask the desk.")])

    assert f"{MISSING}. Allowed are robotics, sim. Ask the desk." == refusal(team, query=query)
    expected = "The label 'team' is 'x', which is not allowed: allowed are robotics, sim."
    assert f"{expected} Ask the desk." == refusal(team, "team=x", query=query)
    assert [] == listed(team, "all_users=true&all_pools=true")
    assert [] == submit(team, "team=sim", query=query)["warnings"]


def test_any_value_is_allowed_where_none_is_listed(team: House):
    change(team, policy=[rule("enforce", allow_list=[])])

    assert f"{MISSING}." == refusal(team)
    assert [] == submit(team, "team=x")["warnings"]


def test_many_values_are_not_all_told(team: House):
    values = [f"v{number}" for number in range(12)]
    change(team, policy=[rule("enforce", allow_list=values)])

    assert refusal(team, "team=x").endswith("v8, v9 and 2 more.")


def test_a_warning_is_told_and_follows_the_policy(team: House):
    change(team, policy=[rule("warn"), rule("off", "owner")])
    accepted = submit(team, "team=x")

    told = ["The label 'team' is 'x', which is not allowed: allowed are robotics, sim."]
    assert told == accepted["warnings"]
    path = f"/api/workflow/{accepted['name']}"
    assert told == team.get(path)["warnings"]
    (missing,) = submit(team, query="validation_only=true")["warnings"]
    assert "missing label 'team'" in missing
    change(team, policy=[])
    assert [] == team.get(path)["warnings"]


def test_what_was_accepted_before_goes_on_but_is_not_submitted_again(team: House):
    name = team.run(1)
    change(team, policy=[rule("enforce")])
    team.settle()

    assert "RUNNING" == team.status(name)
    status, message = team.refused("POST", f"{SUBMIT}?workflow_id={name}")
    assert (400, True) == (status, message.startswith(MISSING))
    again = team.send("POST", f"{SUBMIT}?workflow_id={name}&label=team=sim")["name"]
    assert {"team": "sim"} == team.get(f"/api/workflow/{again}")["labels"]


def test_a_key_that_pods_cannot_have_with_the_prefix_is_refused(team: House):
    change(team, pod_label_prefix="example.com/")

    message = refusal(team, "a.example.com/role=lead")
    assert "'example.com/a.example.com/role' is not a valid Kubernetes label key" in message
    name = submit(team, "role=lead")["name"]
    assert {"role": "lead"} == team.get(f"/api/workflow/{name}")["labels"]
    assert [name] == listed(team, "label=role=lead&all_pools=true")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"policy": [rule("maybe")]}, "enforcement"),
        ({"policy": [rule("off", allow_list="x")]}, "allow_list"),
        ({"policy": [{"enforcement": "off"}]}, "key"),
        ({"policy": [rule("off", allowed=[])]}, "allowed"),
        ({"policies": []}, "policies"),
        ({"policy": None}, "policy"),
        ({"policy": [rule("off", "a/b/c")]}, "labels_config.policy[0].key: 'a/b/c' is not a valid"),
        ({"policy": [rule("off"), rule("warn")]}, "policy[1].key: 'team' is there twice"),
        ({"policy": [rule("off", allow_list=["ok", ""])]}, "policy[0].allow_list[1]: '' is not"),
        ({"policy": [rule("off", allow_list=["v"] * 1_001)]}, "has 1,001 values; at most 1,000"),
        ({"policy": [rule("off", f"k{n}") for n in range(17)]}, "has 17 keys; at most 16"),
        ({"policy": [rule("off", assert_message="a\nb")]}, "assert_message: must be one line"),
        ({"policy": [rule("off", assert_message="a" * 257)]}, "more than 256 characters"),
        ({"pod_label_prefix": "a b/"}, "pod_label_prefix: with it, 'a b/key' is not a valid"),
        ({"pod_label_prefix": "a" * 254}, "pod_label_prefix: has more than 253 characters"),
        (None, "labels_config"),
        ([], "labels_config"),
    ],
)
def test_a_policy_with_a_fault_is_refused_and_changes_nothing(
    team: House, wrong: Any, message: str
):
    before = change(team, policy=[rule("warn")])

    body = {"configs_dict": {"labels_config": wrong}}
    status, told = team.refused("PATCH", SETTINGS, body)

    assert (400, True) == (status, message in told), told
    assert before == team.get(SETTINGS)["labels_config"]


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("bad/key/nested=x", "'bad/key/nested' is not a valid Kubernetes label key"),
        ("team=", "the label 'team' cannot be so: '' is not a valid non-empty Kubernetes label"),
        ("team=a b", "'a b' is not a valid non-empty Kubernetes label value"),
    ],
)
def test_a_label_that_is_none_is_refused(team: House, label: str, message: str):
    assert message in refusal(team, label)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{nested: x}", "workflow.labels.team: labels must be strings, not mappings"),
        ("[x]", "workflow.labels.team: expected text or a number"),
        ("", "workflow.labels.team: the label 'team' cannot be so: '' is not a valid"),
    ],
)
def test_a_file_with_a_label_that_is_none_is_refused_once(team: House, value: str, message: str):
    text = spec().replace("  name: job\n", f"  name: job\n  labels:\n    team: {value}\n")
    status, told = team.refused("POST", SUBMIT, {"file": text})

    assert (400, True) == (status, message in told), told
    assert "more)" not in told


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("label=run=alpha-1", "a"),
        ("label=run=alpha-*", "ab"),
        ("label=run=*-1", "ac"),
        ("label=run=*p*a-*2", "b"),
        ("label=run=(alpha|beta)-1", "ac"),
        ("label=run=(al*|beta-1)", "abc"),
        ("label=run=alpha", ""),
        ("label=run=alpha-1*1", ""),
        ("label=run", "abc"),
        ("label=run=*", "abc"),
        ("label=run=*-1&label=team=sim", "c"),
        ("no_label=run", "d"),
        ("no_label=run=alpha-1", "bcd"),
    ],
)
def test_a_list_is_asked_for_by_patterns_of_labels(team: House, query: str, expected: str):
    names = {
        submit(team, "run=alpha-1")["name"]: "a",
        submit(team, "run=alpha-2")["name"]: "b",
        submit(team, "run=beta-1", "team=sim")["name"]: "c",
        submit(team)["name"]: "d",
    }

    found = listed(team, f"all_pools=true&{query}")
    assert expected == "".join(names[each] for each in found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a/b/c=x", "'a/b/c' is not a valid Kubernetes label key"),
        ("run=", "'' is not a valid non-empty"),
        ("run=a b", "'a b' is not a valid non-empty"),
        ("run=(a|b", "is not as key=value"),
        ("run=a|b", "is not as key=value"),
        ("run=(a)", "is not as key=value"),
        ("run=()", "is not as key=value"),
        ("run=(a|(b|c))", "is not as key=value"),
        ("run=(a|)", "is not as key=value"),
        ("run=" + "(a|b)" * 6, "more than 32 patterns"),
        ("run=" + "a" * 5_000, "more than 4,096 characters"),
    ],
)
def test_a_pattern_that_is_none_is_refused(team: House, text: str, message: str):
    status, told = team.refused("GET", f"/api/workflow?all_pools=true&label={text}")
    assert (400, True) == (status, message in told), told
