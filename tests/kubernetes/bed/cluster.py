"""The three programs of a bed together, on free ports of the loopback."""

from __future__ import annotations

import json
import shutil
import ssl
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from tests.kubernetes.bed import build
from tests.kubernetes.bed.certificates import write_certificates, write_client_certificate
from tests.kubernetes.bed.process import Process, free_port

#: The most patience with a program that starts; machines are shared.
PATIENCE_S = 180
#: Who may log in with which token: a name, and the groups it is in.
ADMIN, ADMIN_TOKEN = "admin", "bed-admin"
KWOK_TOKEN = "bed-kwok"

AUDIT_POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
omitManagedFields: true
rules:
- {level: None, verbs: [get, list, watch]}
- {level: None, users: ["system:apiserver"]}
- {level: None, resources: [{group: coordination.k8s.io}]}
- {level: RequestResponse, resources: [{group: "", resources: [pods, pods/status]}]}
- {level: Request}
"""
#: Switches on PodGroups and Workloads of Kubernetes itself, with all that they can say.
NATIVE_GROUPS = (
    "--runtime-config=scheduling.k8s.io/v1alpha2=true",
    "--feature-gates=GenericWorkload=true,GangScheduling=true",
    "--feature-gates=TopologyAwareWorkloadScheduling=true,WorkloadAwarePreemption=true",
)
#: What pods of the bed wrote, unless a test says otherwise.
LOG = "2026-01-01T00:00:00.000000000Z stdout F a line of the bed\n"


class Bed:
    """etcd, an apiserver and kwok; `with Bed() as bed:` ends them whatever happens."""

    def __init__(self, *, native_groups: bool = True) -> None:
        """native_groups:  whether it knows PodGroups of Kubernetes itself."""
        self._native_groups = native_groups
        self._programs = build.programs()
        self.folder = Path(tempfile.mkdtemp(prefix="bough-bed-"))
        self.etcd: Process
        self.apiserver: Process
        self.kwok: Process
        self.port = 0
        #: A kubeconfig file of the administrator.
        self.kubeconfig = self.folder / "kubeconfig"
        self.audit_log = self.folder / "audit.log"

    def __enter__(self) -> Bed:
        try:
            write_certificates(self.folder)
            write_client_certificate(self.folder, "client", "system:masters")
            (self.folder / "tokens.csv").write_text(
                f'{ADMIN_TOKEN},{ADMIN},1,"system:masters"\n{KWOK_TOKEN},kwok,2,"system:masters"\n'
            )
            (self.folder / "audit.yaml").write_text(AUDIT_POLICY)
            (self.folder / "pod.log").write_text(LOG)
            for start in (self._start_etcd, self._start_apiserver, self._start_kwok):
                _try_ports(start)
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.end()

    @property
    def url(self) -> str:
        """The address of the apiserver."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def authority(self) -> Path:
        """The certificate that the apiserver's is signed by."""
        return self.folder / "bed-ca.crt"

    def end(self) -> None:
        """End all three at once, and forget what they kept."""
        for name in ("kwok", "apiserver", "etcd"):
            if (process := self.__dict__.get(name)) is not None:
                process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def write_kubeconfig(self, name: str, **user: str) -> Path:
        """A kubeconfig of another user, with what the user's entry says, such as a `token`."""
        path = self.folder / f"{name}.kubeconfig"
        path.write_text(yaml.safe_dump(self._kubeconfig(user)))
        return path

    def wait_until_ready(self) -> None:
        """Wait until the apiserver answers that it is ready."""
        self._wait_for(self.apiserver, self._is_ready)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """What the apiserver answers to the administrator; errors are raised as they come."""
        request = urllib.request.Request(  # noqa: S310
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {ADMIN_TOKEN}", "Content-Type": "application/json"},
        )
        trusting = ssl.create_default_context(cafile=str(self.authority))
        with urllib.request.urlopen(request, context=trusting, timeout=60) as answer:  # noqa: S310
            return json.loads(answer.read() or b"null")

    def compact(self) -> None:
        """Let etcd forget all revisions but the last; watches from before get a 410."""
        at = json.dumps({"key": "AA==", "range_end": "AA==", "count_only": True}).encode()
        revision = self._ask_etcd("kv/range", at)["header"]["revision"]
        asked = {"revision": revision, "physical": True}
        self._ask_etcd("kv/compaction", json.dumps(asked).encode())

    def _ask_etcd(self, call: str, body: bytes) -> Any:
        url = f"http://127.0.0.1:{self._etcd_port}/v3/{call}"
        with urllib.request.urlopen(url, data=body, timeout=60) as answer:
            return json.load(answer)

    def _start_etcd(self) -> None:
        self._etcd_port, peers = free_port(), free_port()
        client, peer = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{peers}"
        self.etcd = self._process(
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        )
        self.etcd.start()
        self._wait_for(self.etcd, lambda: _answers(f"{client}/health"))

    def _start_apiserver(self) -> None:
        self.port = free_port()
        self.kubeconfig.write_text(yaml.safe_dump(self._kubeconfig({"token": ADMIN_TOKEN})))
        self.apiserver = self._process(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--etcd-compaction-interval=0",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--tls-cert-file={self.folder / 'bed.crt'}",
            f"--tls-private-key-file={self.folder / 'bed.key'}",
            f"--client-ca-file={self.folder / 'client-ca.crt'}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--service-account-issuer=https://bed.invalid",
            f"--service-account-key-file={self.folder / 'bed.crt'}",
            f"--service-account-signing-key-file={self.folder / 'bed.key'}",
            "--service-cluster-ip-range=10.96.0.0/16",
            # No address of this machine is written into the cluster.
            "--endpoint-reconciler-type=none",
            "--authorization-mode=RBAC",
            # No controller makes service accounts, and none takes the taints away again.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            *(NATIVE_GROUPS if self._native_groups else ()),
            f"--kubelet-certificate-authority={self.authority}",
            # Names of nodes lead nowhere here.
            "--kubelet-preferred-address-types=InternalIP",
            f"--audit-policy-file={self.folder / 'audit.yaml'}",
            f"--audit-log-path={self.audit_log}",
            "--audit-log-mode=blocking-strict",
            # In MB; with its default of 100 the log would be several files.
            "--audit-log-maxsize=100000",
        )
        self.apiserver.start()
        self.wait_until_ready()

    def _start_kwok(self) -> None:
        port = free_port()
        config = self.folder / "kwok.yaml"
        stages = (build.FOLDER / "stages.yaml").read_text()
        logs = {
            "apiVersion": "kwok.x-k8s.io/v1alpha1",
            "kind": "ClusterLogs",
            "metadata": {"name": "bed"},
            "spec": {"logs": [{"logsFile": str(self.folder / "pod.log")}]},
        }
        config.write_text(f"{stages}---\n{yaml.safe_dump(logs)}")
        kubeconfig = self.write_kubeconfig("kwok", token=KWOK_TOKEN)
        self.kwok = self._process(
            "kwok",
            f"--kubeconfig={kubeconfig}",
            f"--config={config}",
            "--manage-all-nodes",
            "--node-ip=127.0.0.1",
            f"--node-port={port}",
            f"--server-address=127.0.0.1:{port}",
            f"--tls-cert-file={self.folder / 'bed.crt'}",
            f"--tls-private-key-file={self.folder / 'bed.key'}",
            "--node-lease-duration-seconds=0",
        )
        self.kwok.start()
        self._wait_for(self.kwok, lambda: _answers(f"http://127.0.0.1:{port}/healthz"))

    def _process(self, program: str, *arguments: str) -> Process:
        path = self._programs / program
        # kwok looks for settings in the home folder.
        return Process(
            [str(path), *arguments], self.folder / f"{program}.log", HOME=str(self.folder)
        )

    def _kubeconfig(self, user: dict[str, str]) -> dict[str, object]:
        cluster = {"server": self.url, "certificate-authority": str(self.authority)}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "bed",
            "clusters": [{"name": "bed", "cluster": cluster}],
            "users": [{"name": "user", "user": user}],
            "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": "user"}}],
        }

    def _is_ready(self) -> bool:
        trusting = ssl.create_default_context(cafile=str(self.authority))
        request = urllib.request.Request(  # noqa: S310
            f"{self.url}/readyz", headers={"Authorization": f"Bearer {ADMIN_TOKEN}"}
        )
        try:
            with urllib.request.urlopen(request, context=trusting, timeout=5):  # noqa: S310
                return True
        except OSError:
            return False

    def _wait_for(self, process: Process, ready: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE_S
        while not ready():
            if process.ended or time.monotonic() > until:
                raise RuntimeError(f"{process.arguments[0]} did not start:\n{process.last_words()}")
            time.sleep(0.05)


def _try_ports(start: Callable[[], None]) -> None:
    """A port that was free a moment ago may be taken: then others are chosen."""
    for left in (2, 1, 0):
        try:
            start()
            return
        except RuntimeError as error:
            if not left or "address already in use" not in str(error):
                raise


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):  # noqa: S310
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
