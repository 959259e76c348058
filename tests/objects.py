"""Objects of KAI, of Kueue and of Kubernetes as text, for tests that read them."""

from __future__ import annotations


def queue(name: str = "q", gpus: str = "8", more: str = "") -> str:
    free = "{quota: -1, limit: -1}"
    amounts = f"{{gpu: {{quota: {gpus}, limit: -1}}, cpu: {free}, memory: {free}}}"
    return (
        f"{{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {{name: {name}}}, "
        f"spec: {{resources: {amounts}{more}}}}}"
    )


def group(name: str, spec: str = "minMember: 1", queue: str = "q") -> str:
    return (
        "{apiVersion: scheduling.run.ai/v2alpha2, kind: PodGroup, "
        f"metadata: {{name: {name}}}, "
        f"spec: {{queue: {queue}, priorityClassName: build, {spec}}}}}"
    )


def node(name: str = "n", *, spec: str = "", labels: str = "", ready: str = "True") -> str:
    """A node of 8 GPUs."""
    return (
        f"{{apiVersion: v1, kind: Node, metadata: {{name: {name}, labels: {{{labels}}}}}, "
        f"spec: {{{spec}}}, status: {{allocatable: "
        f'{{nvidia.com/gpu: "8", cpu: "64", memory: 256Gi, pods: "110"}}, '
        f'conditions: [{{type: Ready, status: "{ready}"}}]}}}}'
    )


def pod(name: str, spec: str = "", *, labels: str = "", requests: str = "") -> str:
    """A pod of one GPU that is called after its group: `a-0` belongs to `a`, and `a` to none."""
    group = name.rpartition("-")[0]
    annotations = f"pod-group-name: {group}" if group else ""
    amounts = f'nvidia.com/gpu: "1", cpu: "1"{requests}'
    return (
        f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, "
        f"annotations: {{{annotations}}}, labels: {{{labels}}}}}, "
        f"spec: {{{spec} containers: [{{name: main, resources: {{requests: {{{amounts}}}}}}}]}}}}"
    )


def topology(*labels: str, name: str = "t") -> str:
    levels = ", ".join(f"{{nodeLabel: {label}}}" for label in labels)
    return (
        f"{{apiVersion: kai.scheduler/v1alpha1, kind: Topology, metadata: {{name: {name}}}, "
        f"spec: {{levels: [{levels}]}}}}"
    )


KUEUE = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: KIND
metadata: {name: NAME}
spec: {SPEC}
"""


def kueue(kind: str, name: str, spec: str = "") -> str:
    return KUEUE.replace("KIND", kind).replace("NAME", name).replace("SPEC", spec)


def cluster_queue(name: str, gpus: int = 8, more: str = "") -> str:
    quota = f"{{name: nvidia.com/gpu, nominalQuota: {gpus}}}"
    flavors = f"[{{name: h100, resources: [{quota}]}}]"
    groups = f"[{{coveredResources: [nvidia.com/gpu], flavors: {flavors}}}]"
    spec = f"cohortName: c, namespaceSelector: {{}}, resourceGroups: {groups}{more}"
    return kueue("ClusterQueue", name, spec)


def workload(name: str, queue: str, pods: int = 1, spec: str = "") -> str:
    containers = "containers: [{name: m, resources: {requests: {nvidia.com/gpu: 1}}}]"
    template = f"{{spec: {{{spec} {containers}}}}}"
    sets = f"[{{name: main, count: {pods}, template: {template}}}]"
    return kueue("Workload", f"{name}, namespace: ns", f"queueName: {queue}, podSets: {sets}")
