"""Access to a cluster, as kubeconfig files, plugins and service accounts say it."""

from __future__ import annotations

import base64
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from bough.errors import BoughError, Invalid, Unauthenticated
from bough.kube.access import Access, KubeCredential, read_address
from bough.kube.kubeconfig import find_access
from tests.kubernetes.bed.certificates import write_certificates, write_client_certificate

SKIPPED = "insecure-skip-tls-verify"
CLUSTER = {"server": "https://127.0.0.1:6443"}


def write_config(
    path: Path,
    user: dict[str, Any] | None = None,
    cluster: dict[str, Any] | None = None,
    name: str = "here",
) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "current-context": name,
        "clusters": [{"name": name, "cluster": cluster or CLUSTER}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": name, "namespace": f"ns-{name}"}}
        ],
    }
    path.write_text(yaml.safe_dump(config))
    return path


def access_by(path: Path, context: str | None = None) -> Access:
    return find_access(str(path), context, {})


def refusal_of(path: Path, context: str | None = None) -> str:
    with pytest.raises(Invalid) as raised:
        access_by(path, context)
    return raised.value.message.replace(str(path), "FILE")


def test_the_current_context_says_where_and_who(tmp_path: Path) -> None:
    access = access_by(write_config(tmp_path / "config", {"token": "secret"}))

    assert ("127.0.0.1", 6443) == (access.address.hostname, access.address.port)
    assert KubeCredential("secret") == access.credentials.credential()
    assert "ns-here" == access.namespace


def test_of_several_files_the_first_that_says_something_counts(tmp_path: Path) -> None:
    first = write_config(tmp_path / "first", {"token": "one"}, name="a")
    second = write_config(tmp_path / "second", {"token": "two"}, name="b")
    environment = {"KUBECONFIG": f"{tmp_path}/missing:{first}:{second}"}

    chosen = [find_access(None, context, environment) for context in (None, "b")]

    tokens = [access.credentials.credential().token for access in chosen]
    assert ["one", "two"] == tokens


def test_a_file_that_is_named_counts_more_than_the_environment(tmp_path: Path) -> None:
    named = write_config(tmp_path / "named", {"token": "named"})
    other = write_config(tmp_path / "other", {"token": "other"})

    access = find_access(str(named), None, {"KUBECONFIG": str(other)})

    assert "named" == access.credentials.credential().token


def test_without_a_word_the_file_in_the_home_folder_counts(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    write_config(tmp_path / ".kube" / "config", {"token": "home"})

    access = find_access(None, None, {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.0.0.1"})

    assert "home" == access.credentials.credential().token


def test_paths_start_at_the_file_that_names_them(tmp_path: Path) -> None:
    write_client_certificate(tmp_path, "me", "us")
    (tmp_path / "token").write_text("of a file\n")
    user = {"tokenFile": "token", "client-certificate": "me.crt", "client-key": "me.key"}
    cluster = {**CLUSTER, "certificate-authority": "me-ca.crt"}
    access = access_by(write_config(tmp_path / "config", user, cluster))

    credential = access.credentials.credential()

    assert "of a file" == credential.token
    assert (tmp_path / "me.crt").read_text() == credential.certificate
    assert access.context(credential) is access.context(credential)


def test_certificates_may_stand_in_the_file_itself(tmp_path: Path) -> None:
    write_client_certificate(tmp_path, "me", "us")
    data = {
        name: base64.b64encode((tmp_path / name).read_bytes()).decode()
        for name in ("me.crt", "me.key", "me-ca.crt")
    }
    user = {"client-certificate-data": data["me.crt"], "client-key-data": data["me.key"]}
    cluster = {**CLUSTER, "certificate-authority-data": data["me-ca.crt"]}
    access = access_by(write_config(tmp_path / "config", user, cluster))

    credential = access.credentials.credential()

    assert (tmp_path / "me.key").read_text() == credential.key
    assert access.context(credential) is not None


def test_a_key_of_another_certificate_is_refused(tmp_path: Path) -> None:
    write_client_certificate(tmp_path, "me", "us")
    write_certificates(tmp_path, "other")
    user = {"client-certificate": "me.crt", "client-key": "other.key"}
    access = access_by(write_config(tmp_path / "config", user))

    with pytest.raises(Invalid, match="client-certificate and client-key"):
        access.context(access.credentials.credential())


def test_an_authority_without_certificates_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("nothing")
    access = access_by(
        write_config(tmp_path / "config", {}, {**CLUSTER, "certificate-authority": "ca"})
    )

    with pytest.raises(Invalid, match="certificate-authority: no certificates"):
        access.context(KubeCredential())


@pytest.mark.parametrize(
    ("cluster", "user", "message"),
    [
        (
            {**CLUSTER, SKIPPED: True},
            {},
            f"FILE: clusters[here].{SKIPPED}: true is refused; Bough always verifies the apiserver",
        ),
        (
            {**CLUSTER, "proxy-url": "http://proxy:1"},
            {},
            "FILE: clusters[here].proxy-url: http://proxy:1: proxies are not supported",
        ),
        (
            {"certificate-authority": "x"},
            {},
            "FILE: clusters[here].server: missing; it is an address such as https://10.0.0.1:6443",
        ),
        (
            CLUSTER,
            {"username": "me", "password": "secret"},
            "FILE: users[here].username: Kubernetes takes no passwords; use a token",
        ),
        (
            CLUSTER,
            {"auth-provider": {"name": "gcp"}},
            "FILE: users[here].auth-provider: was removed from Kubernetes; use exec",
        ),
        (CLUSTER, {"as": "root"}, "FILE: users[here].as: root: Bough does not act as another user"),
        (
            CLUSTER,
            {"client-certificate-data": "e30="},
            "FILE: users[here]: client-certificate and client-key belong together; one is missing",
        ),
        (
            CLUSTER,
            {"client-key-data": "%"},
            "FILE: users[here]: a field that ends in -data is not base64-encoded PEM",
        ),
        (
            {"server": "http://10.0.0.1:80"},
            {},
            "server: http://10.0.0.1:80 is not encrypted; only https is, beyond the loopback",
        ),
    ],
)
def test_what_is_not_done_is_refused_by_name(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], message: str
) -> None:
    assert message == refusal_of(write_config(tmp_path / "config", user, cluster))


def test_a_context_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    path = write_config(tmp_path / "config")

    assert "FILE: there is no context elsewhere, only here" == refusal_of(path, "elsewhere")


@pytest.mark.parametrize("text", ["[", "3", "clusters: 7", "users: [{name: a}]", "\x00"])
def test_a_file_that_is_no_kubeconfig_is_said_to_be_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)

    assert refusal_of(path).startswith(("FILE: no YAML: ", "FILE: no kubeconfig: "))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "cannot read FILE: No such file or directory" == refusal_of(tmp_path / "config")


@pytest.mark.parametrize("server", ["", "10.0.0.1", "ftp://a", "https://", "https://a:b"])
def test_an_address_that_is_none_is_named(server: str) -> None:
    with pytest.raises(Invalid, match="is not an address such as"):
        read_address(server)


def test_where_nothing_is_known_all_that_was_looked_at_is_said(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="KUBECONFIG is not set"):
        find_access(None, None, {"HOME": str(tmp_path)})


def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    for name, text in (("token", "of a pod"), ("ca.crt", ""), ("namespace", "team")):
        (tmp_path / name).write_text(text)
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}

    access = find_access(None, None, environment, tmp_path)

    assert ("https://10.0.0.1:6443", "team") == (access.address.geturl(), access.namespace)
    assert "of a pod" == access.credentials.credential().token


