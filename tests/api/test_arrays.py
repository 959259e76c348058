"""Arrays over HTTP: submitted, made in parts, told as one, cancelled as one or one by one."""

from __future__ import annotations

import pytest

from bough.control.workflows import arrays
from bough.errors import NotFound
from tests.api.house import House

SUBMIT = "/api/pool/team/workflow"


def sweep(array: str, command: str = "[train, '{{array}}']", more: str = "") -> str:
    return (
        f"workflow:\n  name: sweep\n  array: {array}\n{more}  resources: {{default: {{gpu: 1}}}}\n"
        f"  tasks:\n  - {{name: a, command: {command}}}\n"
    )


def submit(house: House, text: str, query: str = "") -> str:
    return house.send("POST", f"{SUBMIT}?{query}", {"file": text})["name"]


def elements(house: House, array: str, **wanted: str) -> list[str]:
    query = "&".join(f"{name}={value}" for name, value in wanted.items())
    path = f"/api/workflow?all_pools=true&limit=1000&order=ASC&array={array}&{query}"
    return [each["name"] for each in house.get(path)["workflows"]]


def commands(house: House, *names: str) -> list[list[str]]:
    """What the tasks of workflows are started with."""
    from bough.control.workflows import query
    from bough.model.access import Actor

    admin = Actor("root", ("osmo-admin", "osmo-default"))
    views = [query.get_workflow(house.site, admin, name) for name in names]
    return [list(view.groups[0].spec.tasks[0].launch.command) for view in views]


def test_an_array_is_one_until_its_elements_are_made(team: House):
    answer = team.send("POST", SUBMIT, {"file": sweep("0-4%2")})
    assert ("sweep-1", 5) == (answer["name"], answer["elements"])
    assert {"PENDING": 5} == team.get("/api/array/sweep-1")["statuses"]
    team.settle()
    found = team.get("/api/array/sweep-1")
    assert ({"PENDING": 3, "RUNNING": 2}, "RUNNING", 2) == (
        found["statuses"],
        found["status"],
        found["at_once"],
    )
    assert ["sweep-1-0", "sweep-1-1"] == elements(team, "sweep-1")
    assert [["train", "0"], ["train", "1"]] == commands(team, "sweep-1-0", "sweep-1-1")
    for name in ("sweep-1-1", "sweep-1-0", "sweep-1-2", "sweep-1-3", "sweep-1-4"):
        team.finish(name)
    found = team.get("/api/array/sweep-1")
    assert ({"COMPLETED": 5}, "COMPLETED") == (found["statuses"], found["status"])


def test_values_and_tables_differ_in_what_they_stand_for(team: House):
    values = submit(team, sweep("{values: [0.1, 1e-3, 'a \"b\"']}"))
    rows = "{table: [{lr: 0.1, seed: 1}, {lr: 0.2, seed: 2}]}"
    table = submit(team, sweep(rows, "[train, '{{ array:lr }}', 's{{array:seed}}', '{{array}}']"))
    team.settle()
    assert [["train", "0.1"], ["train", "0.001"], ["train", 'a "b"']] == commands(
        team, *(f"{values}-{index}" for index in range(3))
    )
    assert [["train", "0.1", "s1", "0"], ["train", "0.2", "s2", "1"]] == commands(
        team, f"{table}-0", f"{table}-1"
    )


def test_a_submission_says_itself_how_often(team: House):
    text = "workflow:\n  name: x\n  tasks:\n  - {name: a, command: ['{{array}}']}\n"
    assert 400 == team.refused("POST", SUBMIT, {"file": text})[0]
    name = submit(team, text, "array=1,5-9:2%25" + "10")
    team.settle()
    assert [f"{name}-{index}" for index in (1, 5, 7, 9)] == elements(team, name)


