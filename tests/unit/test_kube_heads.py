"""Heads of requests and of answers, as any server or proxy may write them."""

from __future__ import annotations

import http.client
import io
import socket
from collections.abc import Iterator

import pytest

from bough.kube.heads import LONGEST_LINE, MOST_LINES, Answer, read_fields, written_head


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    own, other = socket.socketpair()
    with own, other:
        yield own, other


def answer_to(ends: tuple[socket.socket, socket.socket], sent: bytes) -> Answer:
    own, other = ends
    other.sendall(sent)
    other.shutdown(socket.SHUT_WR)
    found = Answer(own, method="GET")
    found.begin()
    return found


@pytest.mark.parametrize(
    ("head", "body", "read", "closes"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2", b"okmore", b"ok", False),
        (b"HTTP/1.1 200 OK\r\ncontent-length:2\r\nContent-Length: 3", b"okmore", b"ok", False),
        (b"HTTP/1.1 200\nCONTENT-LENGTH:  2 ", b"okmore", b"ok", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked", b"2\r\nok\r\n0\r\n\r\n", b"ok", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: Close", b"ok", b"ok", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -2", b"to the end", b"to the end", True),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2", b"okmore", b"ok", True),
        (b"HTTP/1.1 204 No Content\r\nX", b"", b"", False),
        (
            b"HTTP/1.1 100 Continue\r\nA: b\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2",
            b"okmore",
            b"ok",
            False,
        ),
        (
            b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2",
            b"okmore",
            b"ok",
            False,
        ),
        # A line that begins with a blank goes on with the one before.
        (
            b"HTTP/1.1 200 OK\r\nA: b\r\n Content-Length: 1\r\nContent-Length: 2",
            b"ok",
            b"ok",
            False,
        ),
    ],
)
def test_a_body_ends_where_its_head_says(
    ends: tuple[socket.socket, socket.socket], head: bytes, body: bytes, read: bytes, closes: bool
) -> None:
    blank = b"\n\n" if b"\r" not in head else b"\r\n\r\n"
    found = answer_to(ends, head + blank + body)
    assert (read, closes) == (found.read(), found.will_close)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"HTTP/2 200 OK\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 many OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n",
        b"HTTP/1.1 200 OK\r\nA: " + b"b" * LONGEST_LINE + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"1" * 5_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * (MOST_LINES + 1) + b"\r\n",
    ],
)
def test_what_is_no_head_is_no_answer(
    ends: tuple[socket.socket, socket.socket], head: bytes
) -> None:
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        answer_to(ends, head)


def test_fields_are_found_by_their_names_in_lower_case_and_of_several_the_first_counts() -> None:
    written = b"Retry-After:  1\r\nno colon\r\nRETRY-AFTER: 2\r\nA: b:c\r\n\r\nbody"
    source = io.BytesIO(written)
    assert {"retry-after": "1", "no colon": "", "a": "b:c"} == read_fields(source)
    assert source.read() == b"body"


def test_a_head_has_its_length_where_there_is_a_body() -> None:
    assert written_head("GET", "/version", "[::1]:6443", {"Accept": "any"}, None) == (
        b"GET /version HTTP/1.1\r\nHost: [::1]:6443\r\nAccept-Encoding: identity\r\n"
        b"Accept: any\r\n\r\n"
    )
    assert b"\r\nContent-Length: 0\r\n\r\n" in written_head("POST", "/", "h", {}, 0)


def test_nothing_that_is_sent_begins_a_line_of_its_own_and_no_token_is_told() -> None:
    with pytest.raises(http.client.InvalidURL):
        written_head("GET", "/a HTTP/1.1\r\nB: c", "h", {}, None)
    with pytest.raises(http.client.HTTPException) as refused:
        written_head("GET", "/", "h", {"Authorization": "Bearer secret\r\nB: c"}, None)
    assert "secret" not in str(refused.value)
