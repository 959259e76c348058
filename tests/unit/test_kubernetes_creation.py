"""Pods whose creation is refused, forbidden or not answered: none is made twice, none given up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bough.backends.kubernetes.backend import KubernetesBackend
from bough.backends.kubernetes.options import KubernetesOptions
from bough.kube.access import Access, FixedCredential, Text
from bough.kube.client import KubeClient
from bough.model.backend import Leadership, Observation, Sight, Stop
from bough.model.task_template import FileSpec, TaskTemplate
from tests.kubernetes.pods import ATTEMPT, SITE, UUID, launch, start
from tests.scripted_apiserver import Exchange, ScriptedApiserver

#: Only a bound of patience.
SOON_S = 60
FOR_EVER_MS = 1 << 60
EMPTY = {"metadata": {"resourceVersion": "1"}, "items": []}
PODS_PATH = "/api/v1/namespaces/bough/pods"
SECRETS_PATH = "/api/v1/namespaces/bough/secrets"
MADE = {
    "metadata": {
        "name": f"train-{UUID}-2",
        "namespace": "bough",
        "uid": "u",
        "resourceVersion": "5",
        "labels": {"bough.site": SITE, "osmo.task_uuid": UUID, "osmo.retry_id": "2"},
    },
    "spec": {"nodeName": "n"},
    "status": {"phase": "Pending"},
}
Answer = Callable[[Exchange], object]


def made(exchange: Exchange) -> None:
    exchange.answer(MADE, 201)


def found(exchange: Exchange) -> None:
    exchange.answer(MADE)


def forbidden(exchange: Exchange) -> None:
    exchange.refuse(403, "Forbidden", "no role yet")


def taken(exchange: Exchange) -> None:
    exchange.refuse(409, "AlreadyExists", "it is there")


def missing(exchange: Exchange) -> None:
    exchange.refuse(404, "NotFound", "it is not there")


def starting(exchange: Exchange) -> None:
    exchange.refuse(500, "", "informers are not synced")


def ready(exchange: Exchange) -> None:
    exchange.answer("ok")


def silent(exchange: Exchange) -> None:
    exchange.hang_up()


class Cluster:
    """What an apiserver answers, by method and path; the last of several answers stands."""

    def __init__(self, folder: Path) -> None:
        self._answers: dict[tuple[str, str], list[Answer]] = {}
        self.server = ScriptedApiserver(folder, self._behave)
        access = Access(self.server.url, FixedCredential(), Text(path=str(self.server.authority)))
        self.client = KubeClient(access)
        options = KubernetesOptions(folder / "logs", SITE)
        self.backend = KubernetesBackend(options, self.client, lambda: 1_000)

    def say(self, method: str, path: str, *answers: Answer) -> None:
        """From now on."""
        self._answers[method, path] = list(answers)

    def count(self, method: str, path: str) -> int:
        """How often it was asked."""
        return self.server.asked.count((method, path))

    def seen(self) -> Observation | None:
        """What is seen of the attempt."""
        return next(iter(self.backend.observe()), None)

    def until(self, so: Callable[[], bool]) -> None:
        """Wait."""
        until = time.monotonic() + SOON_S
        while not so():
            assert time.monotonic() < until, (self.seen(), self.server.asked)
            time.sleep(0.02)

    def until_seen(self, sight: Sight) -> Observation:
        """Wait until the attempt is seen so."""
        self.until(lambda: (each := self.seen()) is not None and each.sight is sight)
        last = self.seen()
        assert last is not None
        return last

    def _behave(self, exchange: Exchange) -> None:
        exchange.read_body()
        path = exchange.path.partition("?")[0]
        answers = self._answers.get((exchange.command, path))
        if answers is not None:
            (answers.pop(0) if len(answers) > 1 else answers[0])(exchange)
        else:
            exchange.answer(EMPTY)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    with made.server:
        made.backend.lead(Leadership(1, FOR_EVER_MS))
        made.backend._queue.start()
        yield made
        made.backend._queue.close()
        made.client.close()


def test_a_pod_that_is_forbidden_by_an_apiserver_that_starts_is_made_when_it_is_ready(cluster):
    cluster.say("POST", PODS_PATH, forbidden, forbidden, made)
    cluster.say("GET", "/readyz", starting, ready)
    cluster.backend.start(start(launch()))

    cluster.until(lambda: cluster.count("POST", PODS_PATH) == 3)

    assert Sight.STARTING is cluster.until_seen(Sight.STARTING).sight
    cluster.until(lambda: cluster.backend._attempts[ATTEMPT].has_pod)


def test_a_pod_that_is_forbidden_by_an_apiserver_that_is_ready_cannot_be_started(cluster):
    cluster.say("POST", PODS_PATH, forbidden)
    cluster.say("GET", "/readyz", ready)
    cluster.say("GET", f"{PODS_PATH}/{MADE['metadata']['name']}", missing)
    cluster.backend.start(start(launch()))

    assert "no role yet" == cluster.until_seen(Sight.UNSTARTABLE).message
    assert 2 == cluster.count("POST", PODS_PATH)


def test_a_pod_that_was_made_without_an_answer_and_is_gone_is_not_made_again(cluster):
    cluster.say("POST", PODS_PATH, silent, taken)
    cluster.say("GET", f"{PODS_PATH}/{MADE['metadata']['name']}", missing)
    cluster.backend.start(start(launch()))

    cluster.until_seen(Sight.LOST)
    assert 2 == cluster.count("POST", PODS_PATH)


def test_a_pod_that_was_made_without_an_answer_is_there_although_the_next_is_refused(cluster):
    cluster.say("POST", PODS_PATH, silent, lambda each: each.refuse(422, "Invalid", "quota"))
    cluster.say("GET", f"{PODS_PATH}/{MADE['metadata']['name']}", found)
    cluster.backend.start(start(launch()))

    cluster.until(lambda: cluster.backend._attempts[ATTEMPT].has_pod)
    assert Sight.STARTING is cluster.until_seen(Sight.STARTING).sight


def test_what_is_stuck_without_its_secrets_is_deleted_only_when_it_is_told_to_end(cluster):
    cluster.say("POST", PODS_PATH, made)
    cluster.say("POST", SECRETS_PATH, lambda each: each.refuse(422, "Invalid", "too large"))
    spec = TaskTemplate(image="ubuntu", files=(FileSpec("/run.sh", "true"),))
    cluster.backend.start(start(launch(spec=spec)))

    assert "too large" in cluster.until_seen(Sight.STUCK).message
    pod_path = f"{PODS_PATH}/{MADE['metadata']['name']}"
    assert 0 == cluster.count("DELETE", pod_path)
    cluster.backend.stop(Stop((ATTEMPT,), "stuck"))
    cluster.until(lambda: cluster.count("DELETE", pod_path) == 1)


def test_under_another_lease_no_creation_is_repeated_unless_it_is_ordered_again(cluster):
    cluster.say("POST", PODS_PATH, silent)
    cluster.say("GET", f"{PODS_PATH}/{MADE['metadata']['name']}", missing)
    cluster.backend.start(start(launch()))
    cluster.until(lambda: cluster.count("POST", PODS_PATH) >= 1)

    cluster.backend.lead(Leadership(2, FOR_EVER_MS))
    known = cluster.backend._attempts[ATTEMPT]
    assert None is known.next_step()
    cluster.backend.stop(Stop((ATTEMPT,), "stray"))

    # Whether it was made is looked up first.
    cluster.until_seen(Sight.ENDED)
    assert 1 == cluster.count("GET", f"{PODS_PATH}/{MADE['metadata']['name']}")


def test_under_another_lease_what_is_ordered_again_is_made(cluster):
    cluster.say("POST", PODS_PATH, silent)
    cluster.backend.start(start(launch()))
    cluster.until(lambda: cluster.count("POST", PODS_PATH) >= 1)
    cluster.backend.lead(Leadership(2, FOR_EVER_MS))

    cluster.say("POST", PODS_PATH, made)
    cluster.backend.start(start(launch()))

    cluster.until(lambda: cluster.backend._attempts[ATTEMPT].has_pod)
