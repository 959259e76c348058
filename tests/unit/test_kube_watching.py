"""Lists and watches of Kubernetes, which break, become too old, or are stopped."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bough.kube import client as client_module
from bough.kube import watching
from bough.kube.back_off import BackOff
from bough.kube.decoding import WatchEventKind
from bough.kube.objects import PODS
from bough.kube.watching import Follower, Relisted
from tests.scripted_apiserver import (
    SOON_S,
    Exchange,
    ScriptedApiserver,
    client_of,
    close_connections,
    wait_for,
)

EMPTY = {"metadata": {"resourceVersion": "1"}, "items": []}


@pytest.fixture(autouse=True)
def _close_connections() -> Iterator[None]:
    yield
    close_connections()


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
    assert [(WatchEventKind.ADDED, "a"), (WatchEventKind.DELETED, "a")] == told
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
    assert [(WatchEventKind.BOOKMARK, "7")] == [(event.kind, event.version) for event in events]


def test_an_event_of_a_kind_that_is_not_known_is_passed_over(tmp_path: Path) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.begin_lines()
        exchange.line({"type": "NOVEL", "object": {"anything": 1}})
        exchange.event("ADDED", "a", 2)
        exchange.end_lines()

    with ScriptedApiserver(tmp_path, answer) as server:
        events = list(client_of(server).watch(PODS, "1"))
    assert [(WatchEventKind.ADDED, "2")] == [(event.kind, event.version) for event in events]


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


def test_the_watch_after_a_list_waits_for_more_urgent_requests_and_misses_nothing(
    tmp_path: Path,
) -> None:
    over, busy = threading.Event(), [True]
    looked = threading.Semaphore(0)

    def answer(exchange: Exchange) -> None:
        if "watch" not in exchange.path:
            exchange.answer(EMPTY)
            return
        exchange.begin_lines()
        exchange.event("ADDED", "a", 2)
        over.wait(SOON_S)

    def is_busy() -> bool:
        looked.release()
        return busy[0]

    heard: list[object] = []
    with ScriptedApiserver(tmp_path, answer) as server:
        follower = Follower(client_of(server), PODS, heard.append)
        follower.yield_to(is_busy)
        follower.start()
        # By the third look it would have sent its watch long ago.
        assert all(looked.acquire(timeout=SOON_S) for _ in range(3))
        assert (1, [False]) == (len(heard), ["watch" in path for _, path in server.asked])
        busy[0] = False
        wait_for(lambda: len(heard) >= 2)
        over.set()
        follower.stop()
    assert "resourceVersion=1&" in server.asked[1][1]


def test_the_watch_after_a_list_does_not_wait_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "YIELDS_S", 0.1)
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
        follower.yield_to(lambda: True)
        follower.start()
        assert watched.wait(SOON_S)
        over.set()
        follower.stop()


def test_a_watch_is_interrupted_once_for_more_urgent_requests_and_misses_nothing(
    tmp_path: Path,
) -> None:
    over = threading.Event()
    looked, began, lasts = threading.Semaphore(0), threading.Event(), [True]

    def answer(exchange: Exchange) -> None:
        if "watch" not in exchange.path:
            exchange.answer(EMPTY)
            return
        exchange.begin_lines()
        if "resourceVersion=1&" in exchange.path:
            exchange.event("ADDED", "a", 2)
            began.wait(SOON_S)
            exchange.event("ADDED", "b", 3)
        else:
            exchange.event("ADDED", "c", 4)
            exchange.event("ADDED", "d", 5)
        over.wait(SOON_S)

    def goes_on() -> bool:
        looked.release()
        return lasts[0]

    heard: list[object] = []
    with ScriptedApiserver(tmp_path, answer) as server:
        follower = Follower(client_of(server), PODS, heard.append)
        follower.pause_while(began.is_set, goes_on)
        follower.start()
        wait_for(lambda: len(heard) == 2)
        began.set()
        # By the third look it would have asked again long ago.
        assert all(looked.acquire(timeout=SOON_S) for _ in range(3))
        assert (3, 2) == (len(heard), len(server.asked))
        lasts[0] = False
        wait_for(lambda: len(heard) >= 4)
        began.clear()
        wait_for(lambda: len(heard) >= 5)
        over.set()
        follower.stop()
    assert "resourceVersion=3&" in server.asked[2][1]
    names = [each.object.metadata.name for each in heard[1:] if not isinstance(each, Relisted)]
    assert ["a", "b", "c", "d"] == list(dict.fromkeys(names))


def test_a_watch_is_not_interrupted_for_ever_nor_twice_for_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "PAUSES_S", 0.1)
    over = threading.Event()

    def answer(exchange: Exchange) -> None:
        if "watch" not in exchange.path:
            exchange.answer(EMPTY)
            return
        exchange.begin_lines()
        exchange.event("ADDED", "a", 2)
        if "resourceVersion=2&" in exchange.path:
            exchange.event("ADDED", "b", 3)
            exchange.event("ADDED", "c", 4)
        over.wait(SOON_S)

    heard: list[object] = []
    with ScriptedApiserver(tmp_path, answer) as server:
        follower = Follower(client_of(server), PODS, heard.append)
        follower.pause_while(lambda: True, lambda: True)
        follower.start()
        wait_for(lambda: len(heard) >= 5)
        over.set()
        follower.stop()
    assert ["watch" in path for _, path in server.asked] == [False, True, True]


def test_while_it_does_not_get_on_it_says_why(tmp_path: Path) -> None:
    with ScriptedApiserver(tmp_path, lambda e: e.refuse(403, "Forbidden", "no rights")) as server:
        follower = Follower(client_of(server), PODS, lambda _: None)
        follower.start()
        wait_for(lambda: follower.failure == "no rights")
        follower.stop()
    assert not follower.wait_until_listed(0)


def set_back(exchange: Exchange, lists: list[int]) -> bool:
    """Answer lists as an apiserver whose database was set back after the first; else whether it is
    a watch of the first version."""
    if "watch" in exchange.path:
        return "resourceVersion=900&" in exchange.path
    lists.append(len(lists))
    version = "900" if len(lists) == 1 else "5"
    exchange.answer({**EMPTY, "metadata": {"resourceVersion": version}})
    return False


def test_a_watch_that_falls_silent_lists_again_and_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An apiserver says nothing of versions up to one that it does not have yet."""
    monkeypatch.setattr(client_module, "WATCH_SILENCE_S", 0.3)
    over = threading.Event()
    lists: list[int] = []

    def answer(exchange: Exchange) -> None:
        if set_back(exchange, lists):
            exchange.begin_lines()
            over.wait(SOON_S)
        elif "watch" in exchange.path:
            exchange.begin_lines()
            exchange.event("ADDED", "a", 6)
            while not over.wait(0.05):
                exchange.event("BOOKMARK", "", 6)

    heard: list[object] = []
    with ScriptedApiserver(tmp_path, answer) as server:
        follower = Follower(client_of(server), PODS, heard.append, back_off=BackOff(0.01, 0.01))
        follower.start()
        wait_for(lambda: len(heard) >= 3)
        over.set()
        follower.stop()
    assert ["900", "5", "6"] == [event.version for event in heard]  # type: ignore[attr-defined]
    warned = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert ["pods: nothing came for 0.3 s; listing again", "pods: goes on"] == warned


