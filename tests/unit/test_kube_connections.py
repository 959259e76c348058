"""The client of Kubernetes, where answers are late, cut off, refused, or not to be trusted."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bough.kube.access import Access, FixedCredential, Text
from bough.kube.back_off import BackOff
from bough.kube.client import Client, EventKind
from bough.kube.connections import BUSY_TRIES, Connections, Request
from bough.kube.failures import Busy, Conflict, Gone, NotFound, Refused, Unreachable
from bough.kube.objects import PODS
from bough.kube.watching import Follower, Relisted
from tests.kubernetes.bed.certificates import write_certificates
from tests.scripted_apiserver import Exchange, ScriptedApiserver

POD = {"metadata": {"name": "a", "resourceVersion": "5"}}
EMPTY = {"metadata": {"resourceVersion": "1"}, "items": []}
#: Only a bound of patience.
SOON_S = 60


def access_to(server: ScriptedApiserver, token: Text | None = None) -> Access:
    return Access(server.url, FixedCredential(token), Text(path=str(server.authority)))


_opened: list[Connections] = []


@pytest.fixture(autouse=True)
def _close_connections() -> Iterator[None]:
    yield
    while _opened:
        _opened.pop().close()


def connections_to(access: Access, **options: Any) -> Connections:
    _opened.append(Connections(access, **{"timeout_s": SOON_S, **options}))
    return _opened[-1]


def client_with(access: Access, **options: Any) -> Client:
    client = Client(access, **{"timeout_s": SOON_S, **options})
    _opened.append(client._connections)
    return client


def client_of(server: ScriptedApiserver, timeout_s: float = SOON_S) -> Client:
    return client_with(access_to(server), timeout_s=timeout_s)


def wait_for(so: Callable[[], bool]) -> None:
    until = time.monotonic() + SOON_S
    while not so():
        assert time.monotonic() < until
        time.sleep(0.01)


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
        (404, "NotFound", NotFound),
        (409, "Conflict", Conflict),
        (410, "Expired", Gone),
        (403, "Forbidden", Refused),
        (500, "InternalError", Refused),
    ],
)
def test_a_refusal_keeps_its_status_its_reason_and_its_words(
    tmp_path: Path, status: int, reason: str, failure: type[Refused]
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
        pytest.raises(Refused, match="bad gateway") as raised,
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


def test_a_list_is_read_page_by_page(tmp_path: Path) -> None:
    def answer(exchange: Exchange) -> None:
        first = "continue" not in exchange.path
        metadata = {"resourceVersion": "9", "continue": "more" if first else ""}
        name = "a" if first else "b"
        exchange.answer({"metadata": metadata, "items": [{"metadata": {"name": name}}]})

    with ScriptedApiserver(tmp_path, answer) as server:
        listing = client_of(server).list(PODS, labels="x=y")
    assert (["a", "b"], "9") == ([pod.metadata.name for pod in listing.items], listing.version)


def test_pages_that_became_too_old_are_read_anew_all_at_once(tmp_path: Path) -> None:
    def answer(exchange: Exchange) -> None:
        if "continue" in exchange.path:
            exchange.refuse(410, "Expired")
            return
        paged = "limit" in exchange.path
        metadata = {"resourceVersion": "9", "continue": "more" if paged else ""}
        names = ["a"] if paged else ["b", "c"]
        items = [{"metadata": {"name": name}} for name in names]
        exchange.answer({"metadata": metadata, "items": items})

    with ScriptedApiserver(tmp_path, answer) as server:
        listing = client_of(server).list(PODS)
    assert ["b", "c"] == [pod.metadata.name for pod in listing.items]


def test_a_watch_that_breaks_goes_on_from_the_last_version_without_a_list(tmp_path: Path) -> None:
    over = threading.Event()

    def answer(exchange: Exchange) -> None:
        if "watch" not in exchange.path:
            exchange.answer(EMPTY)
        elif "resourceVersion=1&" in exchange.path:
            exchange.begin_lines()
            exchange.event("ADDED", "a", 2)
            exchange.event("BOOKMARK", "", 7)
            # A line that is cut off is no event.
            exchange.chunk(b'{"type": "ADDED", "object": {"metadata": {"name": "b", "reso')
            exchange.hang_up()
        else:
            exchange.begin_lines()
            exchange.event("DELETED", "a", 8)
            over.wait(SOON_S)

    heard: list[object] = []
    with ScriptedApiserver(tmp_path, answer) as server:
        follower = Follower(client_of(server), PODS, heard.append, back_off=BackOff(0.01, 0.01))
        follower.start()
        wait_for(lambda: len(heard) >= 3)
        over.set()
        follower.stop()
    told = [(e.kind, e.object.metadata.name) for e in heard if not isinstance(e, Relisted)]  # type: ignore[attr-defined]
    assert [(EventKind.ADDED, "a"), (EventKind.DELETED, "a")] == told
    versions = [path.partition("resourceVersion=")[2][:2] for _, path in server.asked[:3]]
    assert ["", "1&", "7&"] == versions


def test_a_bookmark_of_pods_has_a_version_and_fields_that_are_null(tmp_path: Path) -> None:
    metadata = {"resourceVersion": "7", "creationTimestamp": None}
    # As an apiserver of 1.36 sends it.
    empty = {"kind": "Pod", "metadata": metadata, "spec": {"containers": None}, "status": {}}

    def answer(exchange: Exchange) -> None:
        exchange.begin_lines()
        exchange.line({"type": "BOOKMARK", "object": empty})
        exchange.end_lines()

    with ScriptedApiserver(tmp_path, answer) as server:
        events = list(client_of(server).watch(PODS, "1"))
    assert [(EventKind.BOOKMARK, "7")] == [(event.kind, event.version) for event in events]


def test_an_event_of_a_kind_that_is_not_known_is_passed_over(tmp_path: Path) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.begin_lines()
        exchange.line({"type": "NOVEL", "object": {"anything": 1}})
        exchange.event("ADDED", "a", 2)
        exchange.end_lines()

    with ScriptedApiserver(tmp_path, answer) as server:
        events = list(client_of(server).watch(PODS, "1"))
    assert [(EventKind.ADDED, "2")] == [(event.kind, event.version) for event in events]


def test_a_version_that_is_too_old_makes_it_list_again(tmp_path: Path) -> None:
    over = threading.Event()
    lists = [0]

    def answer(exchange: Exchange) -> None:
        if "watch" not in exchange.path:
            lists[0] += 1
            exchange.answer({**EMPTY, "metadata": {"resourceVersion": str(10 * lists[0])}})
        elif "resourceVersion=10&" in exchange.path:
            exchange.begin_lines()
            exchange.line({"type": "ERROR", "object": {"code": 410, "reason": "Expired"}})
            exchange.end_lines()
        elif "resourceVersion=20&" in exchange.path:
            exchange.refuse(410, "Expired")
        else:
            exchange.begin_lines()
            exchange.event("ADDED", "a", 31)
            over.wait(SOON_S)

    heard: list[object] = []
    with ScriptedApiserver(tmp_path, answer) as server:
        follower = Follower(client_of(server), PODS, heard.append, back_off=BackOff(0.01, 0.01))
        follower.start()
        wait_for(lambda: len(heard) >= 4)
        over.set()
        follower.stop()
    assert ["10", "20", "30", "31"] == [event.version for event in heard]  # type: ignore[attr-defined]


def test_what_could_not_be_taken_in_is_told_again_from_the_beginning(tmp_path: Path) -> None:
    def answer(exchange: Exchange) -> None:
        if "watch" not in exchange.path:
            exchange.answer(EMPTY)
        else:
            exchange.begin_lines()
            exchange.event("ADDED", "a", 2)
            exchange.end_lines()

    heard: list[object] = []

    def take(event: object) -> None:
        heard.append(event)
        if len(heard) == 2:
            raise ZeroDivisionError

    with ScriptedApiserver(tmp_path, answer) as server:
        follower = Follower(client_of(server), PODS, take, back_off=BackOff(0.01, 0.01))
        follower.start()
        wait_for(lambda: len(heard) >= 4)
        follower.stop()
    assert [True, False, True, False] == [isinstance(event, Relisted) for event in heard[:4]]


def test_a_watch_that_waits_ends_at_once_when_it_is_stopped(tmp_path: Path) -> None:
    over, watched = threading.Event(), threading.Event()

    def answer(exchange: Exchange) -> None:
        if "watch" not in exchange.path:
            exchange.answer(EMPTY)
            return
        exchange.begin_lines()
        watched.set()
        over.wait(SOON_S)

    with ScriptedApiserver(tmp_path, answer) as server:
        follower = Follower(client_of(server), PODS, lambda _: None)
        follower.start()
        assert watched.wait(SOON_S)
        follower.stop(SOON_S)
        assert not follower.is_alive
        over.set()


def test_while_it_does_not_get_on_it_says_why(tmp_path: Path) -> None:
    with ScriptedApiserver(tmp_path, lambda e: e.refuse(403, "Forbidden", "no rights")) as server:
        follower = Follower(client_of(server), PODS, lambda _: None)
        follower.start()
        wait_for(lambda: follower.failure == "no rights")
        follower.stop()
    assert not follower.wait_until_listed(0)


def test_waits_after_failures_double_up_to_a_bound_and_start_again_after_success() -> None:
    back_off = BackOff(first_s=1.0, most_s=8.0)
    waits = [back_off.wait_s() for _ in range(6)]
    bounds = [1, 2, 4, 8, 8, 8]
    assert all(bound / 2 <= wait <= bound for wait, bound in zip(waits, bounds, strict=True))
    assert 1 < len({wait / bound for wait, bound in zip(waits, bounds, strict=True)})
    back_off.reset()
    assert back_off.wait_s() <= 1
