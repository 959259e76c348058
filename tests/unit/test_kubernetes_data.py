"""Folders for data on a claim: what pods mount, and the script that makes and drops folders."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.backends.kubernetes.attempt_state import PodAttempt
from bough.backends.kubernetes.backend import KubernetesBackend
from bough.backends.kubernetes.data_folders import SCRIPT, cleaner
from bough.backends.kubernetes.options import DataVolume, KubernetesOptions
from bough.backends.kubernetes.pod_manifest import UnstartablePod, make_objects
from bough.backends.kubernetes.pod_view import PodSight
from bough.kube.access import Access, FixedCredential
from bough.kube.client import KubeClient
from bough.model.backend import Leadership, Sight, Stop
from bough.model.task_template import InputSpec, TaskTemplate
from tests.kubernetes.pods import ATTEMPT, SITE, UUID, ended, launch, pod, start

VOLUME = DataVolume("shared", "tools")
FOLDER = f"{SITE}/{UUID}/2"
OTHER = f"{SITE}/other/0"


def run(root: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """What a container would run, with another folder in the place of the claim."""
    command = ["sh", "-c", SCRIPT, "bough-data", str(root), *args]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def left(root: Path, folder: str, **files: str) -> None:
    """A folder that an attempt has left."""
    (root / folder).mkdir(parents=True)
    for name, text in files.items():
        (root / folder / name).write_text(text)


def files(root: Path) -> set[str]:
    """All files and empty folders."""
    found = [each for each in root.rglob("*") if not each.is_dir() or not any(each.iterdir())]
    return {str(each.relative_to(root)) for each in found if each.name != ".dropped"}


def with_data(each: InputSpec, source: str, **environment: str) -> dict[str, Any]:
    command = ("cp", "{{input:0}}/a", "{{output}}/b")
    spec = TaskTemplate("ubuntu", command, environment=environment, inputs=(each,))
    asked = launch(spec=spec, sources=(source,))
    return make_objects(SITE, "bough", start(asked), asked, VOLUME).pod


def test_a_task_has_a_folder_of_its_own_and_what_another_left_to_be_read():
    pod = with_data(InputSpec(task="prepare"), "other/0")

    (container,) = pod["spec"]["containers"]
    assert [
        {"name": "bough-data", "mountPath": "/osmo/data/output", "subPath": FOLDER},
        {
            "name": "bough-data",
            "mountPath": "/osmo/data/input/0",
            "subPath": OTHER,
            "readOnly": True,
        },
    ] == container["volumeMounts"]
    claim = {"name": "bough-data", "persistentVolumeClaim": {"claimName": "shared"}}
    assert [claim] == pod["spec"]["volumes"]
    assert ["cp", "/osmo/data/input/0/a", "/osmo/data/output/b"] == container["command"]
    assert {"name": "BOUGH_OUTPUT", "value": "/osmo/data/output"} in container["env"]


def test_before_the_task_its_folder_is_made_and_its_inputs_are_looked_for():
    pod = with_data(InputSpec(task="prepare"), "other/0")

    (before,) = pod["spec"]["initContainers"]
    assert "tools" == before["image"]
    results = "the results of task prepare of workflow wf-1"
    sentence = f"inputs[0]: {results} are not on the claim shared."
    assert ["/bough", "begin", FOLDER, OTHER, sentence] == before["command"][4:]
    assert [{"name": "bough-data", "mountPath": "/bough"}] == before["volumeMounts"]
    # Kubernetes would take $(…) for a variable of its own.
    assert SCRIPT == before["command"][2].replace("$$(", "$(")
    assert "$(" not in before["command"][2].replace("$$(", "")


def test_an_input_that_no_completed_task_left_cannot_be_had():
    message = (
        "inputs[0]: the results of task a of workflow old-1 do not exist: no attempt is known that "
        "completed"
    )
    with pytest.raises(UnstartablePod) as failed:
        with_data(InputSpec(task="a", workflow="old-1"), "")
    assert f"{message}." == str(failed.value)


def test_the_environment_of_a_task_does_not_change_where_its_folder_is():
    pod = with_data(InputSpec(task="a"), "other/0", BOUGH_OUTPUT="/etc")

    (container,) = pod["spec"]["containers"]
    values = [each["value"] for each in container["env"] if each["name"] == "BOUGH_OUTPUT"]
    assert ["/osmo/data/output"] == values


def test_without_a_claim_a_pod_has_neither_a_volume_nor_a_container_before_it():
    asked = launch()
    pod = make_objects(SITE, "bough", start(asked), asked).pod

    assert ([], False) == (pod["spec"]["volumes"], "initContainers" in pod["spec"])
    assert "bough.data" not in pod["metadata"]["labels"]


def test_a_folder_is_made_empty_for_any_user_and_what_earlier_attempts_left_is_dropped(tmp_path):
    left(tmp_path, f"{SITE}/{UUID}/1", half="done")
    left(tmp_path, OTHER, a="1")

    made = run(tmp_path, "begin", FOLDER, OTHER, "-")

    assert (0, "") == (made.returncode, made.stderr)
    assert {FOLDER, f"{OTHER}/a"} == files(tmp_path)
    assert 0o777 == (tmp_path / FOLDER).stat().st_mode & 0o777


def test_where_an_input_is_missing_that_is_said_and_nothing_changed(tmp_path):
    left(tmp_path, f"{SITE}/{UUID}/1", half="done")
    left(tmp_path, OTHER, a="1")
    before = files(tmp_path)

    missing = f"{SITE}/gone/0"
    said = run(tmp_path, "begin", FOLDER, OTHER, "no", missing, "inputs[1]: it is not there.")

    assert (3, "inputs[1]: it is not there.\n") == (said.returncode, said.stderr)
    assert before == files(tmp_path)


def test_what_a_container_writes_that_was_lost_does_not_come_back(tmp_path):
    """It still holds the folder that it had, as a mount does."""
    left(tmp_path, f"{SITE}/{UUID}/1")
    writing = f"cd {tmp_path}/{SITE}/{UUID}/1 && read go && echo late > half"
    with subprocess.Popen(["/bin/sh", "-c", writing], stdin=subprocess.PIPE, text=True) as lost:
        run(tmp_path, "begin", FOLDER)
        lost.communicate("go\n")

    assert {FOLDER} == files(tmp_path)


NAMES = st.sets(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=6)


@given(there=NAMES, dropped=NAMES.filter(bool))
def test_dropping_leaves_all_else_as_it_was(tmp_path_factory, there, dropped):
    root = tmp_path_factory.mktemp("claim")
    folders = {f"{SITE}/{task}/{retry}" for task, retry in there}
    for each in folders:
        left(root, each, file="1")
    gone = {f"{SITE}/{task}/{retry}" for task, retry in dropped}

    assert 0 == run(root, "drop", *sorted(gone)).returncode
    assert {f"{each}/file" for each in folders - gone} == {
        each for each in files(root) if each != SITE and "." not in each
    }


def test_a_folder_is_dropped_however_it_is_named_and_whatever_it_links_to(tmp_path):
    left(tmp_path, OTHER, kept="1")
    left(tmp_path, FOLDER, **{"-rf": "1", "a b": "2", "*": "3"})
    (tmp_path / FOLDER / "link").symlink_to(tmp_path / OTHER)

    run(tmp_path, "drop", FOLDER)

    assert {f"{OTHER}/kept"} == files(tmp_path)


def test_the_pod_that_drops_runs_on_any_node_and_says_what_it_drops():
    made = cleaner(VOLUME, SITE, "c", "n", [ATTEMPT, "other/0"])

    (container,) = made["spec"]["containers"]
    assert ["/bough", "drop", FOLDER, OTHER] == container["command"][4:]
    assert {"bough.site": SITE, "bough.cleaner": "true"} == made["metadata"]["labels"]
    assert [{"operator": "Exists"}] == made["spec"]["tolerations"]


@pytest.mark.parametrize(
    ("state", "deleted", "drops"),
    [
        (ended(0), False, False),
        (ended(1), False, True),
        # It was preempted, and ended well when it was told to.
        (ended(0), True, True),
    ],
)
def test_only_what_completed_is_kept(state, deleted, drops):
    phase = "Failed" if state["terminated"]["exitCode"] else "Succeeded"
    seen = pod(phase, state=state, deleted=deleted)
    (seen.metadata.labels or {})["bough.data"] = "true"
    attempt = PodAttempt(ATTEMPT, stop_by_ms=1 if deleted else None)
    attempt.take(seen, 1)
    attempt.forgotten = attempt.log_done = True

    assert (drops, not drops) == (attempt.leaves_data, attempt.removable)
    attempt.data_dropped = True
    assert attempt.removable


def test_an_attempt_without_a_folder_leaves_none():
    attempt = PodAttempt(ATTEMPT)
    attempt.take(pod("Failed", state=ended(1)), 1)

    assert not attempt.leaves_data
    assert PodSight(Sight.ENDED, exit_code=0).completed


@pytest.mark.parametrize("again", [True, False])
def test_what_was_gone_before_a_server_saw_it_is_dropped_unless_it_may_have_completed(
    tmp_path, again
):
    client = KubeClient(Access("http://127.0.0.1:1", FixedCredential()))
    options = KubernetesOptions(tmp_path, SITE, volume=VOLUME)
    backend = KubernetesBackend(options, client, lambda: 1_000)
    backend.lead(Leadership(1, 2**62))
    running = launch(attempt="running/0", started_ms=1)
    backend.start(start(running))
    backend.stop(Stop(("ending/0",), "cancel", again=again))
    seen = {each.attempt: each.sight for each in backend.observe()}
    assert {"running/0": Sight.LOST, "ending/0": Sight.ENDED} == seen

    backend.forget(tuple(seen))

    leaves = {each.attempt: each.leaves_data for each in backend._attempts.values()}
    assert {"running/0": True, "ending/0": again} == leaves
