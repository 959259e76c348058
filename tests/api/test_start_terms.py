"""What a submission says about when it starts and how often it is tried again, over HTTP."""

from __future__ import annotations

import pytest

from tests.api.house import House, spec

SUBMIT = "/api/pool/team/workflow"


def with_fields(*lines: str, task: str = "") -> str:
    """A workflow of one task, with more fields of both."""
    head = ["workflow:", "  name: next", *(f"  {line}" for line in lines)]
    return "\n".join([*head, "  tasks:", f"  - {{name: a, command: [x]{task}}}"]) + "\n"


@pytest.mark.parametrize("line", ["afterok: job-1", "afterok: [job-1]", "after: [job-1]"])
def test_a_file_names_what_its_workflow_starts_after(team: House, line: str):
    first = team.run(1)
    second = team.submit(0, text=with_fields(line))
    team.settle()
    (listed,) = team.get(f"/api/workflow?all_pools=true&name={second}")["workflows"]
    assert ("PENDING", "Predecessor") == (listed["status"], listed["wait_reason"])
    why = team.get(f"/api/workflow/{second}/why")
    assert "job-1" in why["message"]
    assert why["groups"][0]["message"] in why["message"]
    (group,) = team.get(f"/api/workflow/{second}")["groups"]
    assert ("Predecessor", why["groups"][0]["message"]) == (
        group["wait_reason"],
        group["wait_message"],
    )
    team.finish(first)
    assert "RUNNING" == team.status(second)


def test_a_submission_names_what_it_starts_after(team: House):
    first = team.run(1)
    body = {"file": spec(1, name="next")}
    second = team.send("POST", f"{SUBMIT}?after={first}&afterok={first}", body)["name"]
    team.send("POST", f"/api/workflow/{first}/cancel")
    team.settle()
    why = team.get(f"/api/workflow/{second}/why")
    assert (
        "Nothing of next-1 waits; it is FAILED. It starts only after job-1 has completed, which is "
        "FAILED_CANCELED." == why["message"]
    )


@pytest.mark.parametrize(
    ("query", "text", "message"),
    [
        ("after=never-1", spec(1), "There is no workflow never-1 to wait for."),
        ("after=../x", spec(1), "after: '../x' is no ID of a workflow, such as train-3."),
        ("retries=11", spec(1), "Task task-0-0 asks for 11 retries; at most 10 are allowed."),
        ("retries=-1", spec(1), None),
        ("", with_fields("after: 3"), "workflow.after: expected a list, not the number 3"),
        ("", with_fields("afterok: [x]"), "workflow.afterok: 'x' is no ID of a workflow"),
        ("", with_fields(task=", retries: -1"), "retries"),
        ("", with_fields(task=", retries: many"), "retries"),
        ("&".join(f"after=x-{n}" for n in range(101)), spec(1), "waits for 101 others"),
    ],
)
@pytest.mark.parametrize("mode", ["", "&validation_only=true"])
def test_wrong_terms_are_refused_and_change_nothing(
    team: House, query: str, text: str, message: str | None, mode: str
):
    status, said = team.refused("POST", f"{SUBMIT}?{query}{mode}", {"file": text})
    assert (400, True) == (status, message is None or message in said), said
    assert [] == team.get("/api/workflow?all_users=true&all_pools=true")["workflows"]


def test_a_task_is_tried_again_as_often_as_it_asks_for(team: House):
    name = team.submit(0, text=with_fields(task=", retries: 2"))
    for attempt in range(3):
        team.settle()
        (task,) = team.get(f"/api/workflow/{name}")["groups"][0]["tasks"]
        assert (attempt, "RUNNING") == (task["retry_id"], task["status"])
        running = team.backend._attempts[f"{task['task_uuid']}/{attempt}"]
        running.ended_ms, running.exit_code = team.time.ms, 7
        team.settle()
    document = team.get(f"/api/workflow/{name}")
    expected = "Task ended with exit code 7. No exit action applied due to retry limit 2."
    assert ("FAILED", expected) == (document["status"], document["failure_message"])


def test_a_bound_that_was_lowered_counts_for_what_runs(team: House):
    name = team.send("POST", f"{SUBMIT}?retries=3", {"file": spec(1)})["name"]
    team.settle()
    changes = {"configs_dict": {"max_asked_retries": 0}}
    team.send("PATCH", "/api/configs/workflow", changes)
    (task,) = team.get(f"/api/workflow/{name}")["groups"][0]["tasks"]
    running = team.backend._attempts[f"{task['task_uuid']}/0"]
    running.ended_ms, running.exit_code = team.time.ms, 7
    team.settle()
    assert "FAILED" == team.status(name)
