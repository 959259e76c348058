"""What a cluster needs for the webhook: a Deployment, its rights, and the webhook configuration.

The certificate is in a Secret of type kubernetes.io/tls, which an
administrator or a tool creates.
"""

from __future__ import annotations

import base64
from typing import Any

NAME = "bough-webhook"
PORT = 8443
_RBAC = "rbac.authorization.k8s.io"
#: The objects that are checked: API group, versions and resources.
REVIEWED = (
    ("scheduling.run.ai", ("v2alpha2",), ("podgroups",)),
    ("scheduling.run.ai", ("v2",), ("queues",)),
    ("kai.scheduler", ("v1alpha1",), ("topologies",)),
    ("kueue.x-k8s.io", ("v1beta1", "v1beta2"), ("cohorts", "clusterqueues")),
    ("", ("v1",), ("pods",)),
)
#: How long an apiserver waits for an answer before it goes on without one.
TIMEOUT_S = 3


def webhook_objects(namespace: str, image: str, ca: bytes) -> list[dict[str, Any]]:
    """All objects of the webhook. `ca`: the PEM certificate that signed the webhook's own."""
    service = {"namespace": namespace, "name": NAME, "path": "/validate", "port": 443}
    return [
        *rights(namespace),
        _service(namespace),
        _deployment(namespace, image),
        configuration({"service": service}, ca),
    ]


def rights(namespace: str) -> list[dict[str, Any]]:
    """A service account that may read what the checks look up."""
    rules = [
        {
            "apiGroups": ["scheduling.run.ai"],
            "resources": ["podgroups", "queues"],
            "verbs": ["get"],
        },
        {"apiGroups": ["kai.scheduler"], "resources": ["topologies"], "verbs": ["list"]},
        {"apiGroups": ["kueue.x-k8s.io"], "resources": ["cohorts"], "verbs": ["get"]},
    ]
    account = {"kind": "ServiceAccount", "name": NAME, "namespace": namespace}
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": NAME, "namespace": namespace},
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": NAME},
            "rules": rules,
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": NAME},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": NAME},
            "subjects": [account],
        },
    ]


def configuration(where: dict[str, Any], ca: bytes) -> dict[str, Any]:
    """The webhook configuration; an apiserver that gets no answer accepts the object."""
    client = {**where, "caBundle": base64.b64encode(ca).decode()}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": [
            _hook("objects", client, [each for each in REVIEWED if each[0]]),
            {
                **_hook("pods", client, [each for each in REVIEWED if not each[0]]),
                # Pods that name no gang are not sent at all.
                "matchConditions": [
                    {
                        "name": "names-a-gang",
                        "expression": "has(object.metadata.annotations) && "
                        "'pod-group-name' in object.metadata.annotations",
                    }
                ],
            },
        ],
    }


def _hook(
    name: str, client: dict[str, Any], reviewed: list[tuple[str, tuple[str, ...], tuple[str, ...]]]
) -> dict[str, Any]:
    return {
        "name": f"{name}.webhook.bough.example",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "timeoutSeconds": TIMEOUT_S,
        "clientConfig": client,
        "rules": [
            {
                "apiGroups": [group],
                "apiVersions": list(versions),
                "resources": list(resources),
                "operations": ["CREATE", "UPDATE"],
            }
            for group, versions, resources in reviewed
        ],
    }


def _service(namespace: str) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": NAME}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME, "namespace": namespace, "labels": labels},
        "spec": {"selector": labels, "ports": [{"port": 443, "targetPort": PORT}]},
    }


def _deployment(namespace: str, image: str) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": NAME}
    probe = {"httpGet": {"path": "/healthz", "port": PORT, "scheme": "HTTPS"}, "periodSeconds": 10}
    container = {
        "name": "webhook",
        "image": image,
        "command": ["bough", "kube", "webhook"],
        "args": ["--tls-cert=/tls/tls.crt", "--tls-key=/tls/tls.key", f"--listen=:{PORT}"],
        "ports": [{"containerPort": PORT}],
        "livenessProbe": probe,
        "readinessProbe": probe,
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "tls", "mountPath": "/tls", "readOnly": True},
            # OpenSSL reads client certificates only from files, so they need a writable folder.
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": NAME,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": 65_532,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [container],
                    "volumes": [
                        {"name": "tls", "secret": {"secretName": f"{NAME}-tls"}},
                        {"name": "tmp", "emptyDir": {}},
                    ],
                },
            },
        },
    }
