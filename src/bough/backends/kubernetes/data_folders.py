"""Data that tasks leave for others: a folder for each attempt, on a claim that all nodes mount.

    <site>/<task>/<attempt>    what an attempt leaves; tasks are named by their uuids

The pod of an attempt mounts its own folder, and those of its inputs read-only. Only the data of an
attempt that completed is ever an input. A container that runs before the task deletes what earlier
attempts left; if the last attempt does not complete, another pod deletes what that one left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bough.backends.kubernetes.names import CLEANER, SITE
from bough.backends.kubernetes.options import DataVolume
from bough.model.backend import Launch, Start
from bough.model.task_template import InputSpec

Json = Any

SEEN_OUTPUT = "/osmo/data/output"
SEEN_INPUT = "/osmo/data/input"
_NAME = "bough-data"
_ROOT = "/bough"
#: How long the pod that deletes folders may take.
_LONGEST_S = 600

#: Run by any POSIX shell, as: sh -c SCRIPT NAME ROOT begin OWN [INPUT SENTENCE]..., to make an
#: empty folder if all inputs exist; or ROOT drop FOLDER..., to delete folders. A folder is moved
#: away before it is deleted, so that a container that is still ending cannot write into a new one.
SCRIPT = """\
set -eu
root=$1 doing=$2
shift 2
throw_away() {
    [ -e "$root/$1" ] || return 0
    bin=$root/${1%%/*}/.dropped
    mkdir -p "$bin"
    place=$(mktemp -d "$bin/XXXXXXXX")
    mv "$root/$1" "$place/"
    rm -rf "$place" || true
}
case $doing in
begin)
    own=$1
    shift
    while [ $# -gt 1 ]; do
        if [ ! -d "$root/$1" ]; then
            echo "$2" >&2
            exit 3
        fi
        shift 2
    done
    throw_away "${own%/*}"
    mkdir -p "$root/$own"
    chmod 777 "$root/$own"
    ;;
drop)
    for each; do
        throw_away "$each"
        rmdir "$root/${each%/*}" 2>/dev/null || true
    done
    old=$root/${1%%/*}/.dropped
    find "$old" -mindepth 1 -maxdepth 1 -mmin +60 -exec rm -rf {} + 2>/dev/null || true
    ;;
esac
"""


class MissingInput(Exception):
    """An input was left by no completed task; the message says which."""


def folder_of(site: str, attempt: str) -> str:
    """The folder of an attempt, relative to the root of the claim."""
    return f"{site}/{attempt}"


def seen_inputs(count: int) -> tuple[str, ...]:
    """The paths at which a task sees its inputs."""
    return tuple(f"{SEEN_INPUT}/{number}" for number in range(count))


def add_data(
    volume: DataVolume,
    site: str,
    start: Start,
    launch: Launch,
    container: dict[str, Json],
    volumes: list[Json],
) -> dict[str, Json]:
    """Mount the folders of a task; return the container that prepares them before it."""
    own = folder_of(site, launch.attempt)
    mounts: list[Json] = [{"name": _NAME, "mountPath": SEEN_OUTPUT, "subPath": own}]
    needed: list[str] = []
    inputs = () if launch.spec is None else launch.spec.inputs
    for number, seen in enumerate(seen_inputs(len(inputs))):
        about = _about(number, inputs[number], start.workflow_id)
        source = launch.sources[number] if number < len(launch.sources) else ""
        if not source:
            raise MissingInput(f"{about} do not exist: no attempt is known that completed.")
        folder = folder_of(site, source)
        mounts.append({"name": _NAME, "mountPath": seen, "subPath": folder, "readOnly": True})
        needed += (folder, f"{about} are not on the claim {volume.claim}.")
    container["volumeMounts"] += mounts
    volumes.append(_claim(volume))
    return _program(volume, "begin", own, *needed)


def cleaner(
    volume: DataVolume, site: str, name: str, node: str, attempts: Sequence[str]
) -> dict[str, Json]:
    """A pod that deletes what attempts left."""
    folders = (folder_of(site, each) for each in attempts)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {SITE: site, CLEANER: "true"}},
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "activeDeadlineSeconds": _LONGEST_S,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "tolerations": [{"operator": "Exists"}],
            "containers": [_program(volume, "drop", *folders)],
            "volumes": [_claim(volume)],
        },
    }


def _program(volume: DataVolume, *args: str) -> dict[str, Json]:
    # Kubernetes would replace $(NAME) in any command: escape it.
    command = [each.replace("$(", "$$(") for each in ("sh", "-c", SCRIPT, _NAME, _ROOT, *args)]
    return {
        "name": _NAME,
        "image": volume.image,
        "command": command,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": _NAME, "mountPath": _ROOT}],
    }


def _claim(volume: DataVolume) -> dict[str, Json]:
    return {"name": _NAME, "persistentVolumeClaim": {"claimName": volume.claim}}


def _about(number: int, each: InputSpec, workflow_id: str) -> str:
    of = each.workflow or workflow_id
    return f"inputs[{number}]: the results of task {each.task} of workflow {of}"
