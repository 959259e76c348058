"""While many pods are being made, what only tells of others comes later, and nothing is lost."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.backends.kubernetes import creation_rush
from bough.backends.kubernetes.attempt_state import PodAttempt
from bough.backends.kubernetes.creation_rush import CreationRush
from bough.backends.kubernetes.log_folders import LogFolders
from bough.backends.kubernetes.log_keeper import LogKeeper
from bough.model.backend import Leadership, Sight
from tests.kubernetes.pods import ATTEMPT, ended, launch, pod, start
from tests.unit.test_kubernetes_creation import FOR_EVER_MS, PODS_PATH, Cluster, made

RUNNING = {"running": {"startedAt": "2026-01-31T23:59:59Z"}}


def test_that_a_task_runs_is_told_later_and_its_end_at_once():
    attempt = PodAttempt(ATTEMPT)
    attempt.take(pod("Pending", version="1"), 1)
    assert Sight.STARTING is attempt.tell(later=False).sight
    attempt.take(pod("Running", version="2", state=RUNNING), 2)

    assert Sight.STARTING is attempt.tell(later=True).sight
    assert (Sight.RUNNING, 2) == (attempt.tell(later=False).sight, attempt.observed().at_ms)
    assert Sight.RUNNING is attempt.tell(later=True).sight
    attempt.take(pod("Succeeded", version="3", state=ended(0)), 3)
    assert Sight.ENDED is attempt.tell(later=True).sight


def test_what_ends_before_it_was_told_that_it_runs_is_told_as_ended():
    attempt = PodAttempt(ATTEMPT)
    attempt.take(pod("Pending", version="1"), 1)
    attempt.tell(later=True)
    attempt.take(pod("Running", version="2", state=RUNNING), 2)
    attempt.tell(later=True)
    attempt.take(pod("Failed", version="3", state=ended(1)), 3)

    assert (Sight.ENDED, 1) == (attempt.tell(later=True).sight, attempt.tell(later=True).exit_code)


def test_that_a_task_is_being_started_as_it_was_ordered_is_told_later():
    attempt = PodAttempt(ATTEMPT)
    assert attempt.tell(later=True) is None
    attempt.take(pod("Running", version="2", state=RUNNING), 2)
    assert attempt.tell(later=True) is None
    assert Sight.RUNNING is attempt.tell(later=False).sight


def test_why_a_task_does_not_start_is_told_at_once():
    attempt = PodAttempt(ATTEMPT)
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
    attempt.take(pod("Pending", version="1", state=waiting), 1)

    assert "no such image" in attempt.tell(later=True).message


def test_a_rush_is_as_long_as_more_pods_wait_than_there_are_workers():
    rush = CreationRush(2)
    for number in range(17):
        rush.note(f"{number}")
        rush.note("0")
    assert (True, True, True) == (rush.is_great(), rush.is_on(), rush.goes_on())
    for number in range(15):
        rush.begin(f"{number}")
    assert (False, False, True) == (rush.is_great(), rush.is_on(), rush.goes_on())
    rush.begin("15")
    rush.begin("16")
    rush.begin("of something else")
    assert not rush.goes_on()


def test_reports_are_not_held_back_for_ever(monkeypatch: pytest.MonkeyPatch):
    rush = CreationRush(1)
    rush.note("a")
    rush.note("b")
    assert rush.delays_reports()
    monkeypatch.setattr(creation_rush, "_LATER_S", 0.0)
    assert not rush.delays_reports()


def test_what_a_worker_has_taken_no_longer_counts_as_waiting(tmp_path: Path):
    cluster = Cluster(tmp_path)
    cluster.say("POST", PODS_PATH, made)
    with cluster.server:
        cluster.backend.lead(Leadership(1, FOR_EVER_MS))
        cluster.backend.start(start(launch()))
        assert cluster.backend._rush.goes_on()
        cluster.backend._queue.start()
        cluster.until(lambda: cluster.backend._attempts[ATTEMPT].has_pod)
        cluster.backend._queue.close()
        # What is ordered once more has its pod, so there is nothing to create.
        cluster.backend.start(start(launch()))
    cluster.client.close()

    assert not cluster.backend._rush.goes_on()


@given(st.lists(st.booleans()))
def test_what_is_told_in_the_end_is_what_is_seen(later):
    attempt = PodAttempt(ATTEMPT)
    for number, each in enumerate(later):
        phase = ("Pending", "Running", "Succeeded")[min(2, number // 2)]
        state = {"Pending": None, "Running": RUNNING, "Succeeded": ended(0)}[phase]
        attempt.take(pod(phase, version=str(number + 1), state=state), number + 1)
        attempt.tell(later=each)

    assert attempt.observed() == attempt.tell(later=False)


def test_that_a_pod_was_made_where_it_was_decided_wakes_no_one_and_is_no_news(tmp_path: Path):
    cluster = Cluster(tmp_path)
    woken: list[bool] = []
    cluster.backend._wake = lambda: woken.append(True)
    cluster.say("POST", PODS_PATH, made)
    with cluster.server:
        cluster.backend.lead(Leadership(1, FOR_EVER_MS))
        cluster.backend.start(start(launch()))
        before = cluster.backend.observe()
        woken.clear()
        cluster.backend._queue.start()
        cluster.until(lambda: cluster.backend._attempts[ATTEMPT].has_pod)
        cluster.backend._queue.close()
        after = cluster.backend.observe()
    cluster.client.close()

    assert before == after
    assert ("n", Sight.STARTING) == (after[0].node, after[0].sight)
    assert [] == woken


def test_a_log_is_not_read_while_there_is_something_more_urgent(tmp_path: Path):
    cluster = Cluster(tmp_path)
    busy = [True]
    folders = LogFolders(tmp_path / "kept", 1)
    keeper = LogKeeper(cluster.client, folders, 1 << 20, lambda: 1, lambda _: None, lambda: busy[0])
    with cluster.server:
        keeper.start()
        keeper.follow(ATTEMPT, "bough", "p", "task")
        time.sleep(0.2)
        assert [] == cluster.server.asked
        busy[0] = False
        cluster.until(lambda: bool(cluster.server.asked))
        keeper.close()
    cluster.client.close()