def write_plugin(folder: Path, script: str) -> dict[str, Any]:
    path = folder / "plugin"
    path.write_text(f"#!/bin/sh\necho run >> {folder}/runs\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin"}


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text().splitlines())


def printed(**status: str) -> str:
    return f"echo '{json.dumps({'status': status})}'"


def test_a_plugin_is_asked_once_while_its_token_is_valid(tmp_path: Path) -> None:
    plugin = write_plugin(tmp_path, printed(token="t", expirationTimestamp="2999-01-01T00:00:00Z"))
    source = access_by(write_config(tmp_path / "config", {"exec": plugin})).credentials

    assert [KubeCredential("t")] * 3 == [source.credential() for _ in range(3)]
    assert 1 == runs(tmp_path)


def test_a_plugin_is_asked_again_when_its_token_expired_or_was_refused(tmp_path: Path) -> None:
    plugin = write_plugin(tmp_path, printed(token="t", expirationTimestamp="2001-01-01T00:00:00Z"))
    source = access_by(write_config(tmp_path / "config", {"exec": plugin})).credentials
    first = source.credential()
    source.credential()
    assert 2 == runs(tmp_path)

    write_plugin(tmp_path, printed(token="t"))
    source.credential()
    assert source.refused(first)
    source.credential()
    assert 4 == runs(tmp_path)


def test_a_plugin_is_told_what_it_may_need(tmp_path: Path) -> None:
    plugin = write_plugin(
        tmp_path, f'echo "$KUBERNETES_EXEC_INFO" > {tmp_path}/told; ' + printed(token="$1")
    )
    plugin |= {"provideClusterInfo": True, "args": ["x"], "env": [{"name": "A", "value": "b"}]}
    source = access_by(write_config(tmp_path / "config", {"exec": plugin})).credentials

    source.credential()

    told = json.loads((tmp_path / "told").read_text())
    assert {"interactive": False, "cluster": CLUSTER} == told["spec"]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo no login >&2; exit 3", "./plugin ended with code 3: no login"),
        ("echo hello", "./plugin printed no ExecCredential: "),
        (printed(), "./plugin printed an ExecCredential without a token or a certificate"),
    ],
)
def test_a_plugin_that_fails_is_named_with_its_words(
    tmp_path: Path, script: str, message: str
) -> None:
    source = access_by(
        write_config(tmp_path / "config", {"exec": write_plugin(tmp_path, script)})
    ).credentials

    with pytest.raises(Unauthenticated) as raised:
        source.credential()

    assert f"{tmp_path}/config: users[here].exec: {message}" in raised.value.message


def test_a_plugin_that_is_not_installed_says_how_to(tmp_path: Path) -> None:
    plugin = {"command": "bough-no-such-plugin", "installHint": "install it"}
    source = access_by(write_config(tmp_path / "config", {"exec": plugin})).credentials

    with pytest.raises(BoughError, match="cannot be run: No such file") as raised:
        source.credential()

    assert "install it" == raised.value.hint


def test_a_token_file_that_is_gone_is_named(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a")
    access = access_by(write_config(tmp_path / "config", {"tokenFile": "token"}))
    os.remove(tmp_path / "token")

    with pytest.raises(Invalid, match=r"cannot read .*/token: No such file"):
        access.credentials.credential()