def test_versions_that_go_back_make_it_list_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    over = threading.Event()
    lists: list[int] = []

    def answer(exchange: Exchange) -> None:
        if set_back(exchange, lists):
            exchange.begin_lines()
            exchange.event("BOOKMARK", "", 4)
            over.wait(SOON_S)
        elif "watch" in exchange.path:
            exchange.begin_lines()
            exchange.event("BOOKMARK", "", 5)
            exchange.event("ADDED", "a", 6)
            over.wait(SOON_S)

    heard: list[object] = []
    with ScriptedApiserver(tmp_path, answer) as server:
        follower = Follower(client_of(server), PODS, heard.append, back_off=BackOff(0.01, 0.01))
        follower.start()
        wait_for(lambda: len(heard) >= 3)
        over.set()
        follower.stop()
    assert ["900", "5", "6"] == [event.version for event in heard]  # type: ignore[attr-defined]
    assert "pods: listing again: versions went back from 900 to 4" in caplog.messages


def test_watches_that_end_at_once_make_it_list_again_and_are_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As a proxy answers that has lost its apiserver: whole answers, with nothing in them."""

    def answer(exchange: Exchange) -> None:
        if "watch" in exchange.path:
            exchange.begin_lines()
            exchange.end_lines()
        else:
            exchange.answer(EMPTY)

    heard: list[object] = []
    with ScriptedApiserver(tmp_path, answer) as server:
        follower = Follower(client_of(server), PODS, heard.append, back_off=BackOff(0.01, 0.01))
        follower.start()
        wait_for(lambda: len(heard) >= 2)
        follower.stop()
    assert ["watch" in path for _, path in server.asked][:5] == [False, True, True, True, False]
    assert "pods: watches end at once; listing again" in caplog.messages


def test_a_list_that_gets_no_answer_is_tried_again_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    over = threading.Event()
    lists: list[int] = []

    def answer(exchange: Exchange) -> None:
        if "watch" in exchange.path:
            exchange.begin_lines()
            over.wait(SOON_S)
            return
        lists.append(len(lists))
        if len(lists) == 1:
            over.wait(SOON_S)
        exchange.answer(EMPTY)

    with ScriptedApiserver(tmp_path, answer) as server:
        client = client_of(server, timeout_s=0.5)
        follower = Follower(client, PODS, lambda _: None, back_off=BackOff(0.01, 0.01))
        follower.start()
        assert follower.wait_until_listed(SOON_S)
        over.set()
        follower.stop()
    assert any("pods: no answer from" in each for each in caplog.messages)


def test_it_goes_on_where_the_end_of_a_kind_could_not_be_taken_in(tmp_path: Path) -> None:
    heard: list[object] = []

    def take(event: object) -> None:
        heard.append(event)
        if len(heard) == 1:
            raise ZeroDivisionError

    optional = PODS._replace(optional=True)
    with ScriptedApiserver(tmp_path, lambda e: e.refuse(404, "NotFound")) as server:
        follower = Follower(client_of(server), optional, take, back_off=BackOff(0.01, 0.01))
        follower.start()
        wait_for(lambda: len(heard) >= 2 or not follower.is_alive)
        assert follower.is_alive
        follower.stop()
    assert [Relisted([], "")] * 2 == heard[:2]


def test_waits_after_failures_double_up_to_a_bound_and_start_again_after_success() -> None:
    back_off = BackOff(first_s=1.0, most_s=8.0)
    waits = [back_off.wait_s() for _ in range(6)]
    bounds = [1, 2, 4, 8, 8, 8]
    assert all(bound / 2 <= wait <= bound for wait, bound in zip(waits, bounds, strict=True))
    assert 1 < len({wait / bound for wait, bound in zip(waits, bounds, strict=True)})
    back_off.reset()
    assert back_off.wait_s() <= 1
