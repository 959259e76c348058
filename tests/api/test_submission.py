"""Submitting over HTTP: templates, files, gangs, warnings, and submitting again."""

from __future__ import annotations

import base64
from importlib.resources import files
from typing import Any
from uuid import RFC_4122, UUID

import pytest
import yaml

from bough.control.workflows import query
from bough.formats.yaml.quantity import parse_quantity
from bough.model.access import Actor
from bough.model.backend import BackendAbilities
from bough.model.pool import OfferedNode
from tests.api.house import House, spec
from tests.api.served import Served

PATH = "/api/pool/team/workflow"
TEMPLATE = """\
default-values: {gpus: 2, count: 2}
workflow:
  name: trained
  resources: {default: {gpu: {{ gpus }}}}
  groups:
  - name: training
    tasks:
    {% for number in range(count) %}
    - name: node-{{ number }}
      lead: {{ number == 0 }}
      args: ["{{host:node-0}}", "{{ output }}"]
    {% endfor %}
"""
ELASTIC = """\
workflow:
  name: elastic
  resources: {{default: {{gpu: 1}}}}
  tasks:
  - {{name: worker, replicas: {{min: {least}, max: 4}}}}
"""


def send(house: House, text: str, options: str = "", **body: Any) -> Any:
    return house.send("POST", f"{PATH}?{options}", {"file": text, **body})


def running(house: House, name: str) -> list[str]:
    document = house.get(f"/api/workflow/{name}")
    return [
        task["name"]
        for group in document["groups"]
        for task in group["tasks"]
        if task["status"] == "RUNNING"
    ]


def spec_of(house: House, name: str, *, template: bool = False) -> str:
    response = house.ask("GET", f"/api/workflow/{name}/spec?use_template={template}")
    assert 200 == response.status_code
    return response.text


def recipe(house: House, name: str, task: int = 0) -> Any:
    admin = Actor("root", ("osmo-admin", "osmo-default"))
    groups = query.get_workflow(house.site, admin, name).groups
    return [each for group in groups for each in group.spec.tasks][task].launch


# Templates


def test_a_dry_run_answers_with_the_rendered_workflow_and_keeps_nothing(team: House):
    answer = send(team, TEMPLATE, "dry_run=True", set_variables=["count=3"])

    spec = yaml.safe_load(answer["spec"])["workflow"]
    assert ["node-0", "node-1", "node-2"] == [each["name"] for each in spec["groups"][0]["tasks"]]
    assert ["{{host:node-0}}", "{{ output }}"] == spec["groups"][0]["tasks"][1]["args"]
    assert (None, "trained", []) == (answer["logs"], answer["name"], answer["warnings"])
    assert [] == team.get("/api/workflow?all_pools=True&all_users=True")["workflows"]


def test_a_template_is_kept_beside_what_was_rendered(team: House):
    name = send(team, TEMPLATE, set_variables=["gpus=1"])["name"]
    team.settle()

    assert ["node-0", "node-1"] == running(team, name)
    assert TEMPLATE == spec_of(team, name, template=True)
    assert "{default: {gpu: 1}}" in spec_of(team, name)
    assert "default-values" not in spec_of(team, name)


def test_what_comes_with_its_template_is_not_rendered_again(team: House):
    rendered = "workflow: {name: x, tasks: [{name: a, args: ['{{ kept }}', '{{output}}']}]}\n"
    name = send(team, rendered, uploaded_templated_spec=TEMPLATE, set_variables=["gpus=9"])["name"]

    assert (rendered, TEMPLATE) == (spec_of(team, name), spec_of(team, name, template=True))
    assert ("{{ kept }}", "{{output}}") == recipe(team, name).args


def test_a_workflow_without_a_template_shows_itself_as_its_template(team: House):
    text = "workflow: {name: x, tasks: [{name: a}]}  # as it is\n"
    name = send(team, text)["name"]

    assert (text, text) == (spec_of(team, name), spec_of(team, name, template=True))


def test_an_error_in_what_was_rendered_shows_the_line(team: House):
    text = "workflow:\n  name: x\n  tasks:\n  - {name: a, {{ what }}: 1}\ndefault-values: {what: q}"
    status, message = team.refused("POST", PATH, {"file": text})

    assert 400 == status
    assert "line 4: workflow.tasks[0].q: unknown field" in message
    assert "(rendered: '- {name: a, q: 1}')" in message


