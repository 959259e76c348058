"""What a pod asks for."""

from __future__ import annotations

from bough.formats.kubernetes.pods import read_pod_template
from bough.formats.yaml.composer import compose
from bough.formats.yaml.documents import Document
from bough.formats.yaml.fields import Reading
from bough.model.cluster import Match, TaintEffect, Toleration
from bough.model.workload import PodTemplate


def read(text: str) -> tuple[PodTemplate, list[tuple[str, str]]]:
    ((value, line),) = compose(text, "x.yaml")
    fields = Reading(Document(value, "x.yaml", line)).fields()
    template = read_pod_template(fields)
    fields.finish()
    return template, [(each.field, each.message) for each in fields.reading.problems]


def requests(spec: str) -> dict[str, int]:
    template, problems = read(f"spec: {spec}")
    assert problems == []
    return template.requests


def test_containers_add_up():
    assert requests(
        "{containers: [{resources: {requests: {cpu: 1, gpu: 2}}}, "
        "{resources: {requests: {cpu: 500m}}}]}"
    ) == {"cpu": 1500, "gpu": 2}


def test_a_limit_counts_where_there_is_no_request():
    assert requests(
        "{containers: [{resources: {requests: {cpu: 1}, limits: {cpu: 4, gpu: 1}}}]}"
    ) == {"cpu": 1000, "gpu": 1}


def test_init_containers_count_by_their_maximum():
    assert requests(
        "{containers: [{resources: {requests: {cpu: 2}}}], initContainers: ["
        "{resources: {requests: {cpu: 3, gpu: 1}}}, {resources: {requests: {cpu: 1}}}]}"
    ) == {"cpu": 3000, "gpu": 1}


def test_an_init_container_that_is_always_restarted_runs_along():
    assert requests(
        "{containers: [{resources: {requests: {cpu: 2}}}], initContainers: ["
        "{restartPolicy: Always, resources: {requests: {cpu: 1}}},"
        "{resources: {requests: {cpu: 4}}}]}"
    ) == {"cpu": 5000}
    assert requests(
        "{containers: [{resources: {requests: {cpu: 2}}}], initContainers: ["
        "{resources: {requests: {cpu: 1}}},"
        "{restartPolicy: Always, resources: {requests: {cpu: 1}}}]}"
    ) == {"cpu": 3000}


def test_overhead_is_added():
    assert requests(
        "{overhead: {cpu: 250m, memory: 1Mi}, containers: [{resources: {requests: {cpu: 1}}}]}"
    ) == {"cpu": 1250, "memory": 1 << 20}


def test_requests_of_the_whole_pod_replace_the_sum():
    assert requests(
        "{resources: {requests: {cpu: 8}}, containers: [{resources: {requests: {cpu: 1, gpu: 1}}}]}"
    ) == {"cpu": 8000, "gpu": 1}


def test_where_a_pod_may_run_is_read():
    template, problems = read("""\
metadata: {labels: {app: x}, annotations: {a: b}}
spec:
  nodeSelector: {zone: a}
  tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}, {operator: Exists}]
  affinity:
    podAntiAffinity: {}
    nodeAffinity:
      preferredDuringSchedulingIgnoredDuringExecution: []
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: gpu, operator: In, values: [h100, a100]}]
        - matchExpressions: [{key: old, operator: DoesNotExist}]
          matchFields: [{key: metadata.name, operator: In, values: [node-1]}]
  containers: [{name: c, image: i, command: [x], env: [], ports: []}]
  volumes: []
  restartPolicy: Never
""")
    assert problems == []
    assert template == PodTemplate(
        node_selector={"zone": "a"},
        affinity=(
            (Match("gpu", "In", ("h100", "a100")),),
            (Match("old", "DoesNotExist"), Match("metadata.name", "In", ("node-1",))),
        ),
        tolerations=(
            Toleration("gpu", "Exists", effect=TaintEffect.NO_SCHEDULE),
            Toleration(operator="Exists"),
        ),
        labels={"app": "x"},
    )


def test_a_misspelt_field_of_a_pod_is_reported():
    _, problems = read("spec: {nodeSelektor: {}, containers: [{resource: {}}]}")
    assert problems == [
        ("spec.nodeSelektor", "unknown field; did you mean nodeSelector?"),
        ("spec.containers[0].resource", "unknown field; did you mean resources?"),
    ]


def test_a_condition_has_values_where_its_operator_needs_them():
    _, problems = read("""\
spec:
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions:
          - {key: a, operator: In}
          - {key: b, operator: Exists, values: [x]}
""")
    assert [message for _, message in problems] == [
        "the operator In needs at least one value",
        "the operator Exists needs no values",
    ]


def test_a_negative_request_is_an_error_and_takes_nothing_from_others():
    template, problems = read(
        "spec: {containers: [{resources: {requests: {gpu: 4}}}, "
        "{resources: {requests: {gpu: -3}, limits: {cpu: -1}}}], overhead: {memory: -2}}"
    )
    text = "is {}, but must not be negative"
    containers = "spec.containers[1].resources"
    assert [
        (f"{containers}.limits.cpu", text.format(-1000)),
        (f"{containers}.requests.gpu", text.format(-3)),
        ("spec.overhead.memory", text.format(-2)),
    ] == problems
    assert {"gpu": 4, "cpu": 0, "memory": 0} == template.requests
