"""Apps: workflow files that the server keeps in versions, and what was submitted from them."""

from __future__ import annotations

import pytest

from bough.control.workflows import apps

TRAIN = """\
workflow:
  name: {{ name }}
  resources:
    default: {gpu: {{ gpus }}, cpu: 1, memory: 1Gi, storage: 1Gi}
  tasks:
  - {name: train, image: i, command: [train]}
default-values:
  name: training   # what it is called
  gpus: 2
"""
PLAIN = "workflow: {name: plain, tasks: [{name: one, image: i, command: [c]}]}\n"
PATH = "/api/app/user/train"


@pytest.fixture
def shop(team):
    """Ann, who has the app `train` with two versions, and Ben; both may submit to `team`."""
    team.user("ann", "osmo-team-user")
    team.user("ben", "osmo-team-user")
    team.send("POST", f"{PATH}?description=Trains+a+model", TRAIN, user="ann")
    team.time.ms += 1_000
    team.send("PATCH", PATH, TRAIN.replace("gpus: 2", "gpus: 4"), user="ann")
    return team


def submit_from(shop, user: str, version: int, text: str = TRAIN) -> str:
    uuid = shop.get(PATH, user)["uuid"]
    path = f"/api/pool/team/workflow?app_uuid={uuid}&app_version={version}"
    return shop.send("POST", path, {"file": text}, user=user)["name"]


def test_an_app_has_versions_of_which_the_latest_is_meant(shop):
    found = shop.get(PATH, "ben")

    assert ("train", "ann", "Trains a model", 2) == (
        found["name"],
        found["owner"],
        found["description"],
        found["latest_version"],
    )
    assert [(1, "READY"), (2, "READY")] == [(v["version"], v["status"]) for v in found["versions"]]
    assert "gpus: 4" in shop.ask("GET", f"{PATH}/spec", user="ben").text
    assert TRAIN == shop.ask("GET", f"{PATH}/spec?version=1", user="ben").text


def test_the_newest_versions_are_shown_in_the_order_that_is_asked_for(shop):
    newest = shop.get(f"{PATH}?limit=1")["versions"]
    falling = shop.get(f"{PATH}?order=DESC")["versions"]
    first = shop.get(f"{PATH}?version=1")["versions"]

    assert [[2], [2, 1], [1]] == [[v["version"] for v in s] for s in (newest, falling, first)]


def test_a_workflow_knows_the_app_that_it_was_submitted_from(shop):
    name = submit_from(shop, "ben", 1)
    other = shop.submit(1, user="ben")

    found = shop.get(f"/api/workflow/{name}", "ben")
    assert ("ann", "train", 1) == (found["app_owner"], found["app_name"], found["app_version"])
    listed = {
        w["name"]: w["app_name"]
        for w in shop.get("/api/workflow?all_pools=True", "ben")["workflows"]
    }
    assert {name: "train", other: None} == listed


def test_workflows_are_listed_by_app_and_version(shop):
    first, second = submit_from(shop, "ben", 1), submit_from(shop, "ben", 2)
    shop.submit(1, user="ben")

    def listed(app: str) -> set[str]:
        answer = shop.get(f"/api/workflow?all_pools=True&app={app}", "ben")
        return {each["name"] for each in answer["workflows"]}

    assert {first, second} == listed("train")
    assert {second} == listed("train:2")
    assert set() == listed("train:3")
    assert set() == listed("other")
    assert (400, "app: a version is a number from 1 on, not 'x'.") == shop.refused(
        "GET", "/api/workflow?app=train:x"
    )


def test_what_is_submitted_again_or_restarted_is_still_of_the_app(shop):
    name = submit_from(shop, "ben", 2)
    again = shop.send("POST", f"/api/pool/team/workflow?workflow_id={name}", user="ben")["name"]

    assert ("train", 2) == tuple(
        shop.get(f"/api/workflow/{again}", "ben")[key] for key in ("app_name", "app_version")
    )


def test_a_submission_names_an_app_that_exists(shop):
    uuid = shop.get(PATH)["uuid"]
    start, body = "/api/pool/team/workflow?app_uuid=", {"file": TRAIN}

    assert (400, "app_uuid: there is no app 'x'.") == shop.refused("POST", f"{start}x", body)
    assert (400, "app_version: app train has no version 9.") == shop.refused(
        "POST", f"{start}{uuid}&app_version=9", body
    )


def test_apps_are_listed_by_owner_name_and_use(shop):
    # OSMO's MCP server takes any other answer for one that says nothing certain.
    assert shop.send("POST", "/api/app/user/plain?description=d", PLAIN, user="ben") is None
    shop.user("cleo", "osmo-team-user")

    def listed(query: str, user: str) -> list[str]:
        return [each["name"] for each in shop.get(f"/api/app?{query}", user)["apps"]]

    assert ["train"] == listed("", "ann")
    assert ["plain"] == listed("", "ben")
    assert [] == listed("", "cleo")
    assert ["train", "plain"] == listed("all_users=True", "cleo")
    assert ["plain", "train"] == listed("all_users=True&order=DESC", "cleo")
    assert ["train"] == listed("users=ann", "cleo")
    assert ["plain"] == listed("all_users=True&name=lai", "cleo")
    submit_from(shop, "cleo", 1)
    assert ["train"] == listed("", "cleo")


def test_a_list_says_whether_there_is_more(shop):
    shop.send("POST", "/api/app/user/plain?description=d", PLAIN, user="ben")

    page = shop.get("/api/app?all_users=True&limit=1")
    rest = shop.get("/api/app?all_users=True&limit=1&offset=1")

    assert (["plain"], True) == ([a["name"] for a in page["apps"]], page["more_entries"])
    assert (["train"], False) == ([a["name"] for a in rest["apps"]], rest["more_entries"])