def test_text_that_is_no_yaml_once_rendered_shows_the_line(team: House):
    text = "workflow: {name: {{ what }}\ndefault-values: {what: '['}"
    _, message = team.refused("POST", PATH, {"file": text})

    assert "The workflow is not valid: line" in message
    assert "no valid YAML" in message


def test_variables_that_do_nothing_are_warned_about(team: House):
    warnings = send(team, TEMPLATE, "dry_run=True", set_variables=["typo=1"])["warnings"]
    assert ["The template does not use typo, which is set."] == warnings

    plain = "workflow: {name: x, tasks: [{name: a}]}"
    warnings = send(team, plain, set_string_variables=["n=1"])["warnings"]
    assert ["--set has no effect: the workflow is not a template."] == warnings


def test_a_workflow_is_submitted_again_with_all_that_was_added(team: House):
    first = send(team, TEMPLATE, "label=a=1&env_vars=SEED=7", set_variables=["gpus=1"])["name"]
    again = team.send("POST", f"{PATH}?workflow_id={first}&label=b=2&env_vars=MORE=8")["name"]

    assert {"a": "1", "b": "2"} == team.get(f"/api/workflow/{again}")["labels"]
    assert {"SEED": "7", "MORE": "8"} == recipe(team, again).environment
    assert TEMPLATE == spec_of(team, again, template=True)
    assert spec_of(team, first) == spec_of(team, again)


# Files


def test_files_reach_the_template_of_their_task(team: House):
    content = base64.b64encode(b"\x00\xff").decode()
    text = (
        "workflow: {name: x, tasks: [{name: a, files: [{path: /opt/run.sh, contents: 'echo hi'},"
        f" {{path: data/x.bin, contents: '{content}', base64: true}}]}}]}}"
    )
    kept = recipe(team, send(team, text)["name"]).files

    assert [("/opt/run.sh", "echo hi", False), ("data/x.bin", content, True)] == [
        (each.path, each.contents, each.base64) for each in kept
    ]


def test_a_file_that_was_not_sent_is_refused_but_not_by_a_dry_run(team: House):
    text = "workflow: {name: x, tasks: [{name: a, files: [{path: f, localpath: here.sh}]}]}"

    assert text == send(team, text, "dry_run=True")["spec"]
    for options in ("", "validation_only=True"):
        status, message = team.refused("POST", f"{PATH}?{options}", {"file": text})
        assert 400 == status
        assert "localpath: 'here.sh' was not sent along; send its contents" in message


# Gangs


@pytest.mark.parametrize("least", [1, 2, 3])
def test_an_elastic_group_starts_with_its_lead_and_keeps_it(sqlite_files, least: int):
    store = sqlite_files.open(sqlite_files.make())
    with House(store, gpus=3) as house:
        house.pool("team", 3)
        name = send(house, ELASTIC.format(least=least), "priority=LOW")["name"]
        house.settle()
        assert ["worker-0", "worker-1", "worker-2"] == running(house, name)

        house.submit(3 - least, priority="HIGH")
        house.settle()
        kept = running(house, name)
        assert (least, True) == (len(kept), "worker-0" in kept)
        assert "RUNNING" == house.status(name)
    store.close()


def test_identities_begin_with_their_time_and_end_at_random(team: House):
    names = [send(team, spec())["name"] for _ in range(3)]
    found = [team.get(f"/api/workflow/{name}")["uuid"] for name in names]

    assert [(7, RFC_4122)] * 3 == [(UUID(each).version, UUID(each).variant) for each in found]
    times = [each[:12] for each in found]
    assert sorted(times) == times
    assert 3 == len({each[-16:] for each in found})


def test_an_elastic_group_is_admitted_by_its_minimum(team: House):
    team.create("team", "small", 2)
    path = "/api/pool/team--small/workflow"

    assert "elastic-1" == team.send("POST", path, {"file": ELASTIC.format(least=2)})["name"]
    _, message = team.refused("POST", path, {"file": ELASTIC.format(least=3)})
    assert "group worker-group requires 3 GPUs" in message


