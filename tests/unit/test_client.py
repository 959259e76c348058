"""The client asks as a server expects, and says in words what goes wrong."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

import bough
from bough import errors
from bough.api.system import EventLine
from bough.client import Client, Login, find_login, forget_login, store_login
from tests.answer_types import complete, least
from tests.answering import Answering

pytestmark = pytest.mark.usefixtures("login_file")


def error_of(server: Answering, status: int, body: object) -> errors.BoughError:
    server.answer("GET", "/api/version", body, status)
    with pytest.raises(errors.BoughError) as caught:
        Client(server.address).version()
    return caught.value


# Asking


def test_the_client_is_exported_by_the_package():
    assert bough.Client is Client
    with pytest.raises(AttributeError):
        _ = bough.nothing


def test_importing_the_package_imports_no_client():
    code = "import sys, bough; print('bough.client' in sys.modules, 'socket' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert b"False False\n" == result.stdout


def test_a_request_says_who_asks_and_what_program(server: Answering):
    server.answer("GET", "/api/version", {"major": "1"})
    Client(server.address + "/", "secret").version()
    headers = server.last.headers
    assert "Bearer secret" == headers["authorization"]
    assert "application/json" == headers["content-type"]
    assert headers["user-agent"].startswith("bough/")


def test_a_server_that_trusts_names_is_told_the_name(server: Answering):
    server.answer("GET", "/api/version", {})
    Client(server.address, user="ann").version()
    assert ("ann", None) == (
        server.last.headers["x-osmo-user"],
        server.last.headers.get("authorization"),
    )


def test_a_server_may_live_below_a_path(server: Answering):
    server.answer("GET", "/gpu/api/version", {"major": "1", "minor": "2", "revision": "3"})
    assert "1" == Client(f"{server.address}/gpu/").version().major


@pytest.mark.parametrize("address", ["", "ftp://host", "http://", "http://host:x"])
def test_what_is_no_address_is_refused(address: str):
    with pytest.raises(errors.Invalid):
        Client(address)


def test_a_token_cannot_carry_other_headers():
    with pytest.raises(errors.Invalid):
        Client("http://127.0.0.1:1", "a\r\nx-osmo-user: admin")


def test_names_cannot_leave_their_place_in_the_path(server: Answering):
    answer = complete("GET", "/api/configs/pool/x", {"name": "x"})
    server.answer("GET", "/api/configs/pool/a/../b?c=1", answer)
    assert "x" == Client(server.address).pools.get("a/../b?c=1").name


def test_lists_are_repeated_and_booleans_are_words(server: Answering):
    server.answer("GET", "/api/pool_quota", {"node_sets": []})
    client = Client(server.address)
    client.pools.quotas()
    assert {"all_pools": ["true"]} == server.last.query
    client.pools.quotas(["a", "b"])
    assert {"all_pools": ["false"], "pools": ["a", "b"]} == server.last.query


CALLS = [
    (lambda c: c.pools.create("p", {"backend": "x"}), "POST", "/api/configs/pool"),
    (lambda c: c.pools.put("p", {}), "PUT", "/api/configs/pool/p"),
    (lambda c: c.pools.update("p", {}), "PATCH", "/api/configs/pool/p"),
    (lambda c: c.pools.rename("p", "q"), "PUT", "/api/configs/pool/p/rename"),
    (lambda c: c.pools.delete("p"), "DELETE", "/api/configs/pool/p"),
    (lambda c: c.subpools.create("p", "a", 3), "POST", "/api/configs/pool/p/subpool"),
    (lambda c: c.subpools.update("p", "a", 3), "PATCH", "/api/configs/pool/p/subpool/a"),
    (lambda c: c.subpools.delete("p", "a"), "DELETE", "/api/configs/pool/p/subpool/a"),
    (lambda c: c.subpools.get("p", "a"), "GET", "/api/configs/pool/p/subpool/a"),
    (lambda c: c.cohorts.create("x", {}), "POST", "/api/configs/cohort"),
    (lambda c: c.cohorts.move("x", None, plan=True), "PATCH", "/api/configs/cohort/x"),
    (lambda c: c.cohorts.delete("x"), "DELETE", "/api/configs/cohort/x"),
    (lambda c: c.resources.list(), "GET", "/api/resources"),
    (lambda c: c.resources.get("n"), "GET", "/api/resources/n"),
    (lambda c: c.workflows.submit("p", "text"), "POST", "/api/pool/p/workflow"),
    (lambda c: c.workflows.submit_again("p", "w-1"), "POST", "/api/pool/p/workflow"),
    (lambda c: c.workflows.restart("p", "w-1"), "POST", "/api/pool/p/workflow/w-1/restart"),
    (lambda c: c.workflows.list(), "GET", "/api/workflow"),
    (lambda c: c.workflows.get("w-1"), "GET", "/api/workflow/w-1"),
    (lambda c: c.workflows.cancel("w-1"), "POST", "/api/workflow/w-1/cancel"),
    (lambda c: c.workflows.why("w-1"), "GET", "/api/workflow/w-1/why"),
    (lambda c: c.workflows.tag("w-1", add=["x"]), "POST", "/api/workflow/w-1/tag"),
    (lambda c: c.tasks.list(), "GET", "/api/task"),
    (lambda c: c.configs.get("WORKFLOW"), "GET", "/api/configs/workflow"),
    (lambda c: c.configs.update("WORKFLOW", {}), "PATCH", "/api/configs/workflow"),
    (lambda c: c.configs.update("ROLE", {}, "r"), "PUT", "/api/configs/role/r"),
    (lambda c: c.configs.update("COHORT", {}, "x"), "PATCH", "/api/configs/cohort/x"),
    (lambda c: c.configs.delete("ROLE", "r"), "DELETE", "/api/configs/role/r"),
    (lambda c: c.configs.diff("POOL", 1, 2), "GET", "/api/configs/diff"),
    (lambda c: c.configs.rollback("POOL", 1), "POST", "/api/configs/history/rollback"),
    (lambda c: c.profile.get(), "GET", "/api/profile/settings"),
    (lambda c: c.credentials.set("x", "DATA", {"a": "b"}), "POST", "/api/credentials/x"),
    (lambda c: c.credentials.delete("x"), "DELETE", "/api/credentials/x"),
    (lambda c: c.tokens.list(), "GET", "/api/auth/access_token"),
    (lambda c: c.tokens.list("ann"), "GET", "/api/auth/user/ann/access_token"),
    (lambda c: c.tokens.create("t"), "POST", "/api/auth/access_token/t"),
    (lambda c: c.tokens.delete("t", "ann"), "DELETE", "/api/auth/user/ann/access_token/t"),
    (lambda c: c.tokens.roles("t"), "GET", "/api/auth/access_token/t/roles"),
    (lambda c: c.users.get("ann"), "GET", "/api/auth/user/ann"),
    (lambda c: c.users.create("ann"), "POST", "/api/auth/user"),
    (lambda c: c.users.update("ann", add=["r"]), "PATCH", "/api/auth/user/ann"),
    (lambda c: c.users.delete("ann"), "DELETE", "/api/auth/user/ann"),
    (lambda c: c.history.page("1d"), "GET", "/api/history"),
    (lambda c: c.health(), "GET", "/health"),
]


@pytest.mark.parametrize(("call", "method", "path"), CALLS, ids=[f"{m} {p}" for _, m, p in CALLS])
def test_every_call_goes_to_its_endpoint(server: Answering, call, method: str, path: str):
    sent = least(method, path)
    server.answer(method, path, sent)
    found = call(Client(server.address))
    assert sent == msgspec.to_builtins(found)
    assert [f"{method} {path}"] == server.requests


@pytest.mark.parametrize(
    ("path", "call"),
    [
        ("/api/profile/settings", lambda c: c.profile.set({"pool": "p"})),
        ("/api/app/user/x", lambda c: c.apps.create("x", "what it does", "workflow: {}")),
    ],
)
def test_what_is_answered_with_nothing_is_read_afterwards(server: Answering, path: str, call):
    server.answer("POST", path, least("POST", path))
    read = least("GET", path)
    server.answer("GET", path, read)
    found = msgspec.to_builtins(call(Client(server.address)))
    assert read.get("profile", read) == found
    assert [f"POST {path}", f"GET {path}"] == server.requests


LISTS = [
    (lambda c: c.subpools.list("p"), "/api/configs/pool/p/subpool", {"subpools": [{}]}),
    (
        lambda c: c.subpools.history("p", "a"),
        "/api/configs/pool/p/subpool/a/history",
        {"configs": [{}]},
    ),
    (lambda c: c.cohorts.list(), "/api/configs/cohort", [{}]),
    (lambda c: c.queues.list(), "/api/queues", [{}]),
    (lambda c: c.configs.history(), "/api/configs/history", {"configs": [{}]}),
    (lambda c: c.audit.list(), "/api/audit", {"entries": [{}]}),
    (lambda c: c.credentials.list(), "/api/credentials", {"credentials": [{}]}),
    (lambda c: c.users.list(), "/api/auth/user", {"users": [{}]}),
]


@pytest.mark.parametrize(("call", "path", "body"), LISTS, ids=[path for _, path, _ in LISTS])
def test_lists_come_without_their_wrapping(server: Answering, call, path: str, body: object):
    server.answer("GET", path, body)
    found = call(Client(server.address))
    assert (list, 1) == (type(found), len(found))


def test_a_submission_has_the_body_and_the_query_that_servers_know(server: Answering):
    server.answer("POST", "/api/pool/team--a/workflow", {"name": "w-1"})
    Client(server.address).workflows.submit(
        "team--a",
        "workflow: {}",
        priority="LOW",
        variables=["n=1"],
        string_variables=["s=2"],
        query={"label": ["k=v"], "dry_run": True},
    )
    assert {
        "file": "workflow: {}",
        "set_variables": ["n=1"],
        "set_string_variables": ["s=2"],
        "uploaded_templated_spec": None,
    } == server.last.body
    assert {"priority": ["LOW"], "label": ["k=v"], "dry_run": ["true"]} == server.last.query


def test_an_earlier_workflow_is_submitted_again_without_a_body(server: Answering):
    server.answer("POST", "/api/pool/team/workflow", {"name": "w-2"})
    Client(server.address).workflows.submit_again("team", "w-1")
    assert ({"workflow_id": ["w-1"]}, None) == (server.last.query, server.last.body)


# What goes wrong


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.Invalid),
        (401, errors.Unauthenticated),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (418, errors.Invalid),
        (422, errors.Invalid),
        (429, errors.Throttled),
        (500, errors.Broken),
        (502, errors.Unavailable),
        (503, errors.Unavailable),
    ],
)
def test_a_status_is_an_error_of_its_kind(server: Answering, status: int, kind: type):
    error = error_of(server, status, {"message": "No.", "error_code": "USER"})
    assert (kind, "No.", status) == (type(error), error.message, error.http_status)


def test_an_error_keeps_hint_and_details(server: Answering):
    body = {"message": "No.", "error_code": "USER", "hint": "do this", "details": ["a", "b"]}
    error = error_of(server, 409, body)
    assert ("do this", ("a", "b")) == (error.hint, error.details)


def test_a_refused_workflow_is_named(server: Answering):
    body = {"message": "Too many.", "error_code": "USAGE", "workflow_id": "w-3"}
    error = error_of(server, 400, body)
    assert isinstance(error, errors.Refused)
    assert ("Too many.", "w-3") == (error.message, error.workflow_id)


def test_a_refused_workflow_keeps_what_was_said_about_it(server: Answering):
    body = {"message": "No.", "error_code": "RESOURCE", "details": ["n1: small"], "hint": "less"}
    error = error_of(server, 400, body)
    assert isinstance(error, errors.Refused)
    assert (("n1: small",), "less") == (error.details, error.hint)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"access denied", "access denied"),
        (b"", "The server answered with status 403."),
        (b"[1]", "[1]"),
    ],
)
def test_an_error_without_a_document_is_its_text(server: Answering, body: bytes, message: str):
    assert message == error_of(server, 403, body).message


def test_an_answer_that_is_no_json_is_from_something_else(server: Answering):
    error = error_of(server, 200, b"<html>")
    assert isinstance(error, errors.Unavailable)
    assert "is not Bough" in error.message


def test_an_answer_that_lacks_a_field_is_named(server: Answering):
    server.answer("GET", "/api/version", b'{"major": "1", "minor": "2"}')
    with pytest.raises(errors.Unavailable) as caught:
        Client(server.address).version()
    assert "missing required field `revision`" in caught.value.message
    assert "bough version" in caught.value.hint


def test_a_server_that_is_not_there_is_said_in_words():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(errors.Unavailable) as caught:
        Client(address).version()
    assert f"Cannot reach the server at {address}: Connection refused." == caught.value.message
    assert "bough serve" in caught.value.hint


def test_a_server_that_says_nothing_is_given_up():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(errors.Unavailable) as caught:
            Client(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.05).version()
    assert "did not answer in 0.05 s" in caught.value.message


def test_reading_is_tried_again_when_the_connection_breaks(server: Answering):
    server.answer("GET", "/api/version", status=0)
    server.answer("GET", "/api/version", {"major": "1"})
    assert "1" == Client(server.address).version().major
    assert 2 == len(server.asked)


def test_writing_is_never_tried_again(server: Answering):
    server.answer("POST", "/api/pool/team/workflow", status=0)
    with pytest.raises(errors.Unavailable):
        Client(server.address).workflows.submit("team", "text")
    assert 1 == len(server.asked)


def test_an_error_of_the_server_is_not_tried_again(server: Answering):
    error_of(server, 503, {"message": "Not now.", "error_code": "DATABASE"})
    assert 1 == len(server.asked)


# Streams


def stream(parts: list[bytes]) -> tuple[socket.socket, str]:
    """A server for one connection that sends a head and then parts of a chunked body."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(head + body)

    threading.Thread(target=serve, daemon=True).start()
    return listening, address