def test_an_element_can_be_cancelled_and_so_can_all_of_them(team: House):
    name = submit(team, sweep("0-9%3"))
    team.settle()
    team.send("POST", f"/api/workflow/{name}-1/cancel")
    team.settle()
    assert {"FAILED_CANCELED": 1, "PENDING": 6, "RUNNING": 3} == (
        team.get(f"/api/array/{name}")["statuses"]
    )
    assert {"name": name} == team.send("POST", f"/api/workflow/{name}/cancel?message=enough")
    team.settle()
    found = team.get(f"/api/array/{name}")
    assert ({"FAILED_CANCELED": 10}, "FAILED_CANCELED", "admin") == (
        found["statuses"],
        found["status"],
        found["cancelled_by"],
    )
    document = team.get(f"/api/workflow/{name}-2")
    assert "Task was canceled by user: admin. enough" == document["failure_message"]
    assert (400, f"Array {name} is already finished.") == team.refused(
        "POST", f"/api/workflow/{name}/cancel"
    )


def test_an_element_shows_and_repeats_its_own_file(team: House):
    name = submit(team, sweep("{values: [a, b]}"))
    team.settle()
    text = team.ask("GET", f"/api/workflow/{name}-1/spec").text
    assert ("array" in text, "- b\n" in text) == (False, True)
    again = team.send("POST", f"{SUBMIT}?workflow_id={name}-1")
    assert (f"sweep-{2}", None) == (again["name"], again.get("elements"))
    team.settle()
    assert [["train", "b"]] == commands(team, again["name"])


def test_lists_leave_elements_out_on_request_and_say_whose_they_are(team: House):
    name = submit(team, sweep("0-2"))
    single = team.submit(1)
    team.settle()
    shown = team.get("/api/workflow?all_pools=true&elements=false")["workflows"]
    assert [single] == [each["name"] for each in shown]
    every = team.get("/api/workflow?all_pools=true")["workflows"]
    assert {name: {0, 1, 2}} == {
        name: {each["array_index"] for each in every if each["array"] == name}
    }
    (listed,) = team.get("/api/array?all_pools=true")["arrays"]
    assert name == listed["name"]
    assert [] == team.get("/api/array?all_pools=true&users=ann")["arrays"]
    status, message = team.refused("GET", f"/api/workflow/{name}")
    assert (404, f"{name} is an array of 3 workflows; name one of them.") == (
        status,
        message,
    )


def test_what_comes_after_an_array_waits_for_all_of_it(team: House):
    first = submit(team, sweep("0-2%1"))
    ok = submit(team, sweep("0", more=f"  afterok: {first}\n"))
    team.settle()
    for index in range(3):
        assert {"PENDING": 1} == team.get(f"/api/array/{ok}")["statuses"]
        team.finish(f"{first}-{index}")
    assert {"RUNNING": 1} == team.get(f"/api/array/{ok}")["statuses"]


def test_only_some_wait_at_a_time(team: House, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(arrays, "WAITING_AT_ONCE", 3)
    team.run(98)
    name = submit(team, sweep("0-9"))
    team.settle()
    # Two run, three wait in the queue, and five are not made.
    assert 5 == len(elements(team, name))
    team.finish(f"{name}-0")
    assert 6 == len(elements(team, name))


def test_names_that_were_taken_before_are_not_used_again(team: House):
    plain = "workflow: {name: sweep-1, tasks: [{name: a, command: [x]}]}\n"
    taken = team.submit(0, text=plain)
    assert "sweep-1-1" == taken
    name = submit(team, sweep("0-1"))
    assert "sweep-1" == name
    team.settle()
    assert ["sweep-1-2", "sweep-1-3"] == elements(team, name)
    later = team.submit(0, text=plain)
    assert later not in elements(team, name)


def state(house: House) -> str:
    return house.get("/api/configs/pool/team/subpool/a")["subpool_state"]


def test_a_subpool_is_kept_for_elements_that_are_not_made(divided: House):
    name = divided.send("POST", "/api/pool/team--a/workflow", {"file": sweep("0-2%1")})["name"]
    divided.settle()
    divided.send("DELETE", "/api/configs/pool/team/subpool/a")
    for index in range(3):
        assert "DELETING" == state(divided)
        divided.finish(f"{name}-{index}")
    divided.time.ms += 3_600_000
    divided.settle()
    assert "ARCHIVED" == state(divided)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        ("9-0", "from the lower to the higher"),
        ("0-10000", "10,001 elements or more; at most 10,000"),
        ("0-4%0", "is not an array: indexes like 0-49"),
        ("x", "is not an array: indexes like 0-49"),
        ("'0-3,2'", "has the index 2 twice"),
        ("{}", "has either index, values or table"),
        ("{index: 0-1, values: [a]}", "has either index, values or table"),
        ("{values: []}", "has no elements"),
        ("{values: [a/../b]}", "has '..' as a part of a path"),
        ("{table: [{a: 1}, {b: 2}]}", "row 1 has other columns than row 0"),
        ("{table: [{'a b': 1}]}", "is not the name of a column"),
        ("{index: 0-1, atOnce: 0}", "atOnce"),
        ("{index: 0-1, more: 1}", "unknown field"),
    ],
)
def test_a_wrong_array_is_refused_with_its_field(team: House, array: str, message: str):
    status, said = team.refused("POST", SUBMIT, {"file": sweep(array)})
    assert (400, True, True) == (status, "workflow.array" in said, message in said), said
    assert [] == team.get("/api/array?all_pools=true")["arrays"]