def test_topology_must_be_the_pools_own(team: House):
    text = "workflow: {name: x, resources: {default: {topology: [%s]}}, tasks: [{name: a}]}"
    _, message = team.refused("POST", PATH, {"file": text % "{key: rack}"})
    assert "unknown to pool team: it has no topology keys" in message

    keys = [{"key": "zone", "label": "z"}, {"key": "rack", "label": "r"}]
    team.pool("racked", 0, topology_keys=keys)
    path = "/api/pool/racked/workflow"
    assert "x-2" == team.send("POST", path, {"file": text % "{key: zone}, {key: rack}"})["name"]
    _, message = team.refused("POST", path, {"file": text % "{key: rack}, {key: zone}"})
    assert "the wider comes first, and in pool racked the order is zone, rack" in message


def test_excluded_nodes_are_not_used(team: House):
    node = team.get("/api/resources?all_pools=True")["resources"][0]["exposed_fields"]["node"]
    text = "workflow: {name: x, resources: {default: {nodesExcluded: [%s]}}, tasks: [{name: a}]}"
    shunned, free = (send(team, text % each)["name"] for each in (node, "another"))
    team.settle()

    assert ("PENDING", "RUNNING") == (team.status(shunned), team.status(free))


# Credentials and limits


def test_credentials_must_be_the_submitters_own(team: House):
    text = "workflow: {name: x, tasks: [{name: a, credentials: {%s}}]}"
    secret = {"type": "GENERIC", "payload": {"key": "k", "user": "u"}}
    _, message = team.refused("POST", PATH, {"file": text % "wandb: /run/w"})
    assert "Task a uses the credential wandb, which admin does not have." == message
    assert "x" == send(team, text % "wandb: /run/w", "dry_run=True")["name"]

    team.send("POST", "/api/credentials/wandb", secret)
    assert "x-1" == send(team, text % "wandb: {KEY: key}")["name"]
    _, message = team.refused("POST", PATH, {"file": text % "wandb: {KEY: token}"})
    assert "Task a uses token of the credential wandb, which has only" in message


def test_the_number_of_tasks_is_a_setting(team: House):
    team.send("PATCH", "/api/configs/workflow", {"configs_dict": {"max_num_tasks": 2}})
    text = "workflow: {name: x, tasks: [{name: a, replicas: %s}]}"

    assert "x-1" == send(team, text % 2)["name"]
    _, message = team.refused("POST", PATH, {"file": text % 3})
    assert "replicas: are 3; a workflow has at most 2 tasks" in message


# Warnings


def able(team: House, abilities: BackendAbilities) -> None:
    """Let the only backend be able to do this."""
    object.__setattr__(team.site, "abilities", {"default": abilities})


def test_an_image_that_no_backend_runs_is_told(team: House):
    text = "workflow: {name: x, tasks: [{name: a, image: ubuntu}, {name: b, image: ubuntu}]}"
    assert [] == send(team, text)["warnings"]

    able(team, BackendAbilities(runs_images=False))
    answer = send(team, text)
    warning = (
        "The image of a and 1 more tasks is not used: this server runs commands on its own machine."
    )
    assert [warning] == answer["warnings"]
    assert [warning] == team.get(f"/api/workflow/{answer['name']}")["warnings"]


def test_a_task_without_a_command_is_refused_where_commands_are_run(team: House):
    text = "workflow: {name: x, tasks: [{name: a, image: ubuntu}]}"
    assert [] == send(team, text)["warnings"]
    able(team, BackendAbilities(runs_images=True, runs_commands=True))
    # The image has a command of its own.
    assert [] == send(team, text)["warnings"]

    able(team, BackendAbilities(runs_images=False, runs_commands=True))
    answer = team.ask("POST", "/api/pool/team/workflow", json={"file": text})
    assert 400 == answer.status_code
    assert "Task a: command: is missing; a task has a program to run." == answer.json()["message"]


def test_what_an_osmo_server_would_refuse_is_refused_if_asked_for(team: House):
    path = "/api/pool/team/workflow?validation_only=True"
    body = {"file": "workflow: {name: x, tasks: [{name: a, command: [run]}]}"}
    assert 200 == team.ask("POST", path, json=body).status_code

    answer = team.ask("POST", f"{path}&strict_osmo=True", json=body)
    assert 400 == answer.status_code
    assert "workflow.tasks[0].image: is missing (OSMO)" in answer.json()["message"]


