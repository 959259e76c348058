"""The client of a cluster's scheduler: finds the leader by its Lease, asks it with its token."""

from __future__ import annotations

import base64
import http.client
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from bough.api.kube_answers import KubeWhyAnswer
from bough.api.quota_answers import QuotaTreeAnswer
from bough.errors import BoughError, Forbidden, NotFound, Unavailable
from bough.kube.client import KubeClient
from bough.kube.failures import KubeNotFound, KubeRefused
from bough.kube.kubeconfig import find_access
from bough.pod_scheduler.http_listener import TOKEN_HEADER
from bough.pod_scheduler.scheduler import ADDRESS_ANNOTATION, POD_ANNOTATION, lease_name

T = TypeVar("T")
PATIENCE_S = 30.0


class SchedulerQuestions:
    """Questions to the scheduler of one cluster."""

    def __init__(
        self,
        kubeconfig: str | None,
        context: str | None,
        scheduler_name: str = "bough",
        namespace: str = "bough-system",
    ) -> None:
        access = find_access(kubeconfig=kubeconfig, context=context)
        #: The namespace of the kubeconfig context.
        self.namespace = access.namespace
        self._client = KubeClient(access)
        self._name = lease_name(scheduler_name)
        self._where = namespace

    def why(self, kind: str, name: str, namespace: str | None) -> KubeWhyAnswer:
        """Why a `pod` or a `podgroup` is where it is."""
        asked = {"kind": kind, "name": name, "namespace": namespace or self.namespace}
        return self._ask("/why", asked, KubeWhyAnswer)

    def queues(self) -> QuotaTreeAnswer:
        """What the queues of the cluster have, use and ask for."""
        return self._ask("/queues", {}, QuotaTreeAnswer)

    def _ask(self, path: str, asked: dict[str, str], answer: type[T]) -> T:
        below = f"/namespaces/{self._where}"
        try:
            leases = f"/apis/coordination.k8s.io/v1{below}/leases"
            lease = self._client.ask("GET", f"{leases}/{self._name}")
            secret = self._client.ask("GET", f"/api/v1{below}/secrets/{self._name}")
        except KubeNotFound:
            raise NotFound(
                f"no scheduler has run here: there is no Lease {self._where}/{self._name}",
                hint="--scheduler-name and --lease-namespace say which one is meant",
            ) from None
        except KubeRefused as refused:
            if refused.status == 403:
                raise Forbidden(f"the cluster does not let you ask: {refused.message}") from None
            raise
        token = base64.b64decode(secret.get("data", {}).get("token", "")).decode()
        target = f"{path}?{urlencode(asked)}"
        host, port, pod = _whereabouts(lease)
        if pod:
            # Through the apiserver, because this machine may have no route to the pod network.
            namespace, _, name = pod.partition("/")
            through = f"/api/v1/namespaces/{namespace}/pods/{name}:{port}/proxy{target}"
            try:
                found = self._client.ask("GET", through, headers={TOKEN_HEADER: token})
            except KubeRefused as refused:
                raise _failure(refused.reason, refused.message) from None
            return msgspec.convert(found, answer)
        status, body = _get(host, port, target, token)
        return _read(status, body, answer)


def _whereabouts(lease: dict[str, Any]) -> tuple[str, int, str]:
    """Host and port of the scheduler that leads, and its pod (NAMESPACE/NAME) if it runs in one."""
    spec: dict[str, Any] = lease.get("spec") or {}
    metadata: dict[str, Any] = lease.get("metadata") or {}
    if not spec.get("holderIdentity"):
        raise Unavailable("no scheduler leads now; one may start at any moment")
    annotations: dict[str, str] = metadata.get("annotations") or {}
    host, _, port = annotations.get(ADDRESS_ANNOTATION, "").rpartition(":")
    if not port.isdecimal():
        raise Unavailable("the scheduler that decides does not say where it answers")
    return host.removeprefix("[").removesuffix("]"), int(port), annotations.get(POD_ANNOTATION, "")


def _get(host: str, port: int, target: str, token: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(host, port, timeout=PATIENCE_S)
    try:
        connection.request("GET", target, headers={TOKEN_HEADER: token})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise Unavailable(f"no answer from the scheduler at {host}:{port}: {error}") from None
    finally:
        connection.close()


class _Failure(msgspec.Struct):
    reason: str = ""
    message: str = ""


def _read(status: int, body: bytes, answer: type[T]) -> T:
    try:
        if status == 200:
            return msgspec.json.decode(body, type=answer)
        told = msgspec.json.decode(body, type=_Failure)
    except msgspec.MsgspecError:
        raise Unavailable(f"the answer cannot be read (status {status})") from None
    raise _failure(told.reason, told.message or f"status {status}")


def _failure(reason: str, message: str) -> BoughError:
    for kind in (NotFound, Unavailable):
        if reason == kind.code:
            return kind(message)
    return BoughError(message)
