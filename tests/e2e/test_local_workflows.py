"""Whole workflows as people write them: templates, notice and grace, retries; and the examples."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from tests.e2e.local import Attempt, Local, gang, serving_locally, task
from tests.policies import written

EXAMPLES = sorted(Path(str(files("bough") / "examples" / "workflows")).glob("*.yaml"))
#: A gang that trains, is interrupted, says so by its exit code, and goes on from its checkpoint.
TRAINING = """\
workflow:
  name: training
  resources: {default: {gpu: {{ n_gpus_per_node }}, cpu: 0, memory: 256Mi, storage: 0Gi}}
  groups:
  - name: training
    ignoreNonleadStatus: false
    tasks:
    {% for item in range(n_nodes) %}
    {% if item == 0 %}
    - name: master
      lead: true
      checkpoint: [{path: /tmp/models, url: {{upload_location}}, frequency: {{checkpoint_cadence}}}]
    {% else %}
    - name: worker_{{item}}
    {% endif %}
      image: none
      command: [sh]
      args: [/tmp/run.sh]
      exitActions: {RESCHEDULE: {{ reschedule_code }}}
      inputs: [{url: {{upload_location}}/models}]
      files:
      - path: /tmp/run.sh
        contents: |
          echo "$BOUGH_TASK of {{n_nodes}} reaches {{host:master}}, $MOOD"
          mkdir -p /tmp/models
          if [ -e {{input:0}}/epoch ]; then
            echo "goes on after epoch $(cat {{input:0}}/epoch)"
            [ $BOUGH_TASK = master ] || sleep 1000
            exit 0
          fi
          [ $BOUGH_TASK = master ] || sleep 1000
          echo 7 > /tmp/models/epoch
          exit {{ reschedule_code }}
    {% endfor %}
default-values:
  n_gpus_per_node: 8
  n_nodes: 2
  reschedule_code: 3
  checkpoint_cadence: 1m
  upload_location: bough://p/path
"""
DEAF = """\
trap '' TERM
trap 'exit 0' USR1
echo deaf
while :; do sleep 1000 & wait $!; done
"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    with serving_locally(tmp_path_factory.mktemp("workflows"), 8) as local:
        local.done("config", "set", "WORKFLOW", "max_retry_per_task=2")
        yield local


@pytest.fixture
def local(host: Local) -> Iterator[Local]:
    """A pool `p` of eight GPUs."""
    host.pool("p", 8)
    yield host
    host.clear()


def test_every_example_runs_to_its_end(large: Local):
    large.pool("vision", 100)
    names = {
        path.stem: large.json("workflow", "submit", "--pool", "vision", str(path))["name"]
        for path in EXAMPLES
    }
    large.over(*names.values())
    shown = large.shown(*names.values())
    assert ["COMPLETED"] * len(names) == large.statuses(*names.values()), shown
    said = {stem: large.log(name) for stem, name in names.items()}
    assert ["[greet] Hello from hello-1"] == said["hello"]
    assert ["[report] 10 numbers, 55 together"] == said["serial"]
    assert {f"[worker-{n}] worker {n} of at most 8, on GPU" for n in range(8)} == {
        line.rpartition(" ")[0] for line in said["elastic"] if "of at most" in line
    }
    assert "[master] trained for 20 steps" in said["gang"]
    assert "[front] routes" in said["subgroups"]
    assert 6 == sum("serves as" in line for line in said["subgroups"])


def test_a_templated_gang_starts_itself_again_and_goes_on(local: Local):
    path = local.folder / "training.yaml"
    path.write_text(TRAINING)
    options = ("--set", "n_gpus_per_node=2", "--set", "n_nodes=3", "--set-env", "MOOD=eager")
    name = local.json("workflow", "submit", "--pool", "p", *options, str(path))["name"]
    local.over(name)
    assert "COMPLETED" == local.status(name), local.shown(name)
    tasks = local.tasks(name)
    assert ["master", "worker_1", "worker_2"] == sorted(tasks)
    assert [Attempt(0, "RESCHEDULED", 3), Attempt(1, "COMPLETED", 0)] == tasks["master"]
    assert {"RESCHEDULED"} == {attempts[0].status for attempts in tasks.values()}
    lines = local.log(name)
    assert "[master] master of 3 reaches 127.0.0.1, eager" in lines
    assert "[master retry-1] goes on after epoch 7" in lines
    spec = local.done("workflow", "spec", name)
    assert "gpu: 2" in spec
    assert "{% for" in local.done("workflow", "spec", name, "--template")


def test_notice_is_given_before_the_end_and_gpus_are_kept_until_then(local: Local):
    _give_victims(local, "2s")
    low = local.run("p", 8, "LOW", script=DEAF)
    normal = local.submit("p", 8, "NORMAL")
    seen: set[tuple[bool, bool]] = set()

    def moved() -> bool:
        mains = local.mains(low, normal)
        owners = {each.environment["BOUGH_WORKFLOW_ID"] for each in mains}
        seen.add((low in owners, normal in owners))
        return owners == {normal}

    local.until(moved, lambda: local.shown(low, normal))
    assert (True, True) not in seen
    local.left_waiting(low)
    assert Attempt(0, "FAILED_PREEMPTED", 3006) == local.attempts(low)[0]
    _give_victims(local, "30s")


def _give_victims(local: Local, grace: str) -> None:
    path = local.folder / "policy.json"
    path.write_text(json.dumps(written(grace=grace)))
    local.done("config", "update", "POLICY", "--file", str(path))


def test_what_fails_again_and_again_is_given_up(local: Local):
    name = local.submit("p", 1, "NORMAL", script="exit 9", exitActions={"RESCHEDULE": "1-10"})
    local.over(name)
    assert [
        Attempt(0, "RESCHEDULED", 9),
        Attempt(1, "RESCHEDULED", 9),
        Attempt(2, "FAILED", 9),
    ] == local.attempts(name)
    assert "No exit action applied due to retry limit 2." in local.message(name)


def test_what_its_exit_actions_call_success_is_completed(local: Local):
    name = local.submit("p", 1, "NORMAL", script="exit 9", exitActions={"COMPLETE": "9"})
    local.over(name)
    assert [Attempt(0, "COMPLETED", 9)] == local.attempts(name)


@pytest.mark.parametrize(("ignore", "status"), [(True, "COMPLETED"), (False, "FAILED")])
def test_whether_others_than_the_lead_count_is_said_by_the_group(
    local: Local, ignore: bool, status: str
):
    name = local.send(
        "p",
        "NORMAL",
        gang([task("lead", "sleep 1"), task("other", "exit 5")], ignoreNonleadStatus=ignore),
    )
    local.over(name)
    assert status == local.status(name), local.shown(name)
    assert [Attempt(0, "FAILED", 5)] == local.tasks(name)["other"]