def test_lines_are_whole_however_they_are_cut():
    listening, address = stream(
        [b"one\ntw", "o \N{SNOWMAN}".encode()[:3], "\N{SNOWMAN}\n".encode()[1:]]
    )
    with listening:
        assert ["one\n", "two \N{SNOWMAN}\n"] == list(Client(address).workflows.logs("w-1"))


def test_what_is_no_text_is_shown_as_far_as_it_is():
    listening, address = stream([b"a\xffb\n"])
    with listening:
        assert ["a\N{REPLACEMENT CHARACTER}b\n"] == list(Client(address).workflows.logs("w-1"))


def test_an_error_before_a_stream_is_an_error(server: Answering):
    with pytest.raises(errors.NotFound):
        Client(server.address).workflows.logs("w-1")


def test_logs_are_asked_for_as_servers_expect(server: Answering):
    server.answer("GET", "/api/workflow/w-1/error_logs", b"")
    found = Client(server.address).workflows.logs(
        "w-1", task="t", retry=2, last_lines=5, errors=True
    )
    assert [] == list(found)
    assert {"task_name": ["t"], "retry_id": ["2"], "last_n_lines": ["5"]} == server.last.query


def test_events_are_read_from_their_frames(server: Answering):
    event = EventLine(7, "workflow.status", None, "w-1", "team", "RUNNING", {"a": 1})
    first, rest = msgspec.json.encode(event).decode().split(",", 1)
    text = f": hello\n\nid: 7\nevent: workflow.status\ndata: {first},\ndata: {rest}\n\nid: 9\n\n"
    server.answer("GET", "/api/events", text.encode())
    found = list(Client(server.address).events(after=6))
    assert "6" == server.last.headers["last-event-id"]
    assert [event] == found


