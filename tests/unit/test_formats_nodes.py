"""Reading Nodes of Kubernetes."""

from __future__ import annotations

from pathlib import Path

from bough.formats.kubernetes.nodes import NodesRead, read_nodes
from bough.formats.yaml.documents import read_documents
from bough.model.cluster import Node, Resources, Taint, TaintEffect

GIB = 1 << 30


def read(folder: Path, text: str, *, lenient: bool = False) -> NodesRead:
    path = folder / "nodes.yaml"
    path.write_text(text, encoding="utf-8")
    return read_nodes(read_documents([str(path)]), lenient=lenient)


def messages(found: NodesRead) -> list[tuple[str, str, int]]:
    return [(problem.field, problem.message, problem.line) for problem in found.problems]


def test_a_node_is_what_it_can_allocate_with_its_labels_and_taints(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        """\
apiVersion: v1
kind: Node
metadata:
  name: n
  labels: {rack: x}
spec:
  podCIDR: 10.0.0.0/24
  taints:
  - {key: gpu, value: "yes", effect: NoExecute, timeAdded: "2026-01-01T00:00:00Z"}
status:
  capacity: {nvidia.com/gpu: "8", cpu: "64", memory: 512Gi, pods: "200", rdma/hca: 4}
  allocatable: {nvidia.com/gpu: "8", cpu: 63500m, memory: 500Gi, pods: "180", rdma/hca: 4}
  nodeInfo: {kernelVersion: "6"}
""",
    )
    capacity = Resources(8, 63_500, 500 * GIB, 180, (("rdma/hca", 4),))
    taint = Taint("gpu", "yes", TaintEffect.NO_EXECUTE)
    assert NodesRead((Node("n", capacity, {"rack": "x"}, (taint,)),), []) == found


def test_what_a_node_does_not_say_about_allocation_is_its_capacity(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "{apiVersion: v1, kind: Node, metadata: {name: n}, status: {capacity: {cpu: 2}}}",
    )
    assert [Resources(cpu_milli=2_000, pods=110)] == [node.capacity for node in found.nodes]


def test_a_node_that_is_cordoned_or_not_ready_takes_nothing_new(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        """\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: open}, status: {allocatable: {cpu: 1},
   conditions: [{type: Ready, status: "True"}, {type: DiskPressure, status: "False"}]}}
- {apiVersion: v1, kind: Node, metadata: {name: shut}, spec: {unschedulable: true},
   status: {allocatable: {cpu: 1}}}
- {apiVersion: v1, kind: Node, metadata: {name: lost}, status: {allocatable: {cpu: 1},
   conditions: [{type: Ready, status: Unknown}]}}
""",
    )
    assert [] == found.problems
    assert [False, True, True] == [node.cordoned for node in found.nodes]


def test_other_objects_are_left_to_their_own_readers(tmp_path: Path) -> None:
    found = read(tmp_path, "{apiVersion: v1, kind: Pod, metadata: {name: p}, nonsense: 1}")
    assert NodesRead((), []) == found


def test_everything_that_is_wrong_is_named_with_its_place(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        """\
apiVersion: v2
kind: Node
metadata: {name: n}
spec: {colour: red}
status:
  allocatable: {nvidia.com/gpu: -1, cpu: much}
---
apiVersion: v1
kind: Node
metadata: {name: n}
status: {}
""",
    )
    assert [
        ("apiVersion", "'v2' is not known for a Node; known is v1", 1),
        (
            "status.allocatable.cpu",
            "'much' is not a quantity; write it like 4, 500m, 1.5 or 16Gi",
            6,
        ),
        ('status.allocatable["nvidia.com/gpu"]', "is -1, but must not be negative", 6),
        ("spec.colour", "unknown field", 4),
        ("status.allocatable", "is missing: nothing says what the node offers", 11),
        (
            "metadata.name",
            f"is declared twice, first in {tmp_path / 'nodes.yaml'}, line 1",
            10,
        ),
    ] == messages(found)


def test_a_node_with_more_gpus_than_memory_could_count_is_an_error(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        """
apiVersion: v1
kind: Node
metadata: {name: n}
status: {allocatable: {nvidia.com/gpu: 1000000000}}
""",
    )
    text = "is 1000000000, but a node has at most 100000 GPUs"
    assert [('status.allocatable["nvidia.com/gpu"]', text, 5)] == messages(found)