def test_only_the_owner_and_administrators_change_an_app(shop):
    refused = "App train belongs to ann: only they and administrators can have it {}."
    for method, path, body, done in (
        ("PATCH", PATH, TRAIN, "changed"),
        ("POST", f"{PATH}/rename", "mine", "renamed"),
        ("DELETE", f"{PATH}?version=1", None, "deleted"),
    ):
        assert (403, refused.format(done)) == shop.refused(method, path, body, user="ben")

    assert 3 == shop.send("PATCH", PATH, TRAIN)["version"]


def test_a_renamed_app_is_still_that_of_its_workflows(shop):
    name = submit_from(shop, "ben", 1)
    shop.send("POST", "/api/app/user/plain?description=d", PLAIN, user="ben")

    assert "fit" == shop.send("POST", f"{PATH}/rename", "fit", user="ann")

    assert (404, "App train not found.") == shop.refused("GET", PATH)
    assert "fit" == shop.get(f"/api/workflow/{name}")["app_name"]
    taken = shop.refused("POST", "/api/app/user/fit/rename", "plain", user="ann")
    assert (409, "App plain already exists.") == taken


def test_a_deleted_version_is_gone_and_its_number_is_not_given_again(shop):
    name = submit_from(shop, "ben", 2)

    assert {"versions": [2]} == shop.send("DELETE", f"{PATH}?version=2", user="ann")

    assert 1 == shop.get(PATH)["latest_version"]
    assert (404, "Version 2 of app train was deleted.") == shop.refused(
        "GET", f"{PATH}/spec?version=2"
    )
    assert 3 == shop.send("PATCH", PATH, TRAIN, user="ann")["version"]
    assert ("train", 2) == tuple(
        shop.get(f"/api/workflow/{name}")[key] for key in ("app_name", "app_version")
    )


def test_an_app_without_versions_is_listed_no_more_and_can_be_brought_back(shop):
    assert {"versions": [2, 1]} == shop.send("DELETE", f"{PATH}?all_versions=True", user="ann")

    assert [] == shop.get("/api/app?all_users=True")["apps"]
    assert (404, "App train has no version any more; all were deleted.") == shop.refused(
        "GET", f"{PATH}/spec"
    )
    assert {"versions": []} == shop.send("DELETE", f"{PATH}?all_versions=True", user="ann")
    assert 3 == shop.send("PATCH", PATH, TRAIN, user="ann")["version"]
    assert ["train"] == [each["name"] for each in shop.get("/api/app?all_users=True")["apps"]]


def test_what_is_deleted_is_named(shop):
    refused = (400, "Send either a version or all_versions=true, not both.")

    assert refused == shop.refused("DELETE", PATH, user="ann")
    assert refused == shop.refused("DELETE", f"{PATH}?version=1&all_versions=True", user="ann")
    assert (404, "App train has no version 7.") == shop.refused(
        "DELETE", f"{PATH}?version=7", user="ann"
    )


def test_every_change_is_audited(shop):
    shop.send("POST", f"{PATH}/rename", "fit", user="ann")
    shop.send("DELETE", "/api/app/user/fit?version=1", user="ann")

    entries = shop.get("/api/audit?limit=100")["entries"]
    found = [(e["action"], e["subject"], e["actor"]) for e in entries if "app/" in e["subject"]]

    assert [
        ("app:Delete", "app/fit", "ann"),
        ("app:Update", "app/train", "ann"),
        ("app:Update", "app/train", "ann"),
        ("app:Create", "app/train", "ann"),
    ] == found


@pytest.mark.parametrize(
    ("name", "query", "body", "status", "message"),
    [
        ("train", "description=d", TRAIN, 409, "App train already exists."),
        ("-x", "description=d", TRAIN, 400, "App '-x': a name begins with a letter"),
        ("x" * 64, "description=d", TRAIN, 400, "at most 63 characters"),
        ("new", "", TRAIN, 400, "description"),
        ("new", "description=", TRAIN, 400, "App new: a description has 1 to 1,000 characters"),
        ("new", "description=d", "", 400, "App new: its workflow file is empty."),
        ("new", "description=d", {"file": TRAIN}, 400, "Expected `str`, got `object`"),
        ("new", "description=d", "a: {{ b }}", 400, "App new: its workflow file has no field"),
        ("new", "description=d", "workflow: {}", 400, "workflow"),
        ("new", "description=d", "workflow: {{ x }}\ndefault-values: 3\n", 400, "default-values"),
        ("new", "description=d", "x" * (apps.CHARACTERS + 1), 400, "more than 4,194,304"),
    ],
)
def test_what_cannot_be_an_app_is_refused_with_the_reason(shop, name, query, body, status, message):
    found, text = shop.refused("POST", f"/api/app/user/{name}?{query}", body, user="ann")

    assert status == found
    assert message in text
    assert ["train"] == [each["name"] for each in shop.get("/api/app?all_users=True")["apps"]]


def test_one_user_cannot_fill_the_database(shop, monkeypatch):
    monkeypatch.setattr(apps, "MOST_APPS", 1)
    monkeypatch.setattr(apps, "MOST_VERSIONS", 2)

    assert (409, "ann has 1 apps already, the most that are allowed.") == shop.refused(
        "POST", "/api/app/user/more?description=d", TRAIN, user="ann"
    )
    assert (
        409,
        "App train has 2 versions, the most that are allowed; delete some.",
    ) == shop.refused("PATCH", PATH, TRAIN, user="ann")
