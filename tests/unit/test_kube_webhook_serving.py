"""The webhook as a server: TLS, certificates that change, bad requests, and what it needs."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bough.errors import Invalid
from bough.kube_webhook.install import configuration, webhook_objects
from bough.kube_webhook.serving import (
    MOST_BYTES,
    MOST_CONNECTIONS,
    Certificates,
    Options,
    Webhook,
)
from tests.webhook_reviews import Cluster, pod, pod_group, queue, review


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"), "first")


def make_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    crt, key = folder / f"{name}.crt", folder / f"{name}.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", f"/CN={name}"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(crt)]
    subprocess.run(command, check=True, capture_output=True)
    return crt, key


@pytest.fixture
def served(certificate, tmp_path) -> Iterator[tuple[Webhook, Path, Path]]:
    crt, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    crt.write_bytes(certificate[0].read_bytes())
    key.write_bytes(certificate[1].read_bytes())
    webhook = Webhook(Options(str(crt), str(key), "127.0.0.1:0"), Cluster())
    webhook.start()
    yield webhook, crt, key
    webhook.stop()


def ask(port: int, ca: Path, method: str, path: str, body: bytes | None = None, **headers: str):
    context = ssl.create_default_context(cafile=str(ca))
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=30)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_reviews_are_answered_over_tls(served):
    webhook, crt, _ = served

    status, body = ask(webhook.port, crt, "POST", "/validate?timeout=3s", review(pod_group()))

    assert (200, True) == (status, json.loads(body)["response"]["allowed"])
    assert (200, b"ok\n") == ask(webhook.port, crt, "GET", "/healthz")


def test_what_was_answered_is_counted(served):
    webhook, crt, _ = served
    for written in (pod_group(), pod(), pod_group(minMember=-1), queue("a", "later")):
        ask(webhook.port, crt, "POST", "/validate", review(written))

    status, text = ask(webhook.port, crt, "GET", "/metrics")

    assert 200 == status
    values = dict(line.split() for line in text.decode().splitlines() if line[0] != "#")
    assert 0 < float(values.pop("bough_webhook_cpu_seconds_total"))
    counted = {"allowed": "3", "refused": "1", "warned": "2"}
    assert {f"bough_webhook_{name}_total": value for name, value in counted.items()} == values


def test_bad_requests_get_a_sentence(served):
    webhook, crt, _ = served
    lengths = (str(MOST_BYTES + 1), "9" * 5_000)

    assert 404 == ask(webhook.port, crt, "GET", "/")[0]
    assert 404 == ask(webhook.port, crt, "POST", "/", b"{}")[0]
    status, text = ask(webhook.port, crt, "POST", "/validate", b"{}")
    assert (400, True) == (status, text.startswith(b"the body is not an AdmissionReview"))
    for length in lengths:
        wrong = {"Content-Length": length}
        assert 413 == ask(webhook.port, crt, "POST", "/validate", None, **wrong)[0]


def test_a_client_that_says_nothing_keeps_no_other_waiting(served):
    webhook, crt, _ = served
    silent = [socket.create_connection(("127.0.0.1", webhook.port)) for _ in range(20)]
    try:
        assert 200 == ask(webhook.port, crt, "GET", "/healthz")[0]
    finally:
        for each in silent:
            each.close()


def test_connections_that_take_every_place_and_say_nothing_make_room(served):
    webhook, crt, _ = served
    silent = [
        socket.create_connection(("127.0.0.1", webhook.port)) for _ in range(MOST_CONNECTIONS)
    ]
    try:
        for _ in range(3):
            sent = ask(webhook.port, crt, "POST", "/validate", review(pod_group()))
            assert 200 == sent[0]
        # Those that came first made room, and no more of them than was needed.
        silent[0].settimeout(30)
        assert b"" == silent[0].recv(1)
        silent[-1].setblocking(False)
        with pytest.raises(BlockingIOError):
            silent[-1].recv(1)
    finally:
        for each in silent:
            each.close()


def test_a_certificate_that_changes_is_read_again(served, tmp_path):
    webhook, crt, key = served
    new_crt, new_key = make_certificate(tmp_path, "second")
    crt.write_text("half written")
    assert 200 == ask_unverified(webhook.port)
    os.replace(new_crt, crt)
    os.replace(new_key, key)

    assert 200 == ask(webhook.port, crt, "GET", "/healthz")[0]


def test_a_certificate_that_changes_while_it_is_read_first_is_read_again(served, tmp_path):
    _, crt, key = served
    new_crt, new_key = make_certificate(tmp_path, "third")
    read: list[bytes] = []

    class Replaced(Certificates):
        """The files are others as soon as they were read."""

        def _load(self) -> ssl.SSLContext:
            read.append(crt.read_bytes())
            loaded = super()._load()
            if new_crt.exists():
                os.replace(new_crt, crt)
                os.replace(new_key, key)
            return loaded

    made = Replaced(str(crt), str(key))
    made.context()
    made.context()

    assert 2 == len(read)
    assert crt.read_bytes() == read[-1]


def ask_unverified(port: int) -> int:
    """With any certificate: the earlier one stays while the new one cannot be read."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=30)
    connection.request("GET", "/healthz")
    status = connection.getresponse().status
    connection.close()
    return status


def test_files_that_are_no_certificate_are_named(tmp_path, certificate):
    text = tmp_path / "text"
    text.write_text("nothing")

    with pytest.raises(Invalid, match=r"--tls-key: .* cannot be read"):
        Certificates(str(certificate[0]), str(tmp_path / "none"))
    with pytest.raises(Invalid, match="are not a certificate and its key"):
        Certificates(str(text), str(certificate[1]))


# What a cluster needs


def test_an_apiserver_goes_on_where_the_webhook_does_not_answer():
    hooks = configuration({"url": "https://127.0.0.1:1/validate"}, b"ca")["webhooks"]

    assert {("Ignore", "None")} == {(each["failurePolicy"], each["sideEffects"]) for each in hooks}


def test_the_webhook_only_reads():
    roles = [each for each in webhook_objects("ns", "i", b"ca") if each["kind"] == "ClusterRole"]

    verbs = {verb for role in roles for rule in role["rules"] for verb in rule["verbs"]}
    assert {"get", "list"} == verbs
