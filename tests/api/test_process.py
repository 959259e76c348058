"""The program itself: a start, its data, its end; what a second start finds."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import threading
from http.client import HTTPConnection

import httpx
import pytest

from bough.errors import Invalid
from bough.server.settings import check_public_url
from bough.store.migration import latest_revision
from tests.api.house import spec
from tests.api.served import Served, run_commands


@pytest.fixture
def data(tmp_path):
    return tmp_path / "data"


def test_a_server_schedules_answers_and_stops_when_it_is_told_to(data):
    with Served(data, "--gpus", "8", "--namespace", "ns", migrated=False) as server:
        assert stat.S_IMODE(os.stat(data / "admin-token").st_mode) == 0o600
        assert stat.S_IMODE(os.stat(data / "bough.db").st_mode) == 0o600
        short = spec(4).replace("image: i", 'command: [sleep, "1"]')

        made = server.ask("POST", "/api/pool/default/workflow", json={"file": short})

        assert 200 == made.status_code
        assert made.json()["overview"].startswith(f"{server.address}/workflows/job-1")
        path = f"/api/workflow/{made.json()['name']}"
        server.until(lambda: server.get(path)["status"] == "COMPLETED")
        health = {"status": "ok", "schedules": True, "offline": [], "reasons": []}
        assert health == server.get("/health")
        assert 0 == server.stop()
        printed = server.printed()
        assert str(data / "admin-token") in printed
        assert server.token not in printed + server.log


@pytest.mark.served
def test_links_begin_with_what_the_server_is_told_and_never_with_what_a_client_calls_it(data):
    body = {"file": spec(1)}
    headers = {"host": "evil.example:1", "x-forwarded-host": "evil.example"}
    headers |= {"x-forwarded-proto": "https", "forwarded": "host=evil.example"}

    def links(server: Served) -> list[str]:
        shown = headers | {"authorization": f"Bearer {server.token}"}
        url = f"{server.address}/api/pool/default/workflow"
        made = httpx.post(url, json=body, headers=shown, timeout=30).json()
        path = f"{server.address}/api/workflow/{made['name']}"
        service = f"{server.address}/api/configs/service"
        found = [httpx.get(each, headers=shown, timeout=30).json() for each in (path, service)]
        assert "evil" not in json.dumps([made, found])
        return [made["overview"], found[0]["logs"], found[1]["service_base_url"]]

    with Served(data) as server:
        here = server.address
        expected = [f"{here}/workflows/job-1", f"{here}/api/workflow/job-1/logs", here]
        assert expected == links(server)
        server.stop()
    with Served(data, "--public-url", "https://bough.example/gpus/") as server:
        start = "https://bough.example/gpus"
        expected = [f"{start}/workflows/job-2", f"{start}/api/workflow/job-2/logs", start]
        assert expected == links(server)


@pytest.mark.served
def test_who_is_refused_while_still_sending_is_told_why(data):
    body = b'{"file": "' + b"x" * (20 << 20) + b'"}'
    with Served(data) as server:
        for secret, status in ((server.token, 413), ("wrong", 401)) * 2:
            # Like most clients, it sends everything first and then reads.
            headers = {"authorization": f"Bearer {secret}", "connection": "close"}
            connection = HTTPConnection(server.address.removeprefix("http://"), timeout=60)
            connection.request("POST", "/api/pool/default/workflow", body, headers)
            response = connection.getresponse()
            assert status == response.status
            assert json.loads(response.read())["message"]
            connection.close()
        assert 200 == server.ask("GET", "/health").status_code


@pytest.mark.served
def test_an_interrupt_ends_open_streams_and_the_server(data):
    with Served(data) as server:
        seen: list[str] = []
        ready = threading.Event()

        def listen() -> None:
            headers = {"authorization": f"Bearer {server.token}"}
            url = f"{server.address}/api/events"
            with httpx.stream("GET", url, headers=headers, timeout=30) as stream:
                for line in stream.iter_lines():
                    seen.append(line)
                    ready.set()

        listener = threading.Thread(target=listen)
        listener.start()
        assert ready.wait(30)
        body = {"configs": {"team": {}}}
        assert 200 == server.ask("PUT", "/api/configs/pool", json=body).status_code
        server.until(lambda: "event: pool.changed" in seen)

        assert 0 == server.stop(signal.SIGINT)

        listener.join(30)
        assert not listener.is_alive()


@pytest.mark.served
def test_a_second_start_finds_the_example_as_it_was_left(data):
    def picture(server: Served) -> tuple[list[str], list[str], dict[str, int]]:
        listed = server.get("/api/workflow?all_pools=True&all_users=True")["workflows"]
        statuses = [each["status"] for each in listed]
        return (
            sorted(server.get("/api/pool")["pools"]),
            sorted(each["name"] for each in listed),
            {status: statuses.count(status) for status in sorted(set(statuses))},
        )

    with Served(data, "--example") as server:
        first = server.until(
            lambda: (found := picture(server)) and found[2].get("RUNNING") and found
        )
        server.until(lambda: picture(server)[2] == {"PENDING": 3, "RUNNING": 7})
        token = server.token
        first = picture(server)
        server.stop()
    with Served(data, "--example") as server:
        assert token == server.token
        assert first == picture(server)
        assert "vision--training" in first[0]


@pytest.mark.served
def test_one_of_two_servers_on_postgresql_decides_and_the_other_takes_over(postgres, tmp_path):
    url = postgres.make(migrated=False)
    options = ("--database", url, "--gpus", "8")
    with Served(tmp_path / "one", *options) as one:
        assert one.until(lambda: one.get("/health")["schedules"])
        with Served(tmp_path / "one", *options) as two:
            assert not two.get("/health")["schedules"]
            two.ask("POST", "/api/pool/default/workflow", json={"file": spec(4)})
            one.until(lambda: two.get("/api/workflow/job-1")["status"] == "RUNNING")

            one.stop(signal.SIGKILL)

            two.until(lambda: two.get("/health")["schedules"])
            assert "RUNNING" == two.get("/api/workflow/job-1")["status"]
            two.ask("POST", "/api/pool/default/workflow", json={"file": spec(4)})
            two.until(lambda: two.get("/api/workflow/job-2")["status"] == "RUNNING")
            (usage,) = [
                row["resource_usage"]
                for row in two.get("/api/pool_quota?all_pools=True")["node_sets"][0]["pools"]
            ]
            assert ("8", "0") == (usage["quota_used"], usage["total_free"])


@pytest.mark.served
def test_a_port_that_is_taken_is_named_once(data):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ((code, _, errors),) = run_commands(("serve", "--data", str(data), "--port", str(port)))

    assert 10 == code
    assert f"Cannot listen on 127.0.0.1:{port}: Address already in use.\n" in errors


def test_what_cannot_be_started_is_said_in_a_sentence(data, tmp_path):
    (tmp_path / "file").write_text("")
    cases = (
        (("--database", "mysql://x/y"), "The database mysql is not supported"),
        (("--data", str(tmp_path / "file" / "data")), "cannot be the data folder"),
        (("--namespace", "a b"), 'Namespace name "a b" is not valid!'),
        (("--nodes", str(tmp_path / "none.yaml")), "no such file or folder"),
        (("--public-url", "ftp://x"), "--public-url cannot be 'ftp://x': it must begin with http"),
        (("--connections", "3"), "3 is not in the range 32<=x<=100000"),
        (("--host", "203.0.113.1", "--port", "1"), "Cannot listen on 203.0.113.1:1"),
    )
    ended = run_commands(*(("serve", "--data", str(data), *options) for options, _ in cases))

    assert len(cases) == len(ended)
    for (_, expected), (code, _, errors) in zip(cases, ended, strict=True):
        assert (10 if "listen" in expected else 2) == code, errors
        assert expected in errors
        assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("http://a@x", "it can have a path, and neither a user nor a query"),
        ("http://x/?a=b", "it can have a path, and neither a user nor a query"),
        ("http://x y", "it has characters that no address has"),
        ("http://x/\r\nSet-Cookie:", "it has characters that no address has"),
        ("https:///x", "it must name a host"),
        ("bough.example", "it must begin with http:// or https://"),
        ("http://x:99999", "Port out of range 0-65535"),
        ("http://[::1", "Invalid IPv6 URL"),
    ],
)
def test_what_links_cannot_begin_with_is_refused(text, reason):
    with pytest.raises(Invalid) as refused:
        check_public_url(text)

    assert f"--public-url cannot be {text!r}: {reason}." == refused.value.message


def test_the_database_can_be_brought_up_to_date_by_itself(data):
    command = ("db", "upgrade", "--data", str(data))

    ended = run_commands(command, command)

    assert [(0, f"The database has revision {latest_revision()}.\n")] * 2 == [
        (code, said) for code, said, _ in ended
    ]


@pytest.mark.served
def test_the_key_of_credentials_is_rotated_while_the_server_runs_and_its_loss_is_said(
    data, tmp_path
):
    key = tmp_path / "key"
    with Served(data, "--key-file", str(key)) as server:
        body = {"type": "GENERIC", "payload": {"password": "hunter2"}}
        assert 200 == server.ask("POST", "/api/credentials/hub", json=body).status_code
        before = key.read_text()

        rotate = ("admin", "rotate-key", "--data", str(data), "--key-file", str(key), "-t", "json")
        ((_, said, _),) = run_commands(rotate)

        assert 1 == json.loads(said)["credentials"]
        assert before != key.read_text()
        assert 200 == server.ask("POST", "/api/credentials/other", json=body).status_code
        assert 0 == server.stop()
    assert b"hunter2" not in (data / "bough.db").read_bytes()
    key.chmod(0o644)
    readable, lost, nowhere = run_commands(
        ("serve", "--data", str(data), "--key-file", str(key), "--port", "0"),
        ("serve", "--data", str(data), "--port", "0"),
        ("admin", "rotate-key", "--data", str(tmp_path / "nowhere")),
    )
    assert (2, True) == (readable[0], "can be read or written by others" in readable[2])
    assert f"The key file {data / 'credential-key'} does not exist" in lost[2]
    assert "is not a server's data folder" in nowhere[2]
    assert not (tmp_path / "nowhere").exists()