def test_urls_of_stores_need_credentials_where_stores_are_opened(team: House):
    text = (
        "workflow: {name: x, tasks: [{name: a, image: i, inputs: [{url: 's3://bucket/in'}, "
        "{url: 'file:///data'}], outputs: [{url: 'S3://bucket/out'}]}]}"
    )
    assert [] == send(team, text)["warnings"]

    able(team, BackendAbilities(opens_stores=True, store_endpoints=("https://store:9000",)))
    for mode in ("", "validation_only=True"):
        code, message = team.refused("POST", f"{PATH}?{mode}", {"file": text})
        assert (400, True) == (code, "inputs[0].url: s3://bucket/in needs a credential" in message)
    known = {"endpoint": "s3://bucket", "access_key_id": "id", "access_key": "a-SECRET"}
    for more, expected in (
        ({"override_url": "https://store:9001"}, "has not allowed (--store-endpoint)"),
        ({"override_url": "https://store:9000/path"}, None),
        ({}, None),
    ):
        body = {"data_credential": {**known, **more}}
        assert 200 == team.ask("POST", "/api/credentials/key", json=body).status_code
        if expected is None:
            assert [] == send(team, text)["warnings"]
            continue
        code, message = team.refused("POST", PATH, {"file": text})
        assert (400, True, False) == (code, expected in message, "SECRET" in message), message


def test_what_bounds_tasks_that_ask_for_no_memory_or_disk_is_shown(team: House):
    gpu = "workflow: {name: x, resources: {default: {gpu: 1%s}}, tasks: [{name: a, image: i}]}"
    assert send(team, gpu % "")["default_limits"] is None
    able(team, BackendAbilities(bounds_tasks=True))
    (node,) = team.backend.nodes()
    assert node.gpus
    assert node.memory_bytes

    shown = send(team, gpu % "")["default_limits"]
    limits = node.default_limits(1)
    assert [limits.memory_bytes, limits.storage_bytes] == [
        parse_quantity(shown[each], each) for each in ("memory", "storage")
    ]
    assert shown == send(team, gpu % ", memory: 1Gi")["default_limits"]
    assert send(team, gpu % ", memory: 1Gi, storage: 1Gi")["default_limits"] is None


def test_what_has_no_effect_here_is_told(team: House):
    platforms = {"a": {"allowed_mounts": ["/data"], "default_mounts": ["/scratch"]}}
    change = {"configs_dict": {"platforms": platforms, "default_platform": "a"}}
    team.send("PATCH", "/api/configs/pool/team", change)
    text = (
        "workflow: {name: x, tasks: [{name: a, privileged: true, "
        "volumeMounts: ['/data:/here', /scratch]}]}"
    )

    mounts, privileged = send(team, text)["warnings"]
    assert mounts.startswith("workflow.tasks[0].volumeMounts: has no effect on this server;")
    assert "workflow.tasks[0].privileged: has no effect on this server." == privileged


def test_a_mount_that_the_platform_does_not_allow_is_refused(team: House):
    text = "workflow: {name: x, tasks: [{name: a, volumeMounts: ['/data:/here']}]}"
    path = "/api/pool/team/workflow"

    none = "Task a: volumeMounts: '/data' is not for pool team; it allows none."
    assert (400, none) == team.refused("POST", path, {"file": text})
    platforms = {"a": {"allowed_mounts": ["/d"], "default_mounts": ["/data/b"]}}
    change = {"configs_dict": {"platforms": platforms, "default_platform": "a"}}
    team.send("PATCH", "/api/configs/pool/team", change)
    other = "Task a: volumeMounts: '/data' is not for platform a of pool team; it has: /d, /data/b."
    assert (400, other) == team.refused("POST", path, {"file": text})


def test_a_timeout_that_is_cut_is_told(team: House):
    team.pool("team", 100, max_exec_timeout="2h", max_queue_timeout="1d")
    text = "workflow: {name: x, timeout: {exec_timeout: %s, queue_timeout: 1m}, tasks: [{name: a}]}"

    cut = "exec_timeout is cut to 2h, the most that pool team allows."
    assert [cut] == send(team, text % "3h")["warnings"]
    assert [] == send(team, text % "2h")["warnings"]


def test_a_retry_that_is_switched_off_is_told(team: House):
    def told(codes: str) -> list[str]:
        tasks = [f"{{name: {each}, exitActions: {{RESCHEDULE: '{codes}'}}}}" for each in "abcd"]
        return send(team, f"workflow: {{name: x, tasks: [{', '.join(tasks)}]}}")["warnings"]

    found = [told(codes) for codes in ("3", "0-2,3006", "200-4000")]
    start = "exitActions of a, b, c and 1 more: RESCHEDULE has no effect"
    assert [True] * 3 == [len(each) == 1 and each[0].startswith(start) for each in found]
    # What is preempted is tried again in any case.
    assert [] == told("3006")
    team.send("PATCH", "/api/configs/workflow", {"configs_dict": {"max_retry_per_task": 1}})
    assert [] == told("3")


