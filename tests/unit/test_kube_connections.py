"""The client of Kubernetes, where answers are late, cut off, refused, or not to be trusted."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from bough.kube.access import Access, FixedCredential, Text
from bough.kube.connections import BUSY_TRIES, Request
from bough.kube.failures import Busy, Gone, KubeConflict, KubeNotFound, KubeRefused, Unreachable
from bough.kube.objects import PODS
from tests.kubernetes.bed.certificates import write_certificates
from tests.scripted_apiserver import (
    SOON_S,
    Exchange,
    ScriptedApiserver,
    access_to,
    client_of,
    client_with,
    close_connections,
    connections_to,
)

POD = {"metadata": {"name": "a", "resourceVersion": "5"}}
EMPTY = {"metadata": {"resourceVersion": "1"}, "items": []}


@pytest.fixture(autouse=True)
def _close_connections() -> Iterator[None]:
    yield
    close_connections()


def test_a_connection_is_kept_for_the_next_request(tmp_path: Path) -> None:
    peers: set[object] = set()

    def answer(exchange: Exchange) -> None:
        peers.add(exchange.client_address)
        exchange.answer(POD)

    with ScriptedApiserver(tmp_path, answer) as server:
        client = client_of(server)
        for _ in range(5):
            assert "a" == client.get(PODS, "a", "x").metadata.name
    assert 1 == len(peers)
    assert [("GET", "/api/v1/namespaces/x/pods/a")] * 5 == server.asked


def test_a_kept_connection_that_the_server_closed_is_not_used_for_a_write(tmp_path: Path) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.read_body()
        exchange.answer(POD)
        exchange.hang_up()

    with ScriptedApiserver(tmp_path, answer) as server:
        client = client_of(server)
        for _ in range(5):
            client.create(PODS, POD, "x")
            time.sleep(0.02)
    assert 5 == len(server.asked)


def test_reading_is_repeated_where_a_kept_connection_breaks_in_that_moment(tmp_path: Path) -> None:
    seen: Counter[object] = Counter()

    def answer(exchange: Exchange) -> None:
        seen[exchange.client_address] += 1
        if seen[exchange.client_address] == 2:
            exchange.hang_up()
        else:
            exchange.answer(POD)

    with ScriptedApiserver(tmp_path, answer) as server:
        client = client_of(server)
        assert ["a"] * 4 == [client.get(PODS, "a", "x").metadata.name for _ in range(4)]


def test_a_write_without_an_answer_is_not_repeated_and_says_that_it_may_be_done(
    tmp_path: Path,
) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.read_body()
        exchange.hang_up()

    with ScriptedApiserver(tmp_path, answer) as server, pytest.raises(Unreachable) as raised:
        client_of(server).create(PODS, POD, "x")
    assert raised.value.sent
    assert [("POST", "/api/v1/namespaces/x/pods")] == server.asked


def test_where_nothing_listens_nothing_was_sent(tmp_path: Path) -> None:
    with ScriptedApiserver(tmp_path, lambda exchange: exchange.answer(POD)) as server:
        client = client_of(server)
    with pytest.raises(Unreachable, match=r"no answer from https://127\.0\.0\.1:") as raised:
        client.create(PODS, POD, "x")
    assert not raised.value.sent


def test_an_answer_that_stops_in_the_middle_is_no_answer(tmp_path: Path) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.begin(Content_Length="100")
        exchange.wfile.write(b'{"metadata": ')
        exchange.hang_up()

    with ScriptedApiserver(tmp_path, answer) as server, pytest.raises(Unreachable):
        client_of(server).get(PODS, "a", "x")


def test_an_answer_in_chunks_that_stops_in_the_middle_is_no_answer(tmp_path: Path) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.begin_lines()
        exchange.chunk(b'{"metadata": {}}')
        exchange.hang_up()

    with ScriptedApiserver(tmp_path, answer) as server, pytest.raises(Unreachable):
        client_of(server).get(PODS, "a", "x")


def test_an_answer_that_trickles_ends_with_the_time_for_it(tmp_path: Path) -> None:
    over = threading.Event()

    def answer(exchange: Exchange) -> None:
        exchange.begin(Content_Length="1000000")
        while not over.wait(0.05):
            exchange.wfile.write(b" ")

    with ScriptedApiserver(tmp_path, answer) as server:
        with pytest.raises(Unreachable, match=r"not whole after 0\.5 s|took too long|timed out"):
            client_of(server, timeout_s=0.5).get(PODS, "a", "x")
        over.set()


def test_an_answer_that_never_comes_ends_with_the_time_for_it(tmp_path: Path) -> None:
    over = threading.Event()
    with ScriptedApiserver(tmp_path, lambda _: over.wait(SOON_S)) as server:
        with pytest.raises(Unreachable, match=r"timed out|took too long"):
            client_of(server, timeout_s=0.5).get(PODS, "a", "x")
        over.set()


@pytest.mark.parametrize("garbage", [b"", b"null", b"[1]", b"\xff\xfe", b'{"metadata": 3}'])
def test_an_answer_that_is_no_object_is_said_to_be_none(tmp_path: Path, garbage: bytes) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.begin(Content_Length=str(len(garbage)))
        exchange.wfile.write(garbage)

    with (
        ScriptedApiserver(tmp_path, answer) as server,
        pytest.raises(Unreachable, match="not what Kubernetes sends"),
    ):
        client_of(server).get(PODS, "a", "x")


@pytest.mark.parametrize(
    ("status", "reason", "failure"),
    [
        (404, "NotFound", KubeNotFound),
        (409, "Conflict", KubeConflict),
        (410, "Expired", Gone),
        (403, "Forbidden", KubeRefused),
        (500, "InternalError", KubeRefused),
    ],
)
def test_a_refusal_keeps_its_status_its_reason_and_its_words(
    tmp_path: Path, status: int, reason: str, failure: type[KubeRefused]
) -> None:
    with (
        ScriptedApiserver(tmp_path, lambda e: e.refuse(status, reason, "words")) as server,
        pytest.raises(failure) as raised,
    ):
        client_of(server).get(PODS, "a", "x")
    error = raised.value
    assert (type(error), status, reason, "words") == (
        failure,
        error.status,
        error.reason,
        error.message,
    )


def test_a_refusal_by_something_that_is_no_apiserver_is_told_as_it_came(tmp_path: Path) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.begin(502, Content_Length="11")
        exchange.wfile.write(b"bad gateway")

    with (
        ScriptedApiserver(tmp_path, answer) as server,
        pytest.raises(KubeRefused, match="bad gateway") as raised,
    ):
        client_of(server).get(PODS, "a", "x")
    assert 502 == raised.value.status


def test_a_busy_server_is_asked_again_after_the_time_that_it_names(tmp_path: Path) -> None:
    def answer(exchange: Exchange) -> None:
        if len(server.asked) < 3:
            exchange.refuse(429, "TooManyRequests", Retry_After="7")
        else:
            exchange.answer(POD)

    paused: list[float] = []
    with ScriptedApiserver(tmp_path, answer) as server:
        connections = connections_to(access_to(server), pause=paused.append)
        connections.ask(Request("GET", "/api/v1/pods"))
    assert [7.0, 7.0] == paused


def test_a_server_that_stays_busy_is_said_to_be(tmp_path: Path) -> None:
    with ScriptedApiserver(tmp_path, lambda e: e.refuse(429, "TooManyRequests")) as server:
        connections = connections_to(access_to(server), pause=lambda _: None)
        with pytest.raises(Busy):
            connections.ask(Request("GET", "/api/v1/pods"))
    assert BUSY_TRIES == len(server.asked)


def test_a_budget_that_forbids_an_eviction_is_an_answer(tmp_path: Path) -> None:
    with (
        ScriptedApiserver(tmp_path, lambda e: e.refuse(429, message="budget")) as server,
        pytest.raises(Busy, match="budget"),
    ):
        client_of(server).evict("a", "x")
    assert 1 == len(server.asked)


def test_no_more_requests_than_allowed_are_in_flight(tmp_path: Path) -> None:
    lock, most, now = threading.Lock(), [0], [0]
    # Each waits for two others, so fewer at once would not get on at all.
    three = threading.Barrier(3)

    def answer(exchange: Exchange) -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        three.wait(SOON_S)
        with lock:
            now[0] -= 1
        exchange.answer(POD)

    with ScriptedApiserver(tmp_path, answer) as server:
        client = client_with(access_to(server), in_flight=3)
        threads = [
            threading.Thread(target=client.get, args=(PODS, "a", "x"), daemon=True)
            for _ in range(12)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SOON_S)
    assert (12, 3) == (len(server.asked), most[0])


def test_a_token_is_read_again_when_its_file_changes(tmp_path: Path) -> None:
    sent: list[str] = []

    def answer(exchange: Exchange) -> None:
        sent.append(exchange.headers["Authorization"])
        exchange.answer(POD)

    token = tmp_path / "token"
    with ScriptedApiserver(tmp_path, answer) as server:
        client = client_with(access_to(server, Text(path=str(token))))
        for text in ("first", "second", "third\n"):
            (tmp_path / "new").write_text(text)
            os.replace(tmp_path / "new", token)
            client.get(PODS, "a", "x")
    assert ["Bearer first", "Bearer second", "Bearer third"] == sent


def test_a_token_that_is_refused_is_read_again_though_its_file_looks_the_same(
    tmp_path: Path,
) -> None:
    def answer(exchange: Exchange) -> None:
        if exchange.headers["Authorization"] == "Bearer two":
            exchange.answer(POD)
        else:
            exchange.refuse(401, "Unauthorized")

    token = tmp_path / "token"
    token.write_text("one")
    at = token.stat()
    text = Text(path=str(token))
    text.read()
    token.write_text("two")
    os.utime(token, ns=(at.st_atime_ns, at.st_mtime_ns))
    with ScriptedApiserver(tmp_path, answer) as server:
        client = client_with(access_to(server, text))
        assert "a" == client.get(PODS, "a", "x").metadata.name
    assert 2 == len(server.asked)


def test_a_certificate_of_another_authority_is_not_trusted(tmp_path: Path) -> None:
    write_certificates(tmp_path, "other")
    with ScriptedApiserver(tmp_path, lambda exchange: exchange.answer(POD)) as server:
        other = Text(path=str(tmp_path / "other-ca.crt"))
        client = client_with(Access(server.url, FixedCredential(Text("secret")), other))
        with pytest.raises(Unreachable, match="its certificate is not trusted"):
            client.get(PODS, "a", "x")
    assert [] == server.asked


def test_a_certificate_for_another_name_is_not_trusted(tmp_path: Path) -> None:
    with ScriptedApiserver(tmp_path, lambda exchange: exchange.answer(POD)) as server:
        authority = Text(path=str(server.authority))
        access = Access(server.url, FixedCredential(), authority, tls_server_name="elsewhere")
        with pytest.raises(Unreachable, match="its certificate is not trusted"):
            client_with(access).get(PODS, "a", "x")
        access = Access(server.url, FixedCredential(), authority, tls_server_name="localhost")
        assert "a" == client_with(access).get(PODS, "a", "x").metadata.name


def test_an_authority_that_is_replaced_is_trusted_from_then_on(tmp_path: Path) -> None:
    write_certificates(tmp_path, "other")
    trusted = tmp_path / "trusted.crt"
    trusted.write_bytes((tmp_path / "other-ca.crt").read_bytes())
    with ScriptedApiserver(tmp_path, lambda exchange: exchange.answer(POD)) as server:
        client = client_with(Access(server.url, FixedCredential(), Text(path=str(trusted))))
        with pytest.raises(Unreachable):
            client.get(PODS, "a", "x")
        (tmp_path / "new").write_bytes(server.authority.read_bytes())
        os.replace(tmp_path / "new", trusted)
        assert "a" == client.get(PODS, "a", "x").metadata.name


def test_a_stream_that_is_released_before_its_end_leaves_no_open_socket(tmp_path: Path) -> None:
    with ScriptedApiserver(tmp_path, lambda exchange: exchange.answer(POD)) as server:
        stream = connections_to(access_to(server)).open_stream(Request("GET", "/api/v1/pods"), 5.0)
        sock = stream._connection.sock
        stream.release()
    assert -1 == sock.fileno()
