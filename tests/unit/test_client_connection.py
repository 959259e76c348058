"""As much of HTTP as the client needs: answers that are whole, cut off, or none."""

from __future__ import annotations

import os
import socket
import threading
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress

import pytest

from bough import errors
from bough.client import Client, connection
from bough.client.addresses import find_proxy, read_address
from tests.answering import Answering


def cancel(client: Client) -> object:
    return client.configs.update("ROLE", {}, "r")


def read_logs(client: Client) -> list[str]:
    return list(client.workflows.logs("w-1"))


def ask_raw(
    answer: bytes, *, scheme: str = "http", ask: Callable[[Client], object] = cancel
) -> object:
    """What the client makes of an answer that is sent as it is, in two parts."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()

        def serve() -> None:
            connection, _ = listening.accept()
            # A client that cannot use the first part hangs up before the second.
            with connection, suppress(ConnectionError):
                connection.recv(65536)
                connection.sendall(answer[:11])
                connection.sendall(answer[11:])

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            address = f"{scheme}://127.0.0.1:{listening.getsockname()[1]}"
            return ask(Client(address, timeout_s=5))
        finally:
            thread.join()


OK = b"HTTP/1.1 200 OK\r\n"
READABLE = {
    "a length": OK + b"Content-Length: 3\r\n\r\n[1]and more",
    "until the end": OK + b"\r\n[1]",
    "chunks": OK + b"transfer-encoding: Chunked\r\n\r\n1;x=y\r\n[\r\n2\r\n1]\r\n0\r\nA: b\r\n\r\n",
    "an old version": b"HTTP/1.0 200 OK\r\n\r\n[1]",
    "a word before it": b"HTTP/1.1 100 Continue\r\nA: b\r\n\r\n" + OK + b"\r\n[1]",
    "no reason": b"HTTP/1.1 200\r\n\r\n[1]",
    "bare ends of lines": b"HTTP/1.1 200 OK\nContent-Length: 3\n\n[1]",
}
UNREADABLE = {
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
    "no status": b"HTTP/1.1 abc\r\n\r\n",
    "no length": OK + b"Content-Length: many\r\n\r\n[1]",
    "a negative length": OK + b"Content-Length: -1\r\n\r\n[1]",
    "an endless head": OK + b"A: b\r\n" * 300,
    "an endless line": OK + b"A" * 70_000,
}
UNFINISHED = {
    "too short": OK + b"Content-Length: 9\r\n\r\n[1]",
    "a chunk too short": OK + b"Transfer-Encoding: chunked\r\n\r\n9\r\n[1]",
    "chunks without an end": OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\n[1]\r\n",
    "half a length": OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\n[1]\r\n4",
}


@pytest.mark.parametrize("answer", READABLE.values(), ids=READABLE)
def test_an_answer_is_read_however_it_is_framed(answer: bytes):
    assert [1] == ask_raw(answer)


@pytest.mark.parametrize("answer", UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_no_answer_is_an_error_in_words(answer: bytes):
    with pytest.raises(errors.Unavailable) as caught:
        ask_raw(answer)
    assert "cannot be read: " in caught.value.message


@pytest.mark.parametrize("answer", UNFINISHED.values(), ids=UNFINISHED)
def test_an_answer_that_breaks_off_is_a_lost_connection(answer: bytes):
    with pytest.raises(errors.Unavailable) as caught:
        ask_raw(answer)
    assert caught.value.message.endswith(" was lost.")
    assert "it is not known whether it was done: look before you ask again" == caught.value.hint


def test_a_stream_that_breaks_off_may_be_asked_for_again():
    with pytest.raises(errors.Unavailable) as caught:
        ask_raw(OK + b"Transfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n", ask=read_logs)
    assert caught.value.message.endswith(" was lost.")
    assert "tasks go on" in caught.value.hint


def test_nothing_is_a_valid_answer():
    assert ask_raw(b"HTTP/1.1 204 No Content\r\n\r\n") is None
    assert ask_raw(OK + b"Content-Length: 0\r\n\r\n") is None


def test_a_server_that_hangs_up_is_said_in_words():
    with pytest.raises(errors.Unavailable) as caught:
        ask_raw(b"")
    assert "The connection was closed before an answer came." in caught.value.message


def test_a_plain_server_is_no_secure_one():
    with pytest.raises(errors.Unavailable) as caught:
        ask_raw(OK + b"\r\n[1]", scheme="https")
    assert caught.value.message.startswith("The server at https://")
    assert caught.value.message.endswith(" speaks http, and not https.")
    assert "write http:// in the address" in caught.value.hint


def test_a_secure_server_is_no_plain_one():
    with pytest.raises(errors.Unavailable) as caught:
        ask_raw(b"\x15\x03\x03\x00\x02\x02\x46")
    assert caught.value.message.endswith(" speaks https, and not http.")


@pytest.mark.parametrize(
    ("text", "shown", "host", "port", "base"),
    [
        ("host", "http://host", "host", 80, ""),
        ("HTTPS://host/", "https://host", "host", 443, ""),
        ("http://host:8080/a/b/", "http://host:8080/a/b", "host", 8080, "/a/b"),
        ("http://[::1]:80", "http://[::1]", "::1", 80, ""),
        ("https://user:password@host:444?x#y", "https://host:444", "host", 444, ""),
    ],
)
def test_addresses_are_read(text: str, shown: str, host: str, port: int, base: str):
    found = read_address(text)
    assert (shown, host, port, base) == (found.text, found.host, found.port, found.base)


# Connections that are kept


def test_a_connection_is_kept_for_the_next_request(server: Answering):
    server.answer("GET", "/api/version", {"major": "1"})
    client = Client(server.address)
    client.version()
    client.version()
    assert 1 == server.connections


@pytest.mark.usefixtures("login_file")
def test_a_connection_that_the_server_closed_is_replaced(server: Answering):
    server.answer("GET", "/api/version", {"major": "1"})
    server.closes = True
    client = Client(server.address)
    client.version()
    assert "1" == client.version().major
    assert ["GET /api/version", "GET /api/version"] == server.requests


def test_a_write_has_a_connection_of_its_own(server: Answering):
    server.answer("GET", "/api/version", {"major": "1"})
    server.answer("POST", "/api/workflow/w-1/cancel", {"name": "w-1"})
    client = Client(server.address)
    client.version()
    client.workflows.cancel("w-1")
    client.version()
    assert 2 == server.connections


def test_many_writes_leave_few_connections_open(server: Answering):
    server.answer("POST", "/api/workflow/w-1/cancel", {"name": "w-1"})
    client = Client(server.address)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        client.workflows.cancel("w-1")
    # Each may be open at both ends: the server is in this process, too.
    assert len(os.listdir("/proc/self/fd")) - before <= 10


def test_a_connection_that_rested_for_long_is_not_used_again(
    server: Answering, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(connection, "IDLE_S", 0.0)
    server.answer("GET", "/api/version", {"major": "1"})
    client = Client(server.address)
    client.version()
    client.version()
    assert 2 == server.connections


def test_threads_share_a_client(server: Answering):
    server.answer("GET", "/api/version", {"major": "1"})
    client = Client(server.address)
    threads = [threading.Thread(target=client.version) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert 8 == len(server.asked)


# Proxies


def test_a_request_goes_through_the_proxy_of_the_environment(
    server: Answering, monkeypatch: pytest.MonkeyPatch
):
    proxy = server.address.replace("http://", "http://ann:secret@")
    monkeypatch.setenv("HTTP_PROXY", proxy)
    server.answer("GET", "/api/version", {"major": "1"})
    assert "1" == Client("http://bough.example:8265").version().major
    headers = server.last.headers
    assert "bough.example:8265" == headers["host"]
    assert f"Basic {b64encode(b'ann:secret').decode()}" == headers["proxy-authorization"]


def test_a_secure_server_is_reached_through_a_tunnel(monkeypatch: pytest.MonkeyPatch):
    heard: list[bytes] = []

    def refuse(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            heard.append(connection.recv(65536))
            connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        thread = threading.Thread(target=refuse, args=(listening,))
        thread.start()
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{listening.getsockname()[1]}")
        with pytest.raises(errors.Unavailable) as caught:
            Client("https://bough.example").workflows.cancel("w-1")
        thread.join()
    assert heard[0].startswith(b"CONNECT bough.example:443 HTTP/1.1\r\nHost: bough.example:443\r\n")
    assert "the proxy 127.0.0.1:" in caught.value.message
    assert "refuses with status 403" in caught.value.message


@pytest.mark.parametrize(
    ("server", "environment", "found"),
    [
        ("http://a.example", {"HTTP_PROXY": "http://p:3128"}, ("p", 3128, "")),
        ("http://a.example", {"http_proxy": "p", "HTTP_PROXY": "http://q:1"}, ("p", 80, "")),
        ("https://a.example", {"HTTP_PROXY": "http://p:3128"}, None),
        ("https://a.example", {"HTTPS_PROXY": "http://u:w@[::1]:8/"}, ("::1", 8, "u:w")),
        ("http://127.0.0.1:8265", {"HTTP_PROXY": "http://p:3128"}, None),
        ("http://localhost", {"HTTP_PROXY": "http://p:3128"}, None),
        ("http://a.example", {"HTTP_PROXY": "p", "NO_PROXY": "b.example, .example"}, None),
        ("http://a.example", {"HTTP_PROXY": "p", "no_proxy": "*"}, None),
        ("http://a.example:81", {"HTTP_PROXY": "p", "NO_PROXY": "a.example:81"}, None),
        ("http://a.example", {"HTTP_PROXY": "p", "NO_PROXY": "a.example:81"}, ("p", 80, "")),
        ("http://data.example", {"HTTP_PROXY": "p", "NO_PROXY": "a.example"}, ("p", 80, "")),
    ],
)
def test_the_proxy_is_found_in_the_environment(
    server: str, environment: dict[str, str], found: tuple[str, int, str] | None
):
    assert found == find_proxy(read_address(server), environment)


@pytest.mark.parametrize("text", ["socks5://p:1", "http://p:x", "http://"])
def test_an_address_that_is_no_proxy_is_named(text: str):
    with pytest.raises(errors.Invalid) as caught:
        find_proxy(read_address("http://a.example"), {"HTTP_PROXY": text})
    assert "HTTP_PROXY must be like http://proxy:3128" in caught.value.message