def test_the_spec_and_the_figures_are_plain_text(server: Answering):
    server.answer("GET", "/api/workflow/w-1/spec", b"workflow:\n  name: w\n")
    server.answer("GET", "/metrics", b"bough_up 1\n")
    client = Client(server.address)
    assert "workflow:\n  name: w\n" == client.workflows.spec("w-1")
    assert "bough_up 1\n" == client.metrics()


# Logging in


def test_a_login_is_kept_where_only_its_owner_reads_it(login_file: Path):
    path = store_login(Login("http://host:1", "secret"))
    assert str(login_file) == path
    assert 0o600 == stat.S_IMODE(os.stat(path).st_mode)
    assert Login("http://host:1", "secret") == find_login()
    assert [login_file] == list(login_file.parent.iterdir())


def test_the_environment_goes_before_what_was_stored(monkeypatch: pytest.MonkeyPatch):
    store_login(Login("http://host:1", "secret"))
    monkeypatch.setenv("BOUGH_TOKEN", "other")
    assert Login("http://host:1", "other") == find_login()


def test_a_stored_token_goes_to_no_other_server(monkeypatch: pytest.MonkeyPatch):
    store_login(Login("http://host:1", "secret"))
    monkeypatch.setenv("BOUGH_SERVER", "http://evil:1")
    assert Login("http://evil:1", None) == find_login()
    monkeypatch.setenv("BOUGH_SERVER", "http://host:1/")
    assert "secret" == find_login().token


def test_without_a_server_it_says_what_to_do():
    with pytest.raises(errors.Unavailable) as caught:
        Client()
    assert "bough login URL" in caught.value.hint


def test_a_broken_login_file_is_named(login_file: Path):
    login_file.parent.mkdir()
    for text in ("{", "[]", json.dumps({"token": "x"})):
        login_file.write_text(text)
        with pytest.raises(errors.Invalid) as caught:
            find_login()
        assert str(login_file) in caught.value.message


def test_a_login_is_forgotten_once():
    store_login(Login("http://host:1"))
    assert [True, False] == [forget_login(), forget_login()]


def test_a_login_that_cannot_be_kept_or_forgotten_is_said_in_words(login_file: Path):
    (login_file / "in the way").mkdir(parents=True)
    with pytest.raises(errors.Invalid) as kept:
        store_login(Login("http://host", "secret"))
    with pytest.raises(errors.Invalid) as forgotten:
        forget_login()
    assert f"The login cannot be kept in {login_file}: Is a directory." == kept.value.message
    assert "BOUGH_TOKEN" in kept.value.hint
    assert f"{login_file} cannot be removed: Is a directory." == forgotten.value.message
    assert [login_file] == list(login_file.parent.iterdir())
