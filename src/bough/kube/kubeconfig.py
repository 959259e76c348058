"""Access from a kubeconfig file, or from the service account of the pod that we run in.

What a file asks for and Bough does not support is refused by name, not ignored: unverified
connections, passwords, auth providers that Kubernetes has removed, proxies.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from bough.errors import Invalid
from bough.kube.access import Access, CredentialSource, FixedCredential, Text
from bough.kube.exec_plugin import ExecPlugin, PluginCredential

#: Where the kubelet mounts the service account of a pod.
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class _Kebab(msgspec.Struct, rename="kebab"):
    pass


class _Cluster(_Kebab):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    proxy_url: str = ""


class _User(_Kebab):
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    username: str = ""
    password: str = ""
    auth_provider: dict[str, Any] | None = None
    exec: ExecPlugin | None = None
    act_as: str = msgspec.field(default="", name="as")


class _Context(_Kebab):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _Named(msgspec.Struct):
    name: str


class _NamedCluster(_Named):
    cluster: _Cluster


class _NamedUser(_Named):
    user: _User


class _NamedContext(_Named):
    context: _Context


class _KubeconfigFile(_Kebab):
    current_context: str = ""
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None


class _Merged:
    """Several files as one; if several define a name, the first wins."""

    def __init__(self) -> None:
        self.current_context = ""
        self.clusters: dict[str, tuple[Path, _Cluster]] = {}
        self.users: dict[str, tuple[Path, _User]] = {}
        self.contexts: dict[str, _Context] = {}

    def add(self, path: Path) -> None:
        """Add the contents of a file; relative paths in it start at its folder."""
        file = _read(path)
        self.current_context = self.current_context or file.current_context
        for cluster in file.clusters or []:
            self.clusters.setdefault(cluster.name, (path, cluster.cluster))
        for user in file.users or []:
            self.users.setdefault(user.name, (path, user.user))
        for context in file.contexts or []:
            self.contexts.setdefault(context.name, context.context)


def find_access(
    kubeconfig: str | None = None,
    context: str | None = None,
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Access:
    """Access from the named file, from KUBECONFIG, from ~/.kube/config, or as a pod."""
    named = kubeconfig or environment.get("KUBECONFIG")
    if named:
        paths = [Path(path) for path in named.split(":" if not kubeconfig else "\0") if path]
        # Like kubectl: of several files, those that do not exist are skipped.
        present = [path for path in paths if path.exists()] or paths[:1]
        return read_access(present, context)
    home = Path(environment.get("HOME", "")) / ".kube" / "config"
    if home.is_file():
        return read_access([home], context)
    if environment.get("KUBERNETES_SERVICE_HOST"):
        if context:
            raise Invalid(f"context {context}: there is no kubeconfig file that could know it")
        return pod_access(environment, service_account)
    raise Invalid(
        "no way to a cluster is known: no kubeconfig file was named, KUBECONFIG is not set, there "
        f"is no {home}, and this is no pod"
    )


def pod_access(environment: Mapping[str, str], service_account: Path = SERVICE_ACCOUNT) -> Access:
    """Access with the service account of the pod that we run in."""
    host, port = (environment.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
    authority = Text(path=str(service_account / "ca.crt"))
    token = Text(path=str(service_account / "token"))
    token.read()
    namespace = Text(path=str(service_account / "namespace")).read().strip()
    host = f"[{host}]" if ":" in host else host
    server = f"https://{host}:{port or '443'}"
    return Access(server, FixedCredential(token), authority, namespace=namespace)


def read_access(paths: list[Path], context: str | None = None) -> Access:
    """Access from kubeconfig files and one of their contexts."""
    merged = _Merged()
    for path in paths:
        merged.add(path)
    where = ", ".join(map(str, paths))
    name = context or merged.current_context
    if not name:
        raise Invalid(f"{where}: current-context is not set; choose one of {_known(merged)}")
    if name not in merged.contexts:
        raise Invalid(f"{where}: there is no context {name}, only {_known(merged)}")
    chosen = merged.contexts[name]
    if chosen.cluster not in merged.clusters:
        raise Invalid(f"{where}: contexts[{name}].cluster: there is no cluster {chosen.cluster!r}")
    if chosen.user and chosen.user not in merged.users:
        raise Invalid(f"{where}: contexts[{name}].user: there is no user {chosen.user!r}")
    path, cluster = merged.clusters[chosen.cluster]
    at = f"{path}: clusters[{chosen.cluster}]"
    _refuse_cluster(at, cluster)
    authority = _text(path, cluster.certificate_authority, cluster.certificate_authority_data, at)
    user_path, user = merged.users.get(chosen.user, (path, _User()))
    _refuse_user(f"{user_path}: users[{chosen.user}]", user)
    return Access(
        cluster.server,
        _credentials(user_path, chosen.user, user, cluster),
        authority,
        tls_server_name=cluster.tls_server_name,
        namespace=chosen.namespace or "default",
    )


def _read(path: Path) -> _KubeconfigFile:
    try:
        said = yaml.load(path.read_bytes(), yaml.CSafeLoader)
    except OSError as error:
        raise Invalid(f"cannot read {path}: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise Invalid(f"{path}: no YAML: {str(error).splitlines()[0]}") from None
    except ValueError as error:
        raise Invalid(f"{path}: no YAML: {error}") from None
    try:
        return msgspec.convert(said if said is not None else {}, _KubeconfigFile)
    except msgspec.ValidationError as error:
        raise Invalid(f"{path}: no kubeconfig: {error}") from None


def _refuse_cluster(at: str, cluster: _Cluster) -> None:
    if not cluster.server:
        raise Invalid(f"{at}.server: missing; it is an address such as https://10.0.0.1:6443")
    if cluster.insecure_skip_tls_verify:
        raise Invalid(
            f"{at}.insecure-skip-tls-verify: true is refused; Bough always verifies the apiserver",
            hint="name its authority in certificate-authority, or the name that its certificate "
            "has in tls-server-name",
        )
    if cluster.proxy_url:
        raise Invalid(f"{at}.proxy-url: {cluster.proxy_url}: proxies are not supported")


def _refuse_user(at: str, user: _User) -> None:
    if user.username or user.password:
        raise Invalid(f"{at}.username: Kubernetes takes no passwords; use a token")
    if user.auth_provider is not None:
        raise Invalid(f"{at}.auth-provider: was removed from Kubernetes; use exec")
    if user.act_as:
        raise Invalid(f"{at}.as: {user.act_as}: Bough does not act as another user")


def _credentials(path: Path, name: str, user: _User, cluster: _Cluster) -> CredentialSource:
    at = f"{path}: users[{name}]"
    if user.exec is not None:
        shown = {
            "server": cluster.server,
            "tls-server-name": cluster.tls_server_name,
            "certificate-authority-data": cluster.certificate_authority_data,
        }
        told = {key: value for key, value in shown.items() if value}
        return PluginCredential(user.exec, f"{at}.exec", path.parent, told)
    # Like kubectl: a token file takes precedence over a token in the kubeconfig file itself.
    token_file = str(path.parent / user.token_file) if user.token_file else ""
    token = Text(user.token, token_file)
    certificate = _text(path, user.client_certificate, user.client_certificate_data, at)
    key = _text(path, user.client_key, user.client_key_data, at)
    if (certificate is None) != (key is None):
        raise Invalid(f"{at}: client-certificate and client-key belong together; one is missing")
    source = FixedCredential(token, certificate, key)
    source.credential()
    return source


def _text(path: Path, file: str, data: str, at: str) -> Text | None:
    """The contents of a file, or base64 data in the kubeconfig itself, which takes precedence."""
    if data:
        try:
            return Text(base64.b64decode(data, validate=True).decode("utf-8"))
        except (binascii.Error, UnicodeDecodeError, ValueError):
            raise Invalid(f"{at}: a field that ends in -data is not base64-encoded PEM") from None
    return Text(path=str(path.parent / file)) if file else None


def _known(merged: _Merged) -> str:
    return ", ".join(sorted(merged.contexts)) or "none that is there"
