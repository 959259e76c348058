"""As much of HTTP as the client needs: answers that are whole, cut off, or none."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import pytest

from bough import errors
from bough.client import Client
from bough.client.transport import read_address


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
            with connection:
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
    assert "Cannot reach the server at https://" in caught.value.message


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