def test_a_placeholder_without_a_meaning_is_refused(team: House):
    text = sweep("{table: [{a: 1}]}", "['{{array:b}}']")
    status, said = team.refused("POST", SUBMIT, {"file": text})
    assert (400, "{{array:b}} names no column of the array; there are: a.") == (status, said)
    text = sweep("0-1").replace("array: 0-1", "labels: {}")
    status, said = team.refused("POST", SUBMIT, {"file": text})
    assert (400, "{{array}} is used, and the workflow has no array.") == (status, said)


def test_a_variable_of_that_name_stays_a_variable(team: House):
    text = (
        "workflow:\n  name: x\n  tasks:\n  - {name: a, command: ['{{array}}']}\n"
        "default-values: {array: mine}\n"
    )
    name = submit(team, text)
    assert [["mine"]] == commands(team, name)


def test_ten_thousand_elements_are_few_rows_until_their_time_comes(team: House):
    name = submit(team, sweep("0-9999"))
    team.settle()
    # Of those that do not run, a hundred wait in the queue.
    assert 200 == len(elements(team, name))
    found = team.get(f"/api/array/{name}")
    assert {"PENDING": 9_900, "RUNNING": 100} == found["statuses"]
    team.send("POST", f"/api/workflow/{name}/cancel")
    team.settle()
    assert {"FAILED_CANCELED": 10_000} == team.get(f"/api/array/{name}")["statuses"]
    assert 200 == len(elements(team, name))


def test_a_server_that_is_replaced_makes_each_element_once(team: House):
    name = submit(team, sweep("0-9%2"))
    for _ in range(5):
        team.settle()
        # Nothing is remembered but what is stored.
        team.engine._scheduler._forget()
        for each in elements(team, name, statuses="RUNNING"):
            team.finish(each)
    assert {"COMPLETED": 10} == team.get(f"/api/array/{name}")["statuses"]


def test_only_those_who_may_read_and_cancel_workflows_may_do_so_with_arrays(team: House):
    name = submit(team, sweep("0-1"))
    team.user("ann", "osmo-default")
    for method, path in (("GET", "array/{}"), ("POST", "workflow/{}/cancel")):
        assert 403 == team.refused(method, f"/api/{path.format(name)}", user="ann")[0]
    assert 404 == team.refused("GET", "/api/array/never-1")[0]
    team.settle()
    assert 2 == team.get(f"/api/array/{name}")["statuses"]["RUNNING"]


def test_an_array_that_cannot_be_made_stops_nothing_else(
    team: House, monkeypatch: pytest.MonkeyPatch
):
    bad, good = submit(team, sweep("0-1")), submit(team, sweep("0-1"))
    make = arrays._make_some

    def fail_once(site, connection, array):
        if array.array_id == bad:
            raise NotFound("Pool x not found.")
        return make(site, connection, array)

    monkeypatch.setattr(arrays, "_make_some", fail_once)
    team.settle()
    assert {"RUNNING": 2} == team.get(f"/api/array/{good}")["statuses"]
    monkeypatch.undo()
    team.settle()
    assert {"RUNNING": 2} == team.get(f"/api/array/{bad}")["statuses"]
