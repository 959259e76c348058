"""The judge of servers that are killed: it reads the log of an apiserver, and notices faults."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.kubernetes.kills import SIZE, judge


def created(uid: str, task: int, version: int, node: str = "node-0") -> dict[str, Any]:
    """The line of the log that tells of a new pod."""
    labels = {
        "osmo.task_uuid": f"t{task}",
        "osmo.retry_id": "0",
        "osmo.group_uuid": "g",
        "osmo.task_name": f"task-{task}",
    }
    metadata = {"uid": uid, "name": uid, "labels": labels, "resourceVersion": str(version)}
    container = {"name": "task", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    pod = {
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": node, "containers": [container]},
        "status": {"phase": "Pending"},
    }
    return {
        "user": {"username": "bough"},
        "verb": "create",
        "objectRef": {"resource": "pods", "namespace": "n", "name": uid},
        "responseStatus": {"code": 201},
        "responseObject": pod,
    }


def judged(folder: Path, *events: dict[str, Any], namespace: str = "n") -> list[str]:
    log = folder / "audit.log"
    lines = (json.dumps(each, separators=(",", ":")) for each in events)
    log.write_text("".join(f"{line}\n" for line in lines))
    bed: Any = SimpleNamespace(audit_log=log)
    return judge(bed, namespace, {"node-0": 8, "node-1": 1})


WHOLE = [created(f"p{number}", number, 10 + number) for number in range(SIZE)]


def test_a_whole_group_is_as_it_should_be(tmp_path: Path):
    assert [] == judged(tmp_path, *WHOLE)


def test_a_second_pod_of_an_attempt_is_noticed(tmp_path: Path):
    again = created("other", 0, 90, "node-1")
    assert "attempt t0/0 has 2 pods" in judged(tmp_path, *WHOLE, again)


def test_too_much_on_a_node_is_noticed(tmp_path: Path):
    there = [created(f"p{number}", number, 10 + number, "node-1") for number in range(2)]
    assert "node-1 has 2 of 1 GPUs at 11" in judged(tmp_path, *there)


def test_a_group_in_part_is_noticed(tmp_path: Path):
    assert ["group g ran with 7 of 8 tasks at last"] == judged(tmp_path, *WHOLE[1:])


def test_a_secret_without_a_pod_is_noticed(tmp_path: Path):
    secret = {
        "user": {"username": "bough"},
        "verb": "create",
        "objectRef": {"resource": "secrets", "namespace": "n", "name": "s"},
        "responseStatus": {"code": 201},
        "requestObject": {"metadata": {"ownerReferences": [{"uid": "gone"}]}},
    }
    assert ["Secret s has no pod that it goes with"] == judged(tmp_path, *WHOLE, secret)


def test_a_log_of_something_else_proves_nothing(tmp_path: Path):
    assert ["the log tells of no pods"] == judged(tmp_path, *WHOLE, namespace="other")