@pytest.mark.parametrize(
    ("needs", "told"),
    [
        ("gpu: 16, cpu: 9", "needs 16 GPUs, and no node has more than 8"),
        ("cpu: 5", "needs 5 CPUs, and no node has more than 4500m"),
        ("memory: 128Gi", "needs 128Gi of memory, and no node has more than 64Gi"),
    ],
)
def test_a_task_that_no_node_is_large_enough_for_is_told(team: House, needs: str, told: str):
    node = OfferedNode("n", gpus=8, cpu_milli=4_500, memory_bytes=2**36, storage_bytes=2**40)
    team.backend.offer((node,))
    team.settle()
    text = (
        f"workflow: {{name: x, resources: {{default: {{gpu: 8}}, large: {{{needs}}}}}, "
        "tasks: [{name: small}, {name: main, resource: large}]}"
    )

    assert [f"Task main {told}; it waits until one does."] == send(team, text)["warnings"]


# Examples


def examples() -> list[Any]:
    folder = files("bough") / "examples" / "workflows"
    return sorted((each for each in folder.iterdir()), key=lambda each: each.name)


@pytest.mark.parametrize("example", examples(), ids=lambda each: each.name)
def test_the_examples_are_accepted_and_start(team: House, example: Any):
    able(team, BackendAbilities(keeps_pool_data=True))
    team.pool("vision", 0)
    name = send(team, example.read_text())["name"]
    team.settle()

    assert example.name == f"{name.removesuffix('-1')}.yaml"
    assert running(team, name)


def test_the_group_of_subgroups_needs_two_replicas_and_its_router(sqlite_files):
    text = (files("bough") / "examples" / "workflows" / "subgroups.yaml").read_text()
    store = sqlite_files.open(sqlite_files.make())
    with House(store, gpus=5) as house:
        house.pool("team", 5)
        name = send(house, text)["name"]
        house.settle()
        assert ["front", "a-0", "a-1", "b-0", "b-1"] == running(house, name)
    store.close()


@pytest.mark.served
def test_an_image_that_the_server_does_not_have_is_refused_at_submission(tmp_path):
    (tmp_path / "images/debian/usr").mkdir(parents=True)
    text = "workflow: {name: x, tasks: [{name: t, image: %s, command: [sleep, '1']}]}"
    options = ("--backend", "local", "--image-folder", str(tmp_path / "images"))
    with Served(tmp_path / "data", *options) as server:

        def submit(image: str) -> tuple[int, str]:
            body = {"file": text % image}
            answer = server.ask(
                "POST", "/api/pool/default/workflow?validation_only=True", json=body
            )
            return answer.status_code, answer.json().get("message", "")

        assert 200 == submit("debian")[0]
        missing = 'Task t: image: this server has no image "ubuntu"; it has: debian.'
        assert (400, missing) == submit("ubuntu")
        hostile = 'Task t: image: "../data" is not the name of an image.'
        assert (400, hostile) == submit("../data")
        body = {"file": "workflow: {name: x, tasks: [{name: t, image: debian}]}"}
        answer = server.ask("POST", "/api/pool/default/workflow", json=body)
        assert "command: is missing" in answer.json()["message"]


def test_the_same_text_with_other_additions_is_another_workflow(team: House):
    path = "/api/pool/team/workflow"
    body = {"file": spec(1)}
    first = team.send("POST", f"{path}?label=a=1&env_vars=X=1&retries=2", body)["name"]
    second = team.send("POST", path, body)["name"]

    labels = [team.get(f"/api/workflow/{name}")["labels"] for name in (first, second)]
    admin = Actor("root", ("osmo-admin", "osmo-default"))
    tasks = [
        query.get_workflow(team.site, admin, name).groups[0].spec.tasks for name in (first, second)
    ]
    launched = [task.launch for (task,) in tasks]
    assert [{"a": "1"}, {}] == labels
    assert [{"X": "1"}, {}] == [{} if each is None else each.environment for each in launched]
    assert [2, None] == [task.retries for (task,) in tasks]
