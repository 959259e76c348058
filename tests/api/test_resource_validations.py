"""Rules of pools and platforms for what tasks ask for."""

from __future__ import annotations

import pytest

from tests.api.house import spec

PATH = "/api/configs/resource_validation"
SUBMIT = "/api/pool/team/workflow"


def rule(left: str, operator: str, right: str, message: str = "") -> dict[str, str]:
    return {
        "operator": operator,
        "left_operand": left,
        "right_operand": right,
        "assert_message": message,
    }


def use(team, *rules: dict[str, str]) -> None:
    team.send("PUT", f"{PATH}/rules", {"configs": list(rules)})
    changes = {"configs_dict": {"common_resource_validations": ["rules"]}}
    team.send("PATCH", "/api/configs/pool/team", changes)


def refusal(team, text: str) -> str:
    status, message = team.refused("POST", SUBMIT, {"file": text})
    assert 400 == status
    return message


@pytest.mark.parametrize(
    ("left", "operator", "right"),
    [
        ("{{USER_GPU}}", "LE", "2"),
        ("{{USER_CPU}}", "GT", "1"),
        ("{{USER_MEMORY}}", "LT", "1Gi"),
        ("{{USER_MEMORY}}", "GE", "1025Mi"),
        ("{{USER_MEMORY_Mi}}", "EQ", "1000"),
        ("{{USER_STORAGE}}", "EQ", "word"),
        ("{{USER_GPU}}", "LE", "{{K8_CPU}}0"),
        ("{{K8_GPU}}", "LT", "{{USER_GPU}}"),
    ],
)
def test_a_task_that_breaks_a_rule_is_refused(team, left, operator, right):
    use(team, rule(left, operator, right, "Ask for less than {{USER_GPU}} GPUs."))

    if left == "{{USER_GPU}}" and "K8" in right:
        assert "job-1" == team.submit(4)
        return
    expected = "Resource validation failed for task task-0-0: Ask for less than 4 GPUs."
    assert expected == refusal(team, spec(4))
    assert "FAILED_SUBMISSION" == team.status("job-1")


@pytest.mark.parametrize(
    ("left", "operator", "right"),
    [
        ("{{USER_GPU}}", "LE", "4"),
        ("{{USER_CPU}}", "GE", "1"),
        ("{{USER_MEMORY}}", "EQ", "1024Mi"),
        ("{{USER_MEMORY_VAL}}{{USER_MEMORY_UNIT}}", "EQ", "1Gi"),
        ("{{USER_GPU}}", "LE", "{{K8_GPU}}"),
        ("{{USER_NOTHING}}", "GT", "10"),
    ],
)
def test_a_task_that_keeps_to_the_rules_is_accepted(team, left, operator, right):
    use(team, rule(left, operator, right))

    assert "job-1" == team.submit(4)


def test_rules_about_nodes_hold_together_on_one_node(team):
    use(team, rule("{{USER_GPU}}", "LE", "{{K8_GPU}}"), rule("{{K8_CPU}}", "LT", "1"))

    assert refusal(team, spec(4)).startswith("Resource validation failed for task task-0-0: ")


def test_a_rule_without_a_message_is_told_by_itself(team):
    use(team, rule("{{USER_GPU}}", "LE", "2"))

    assert (
        "Resource validation failed for task task-0-0: {{USER_GPU}} is 4, and must be LE 2."
    ) == refusal(team, spec(4))


def test_a_platform_has_rules_of_its_own_and_defaults_count(team):
    team.send("PUT", f"{PATH}/large", {"configs": [rule("{{USER_GPU}}", "GE", "{{LEAST}}")]})
    platforms = {
        "a100": {"resource_validations": ["large"], "default_variables": {"LEAST": 8}},
        "plain": {},
    }
    changes = {"configs_dict": {"platforms": platforms, "default_platform": "plain"}}
    team.send("PATCH", "/api/configs/pool/team", changes)
    text = spec(4).replace("{gpu: 4,", "{gpu: 4, platform: a100,")

    assert "{{USER_GPU}} is 4, and must be GE 8." in refusal(team, text)
    assert "job-2" == team.submit(4)


def test_what_waits_is_moved_only_to_a_pool_whose_rules_it_keeps(team):
    team.send("PUT", f"{PATH}/small", {"configs": [rule("{{USER_GPU}}", "LE", "2")]})
    team.pool("other", 0, common_resource_validations=["small"])
    team.run(100)
    waiting = team.submit(4)

    status, message = team.refused("PATCH", f"/api/workflow/{waiting}", {"pool": "other"})

    assert (400, True) == (status, "must be LE 2" in message)


def test_rules_are_kept_by_name_and_removed_unless_a_pool_uses_them(team):
    first = [rule("{{USER_GPU}}", "LE", "2", "m")]
    assert {"rules": first} == team.send("PUT", PATH, {"configs_dict": {"rules": first}})
    assert first == team.get(f"{PATH}/rules")
    use(team, *first)

    assert (409, "Resource validation rules is used by pool team.") == team.refused(
        "DELETE", f"{PATH}/rules"
    )
    team.send(
        "PATCH", "/api/configs/pool/team", {"configs_dict": {"common_resource_validations": []}}
    )
    team.send("DELETE", f"{PATH}/rules", {"description": "not needed"})
    assert {} == team.get(PATH)
    assert (404, "Resource validation rules not found.") == team.refused("GET", f"{PATH}/rules")


def test_rules_can_be_rolled_back(team):
    team.send("PUT", f"{PATH}/one", {"configs": [rule("1", "EQ", "1")]})
    team.send("PUT", f"{PATH}/two", {"configs": []})

    body = {"config_type": "RESOURCE_VALIDATION", "revision": 1}
    team.send("POST", "/api/configs/history/rollback", body)

    assert ["one"] == list(team.get(PATH))


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("x", "expected `array`, got `str`".replace("expected", "Expected")),
        ([{"operator": "NE", "left_operand": "", "right_operand": ""}], "Invalid enum value 'NE'"),
        ([{"operator": "EQ", "left_operand": ""}], "missing required field `right_operand`"),
        ([{**rule("1", "EQ", "1"), "x": 1}], "unknown field `x`"),
        ([rule("{% for x in y %}", "EQ", "1")], "rules[0].left_operand: '{% for x in y %}' is not"),
        ([rule("1", "EQ", "1" * 1_001)], "rules[0].right_operand: has more than 1,000 characters"),
        ([rule("1", "EQ", "1")] * 101, "it has 101 rules; at most 100 are possible."),
    ],
)
def test_what_is_no_rule_is_refused_and_nothing_changes(team, rules, message):
    status, text = team.refused("PUT", PATH, {"configs_dict": {"rules": rules}})

    assert (400, True) == (status, message.lower() in text.lower()), text
    assert {} == team.get(PATH)
