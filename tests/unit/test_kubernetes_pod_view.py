"""What the backend kubernetes sees of a pod."""

from __future__ import annotations

import pytest

from bough.backends.kubernetes.attempt_state import PodAttempt, Step
from bough.backends.kubernetes.pod_view import PodSight, see, see_gone
from bough.model.backend import Sight, StartFault
from tests.kubernetes.pods import ATTEMPT, ended, pod, waiting

OVER_BY_ITSELF = [
    (pod("Succeeded", state=ended(0)), (0, None)),
    (pod("Failed", state=ended(7, reason="Error")), (7, None)),
    (pod("Failed", state=ended(137, signal=9)), (137, 9)),
    (pod("Failed", state=ended(137, reason="OOMKilled")), (137, 9)),
    (pod("Failed", state=ended(0, signal=15)), (143, 15)),
]
LOST = [
    pod("Failed", reason="OutOfcpu", message="not enough cpu"),
    pod("Failed", reason="OutOfnvidia.com/gpu"),
    pod("Failed", reason="UnexpectedAdmissionError"),
    pod("Failed", reason="Evicted", message="low on memory", state=ended(137)),
    pod("Failed", reason="NodeShutdown", state=ended(143)),
    pod("Failed", state=ended(143), deleted=True),
    pod("Failed", state=ended(137, reason="ContainerStatusUnknown")),
    pod(
        "Failed",
        state=ended(143),
        conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByAPI"}],
    ),
    pod("Failed"),
]


@pytest.mark.parametrize(("seen", "expected"), OVER_BY_ITSELF)
def test_what_ended_by_itself_ended_with_its_own_code(seen, expected):
    found = see(seen, told=False)

    assert (Sight.ENDED, False) == (found.sight, found.told)
    assert expected == (found.exit_code, found.signal)


def test_what_ended_before_it_was_told_to_is_known_by_the_missing_mark():
    assert see(pod("Failed", state=ended(3)), told=True).told is False
    assert see(pod("Failed", state=ended(143), deleted=True), told=True).told is True


@pytest.mark.parametrize("seen", LOST, ids=lambda each: each.status.reason or "unnamed")
def test_what_its_node_or_others_ended_is_lost_and_not_failed(seen):
    found = see(seen, told=False)

    assert (Sight.LOST, None) == (found.sight, found.exit_code)


def test_the_words_of_the_kubelet_are_told():
    found = see(pod("Failed", reason="Evicted", message="low on memory"), told=False)

    assert "Its node did not keep the pod. Evicted: low on memory" == found.message
    killed = see(pod("Failed", state=ended(137, reason="OOMKilled")), told=False)
    assert "Task was killed: it used more memory than its limit (OOMKilled)." == killed.message


@pytest.mark.parametrize(
    ("seen", "message", "pulling"),
    [
        (pod("Pending"), "", False),
        (pod("Pending", state=waiting("ContainerCreating")), "", False),
        (
            pod("Pending", state=waiting("ErrImagePull", "no such image")),
            "ErrImagePull: no such image",
            True,
        ),
        (
            pod("Pending", state=waiting("CreateContainerConfigError", "secret missing")),
            "CreateContainerConfigError: secret missing",
            False,
        ),
    ],
)
def test_what_waits_is_starting_and_says_for_what(seen, message, pulling):
    assert PodSight(Sight.STARTING, message, pulling=pulling) == see(seen, told=False)


def test_what_is_gone_without_a_word_is_lost_unless_it_was_told_to_end():
    assert Sight.LOST is see_gone(PodSight(Sight.RUNNING), told=False).sight
    told = see_gone(PodSight(Sight.RUNNING), told=True)
    assert (Sight.ENDED, True) == (told.sight, told.told)


def test_a_task_that_does_not_start_in_time_is_stuck_until_its_pod_is_gone():
    for reason, fault in (
        ("ImagePullBackOff", StartFault.IMAGE_PULL),
        ("CreateContainerConfigError", StartFault.TIMEOUT),
    ):
        known = PodAttempt(ATTEMPT)
        known.take(pod("Pending", state=waiting(reason, "why")), 1_000)

        assert not known.give_up(10_000, 10_999)
        assert known.give_up(10_000, 11_000)
        stuck = known.observed()
        assert (Sight.STUCK, fault) == (stuck.sight, stuck.fault)
        assert stuck.message.endswith(f"{reason}: why")
        known.take_gone(12_000)
        seen = known.observed()
        assert (Sight.UNSTARTABLE, fault, 12_000) == (seen.sight, seen.fault, seen.at_ms)
        assert seen.message == stuck.message


def test_what_is_stuck_is_not_deleted_until_it_is_told_to_end():
    known = PodAttempt(ATTEMPT)
    known.take(pod("Pending", state=waiting("InvalidImageName", "no:such:name")), 1_000)
    assert None is known.next_step()

    known.stop_by_ms = 5_000

    assert Step.END is known.next_step()


def test_what_starts_at_last_is_not_stuck_any_more():
    known = PodAttempt(ATTEMPT)
    known.take(pod("Pending", state=waiting("ImagePullBackOff")), 1_000)
    assert known.give_up(10_000, 11_000)

    known.take(pod("Running", version="2"), 12_000)

    assert Sight.RUNNING is known.observed().sight


def test_an_image_that_will_never_be_there_is_not_waited_for():
    known = PodAttempt(ATTEMPT)
    known.take(pod("Pending", state=waiting("InvalidImageName", "no:such:name")), 1_000)

    assert Sight.STUCK is known.observed().sight
    known.take_gone(2_000)
    assert StartFault.IMAGE_PULL is known.observed().fault


def test_an_end_stands_whatever_is_seen_afterwards():
    known = PodAttempt(ATTEMPT)
    known.take(pod("Succeeded", state=ended(0)), 1_000)
    before = known.observed()

    known.take(pod("Succeeded", state=ended(0), deleted=True), 2_000)
    known.take_gone(3_000)

    assert before == known.observed()


def test_what_is_older_than_what_is_known_is_no_news():
    known = PodAttempt(ATTEMPT)
    known.take(pod("Running", version="12"), 1_000)

    assert not known.take(pod("Pending", version="11"), 2_000)
    assert Sight.RUNNING is known.observed().sight
