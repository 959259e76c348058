"""What is followed is what is there, whatever happens to the apiserver and to etcd."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

import bough.kube.client
from bough.kube.back_off import BackOff
from bough.kube.client import KubeClient
from bough.kube.decoding import WatchEvent, WatchEventKind
from bough.kube.failures import KubeFailure, KubeNotFound
from bough.kube.objects import PODS, KubePod
from bough.kube.watching import Follower, Relisted
from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.bed.objects import pod
from tests.kubernetes.waiting import wait_for


class Mirror:
    """What a follower was told, put together; it notices what must not happen."""

    def __init__(self, client: KubeClient, namespace: str) -> None:
        self.pods: dict[str, KubePod] = {}
        self.lists = 0
        self.kinds: Counter[WatchEventKind] = Counter()
        self.wrong: list[str] = []
        #: Cleared: what comes next is not taken in until it is set again.
        self.gate = threading.Event()
        self.gate.set()
        self.follower = Follower(
            client, PODS, self._hear, namespace=namespace, back_off=BackOff(0.05, 0.5)
        )

    def _hear(self, told: Relisted[KubePod] | WatchEvent[KubePod]) -> None:
        self.gate.wait()
        if isinstance(told, Relisted):
            self.lists += 1
            self.pods = {each.metadata.name: each for each in told.items}
            return
        self.kinds[told.kind] += 1
        name = told.object.metadata.name
        known = self.pods.get(name)
        if told.kind is WatchEventKind.DELETED:
            if self.pods.pop(name, None) is None:
                self.wrong.append(f"{name} was deleted and not there")
            return
        if (known is None) != (told.kind is WatchEventKind.ADDED):
            self.wrong.append(f"{told.kind} of {name}, which was known: {known is not None}")
        if known is not None and known.metadata.resource_version == told.version:
            self.wrong.append(f"{name} at {told.version} was told twice")
        self.pods[name] = told.object

    def versions(self) -> dict[str, str]:
        return {name: each.metadata.resource_version for name, each in dict(self.pods).items()}


@pytest.fixture
def mirror(connect: Callable[..., KubeClient], fresh: str) -> Iterator[Mirror]:
    mirror = Mirror(connect(timeout_s=20.0), fresh)
    mirror.follower.start()
    assert mirror.follower.wait_until_listed(240)
    yield mirror
    mirror.gate.set()
    mirror.follower.stop()
    assert [] == mirror.wrong


def agree(mirror: Mirror, client: KubeClient, namespace: str) -> None:
    """Wait until the mirror shows what is there."""

    def same() -> bool:
        there = client.list(PODS, namespace).items
        shown = {each.metadata.name: each.metadata.resource_version for each in there}
        return shown == mirror.versions()

    wait_for(same, "the mirror to agree")


def test_every_event_is_told_once_and_without_another_list(
    mirror: Mirror, client: KubeClient, fresh: str
) -> None:
    for number in range(30):
        client.create(PODS, pod(f"p-{number}"), fresh)
    for number in range(0, 30, 3):
        client.delete(PODS, f"p-{number}", fresh, grace_s=0)

    agree(mirror, client, fresh)

    assert (1, 20) == (mirror.lists, len(mirror.pods))
    assert (30, 10) == (mirror.kinds[WatchEventKind.ADDED], mirror.kinds[WatchEventKind.DELETED])


def test_an_apiserver_that_is_killed_and_started_again(
    bed: Bed, mirror: Mirror, client: KubeClient, fresh: str
) -> None:
    for number in range(3):
        client.create(PODS, pod(f"before-{number}"), fresh)
        bed.apiserver.kill()
        bed.apiserver.start()
        bed.wait_until_ready()
        client.create(PODS, pod(f"after-{number}"), fresh)
        agree(mirror, client, fresh)
    assert 6 == len(mirror.pods)
    wait_for(lambda: mirror.follower.failure == "", "it to go on")


def test_an_apiserver_that_hangs_is_left_and_found_again(
    bed: Bed,
    mirror: Mirror,
    client: KubeClient,
    fresh: str,
    connect: Callable[..., KubeClient],
) -> None:
    hasty = connect(timeout_s=1.0)
    hasty.list(PODS, fresh)
    bed.apiserver.pause()
    try:
        with pytest.raises(KubeFailure, match=r"took too long|timed out"):
            hasty.list(PODS, fresh)
    finally:
        bed.apiserver.go_on()
    client.create(PODS, pod("a"), fresh)
    agree(mirror, client, fresh)


def test_a_watch_that_falls_silent_is_asked_for_again(
    bed: Bed,
    client: KubeClient,
    fresh: str,
    connect: Callable[..., KubeClient],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A connection of which only this half is left looks like this: nothing ever comes.
    monkeypatch.setattr(bough.kube.client, "WATCH_SILENCE_S", 1.0)
    mirror = Mirror(connect(timeout_s=5.0), fresh)
    mirror.follower.start()
    assert mirror.follower.wait_until_listed(240)
    bed.apiserver.pause()
    try:
        wait_for(lambda: mirror.follower.failure, "the silence to be noticed")
    finally:
        bed.apiserver.go_on()
    client.create(PODS, pod("a"), fresh)
    agree(mirror, client, fresh)
    mirror.follower.stop()
    assert [] == mirror.wrong


def test_an_etcd_that_is_killed_and_started_again(
    bed: Bed, mirror: Mirror, client: KubeClient, fresh: str
) -> None:
    client.create(PODS, pod("before"), fresh)
    bed.etcd.kill()
    with pytest.raises(KubeFailure):
        client.create(PODS, pod("meanwhile"), fresh)
    bed.etcd.start()

    wait_for(lambda: _tried(lambda: client.create(PODS, pod("after"), fresh)), "etcd")

    agree(mirror, client, fresh)


def test_what_was_compacted_away_is_made_up_for_by_a_list(
    bed: Bed, mirror: Mirror, client: KubeClient, fresh: str
) -> None:
    client.create(PODS, pod("kept"), fresh)
    client.create(PODS, pod("lost"), fresh)
    agree(mirror, client, fresh)
    # While it is busy with one event, a pod goes and another comes, and the apiserver forgets it.
    mirror.gate.clear()
    client.create(PODS, pod("busy-with"), fresh)
    client.delete(PODS, "lost", fresh, grace_s=0)
    bed.apiserver.kill()
    bed.apiserver.start()
    bed.wait_until_ready()
    client.create(PODS, pod("new"), fresh)
    bed.compact()
    bed.apiserver.kill()
    bed.apiserver.start()
    bed.wait_until_ready()
    mirror.gate.set()

    agree(mirror, client, fresh)

    assert ({"kept", "busy-with", "new"}, True) == (set(mirror.pods), mirror.lists > 1)


def test_an_old_version_is_gone_after_a_compaction(
    bed: Bed, client: KubeClient, fresh: str
) -> None:
    version = client.list(PODS, fresh).version
    for number in range(3):
        client.create(PODS, pod(f"p-{number}"), fresh)
    bed.compact()
    bed.apiserver.kill()
    bed.apiserver.start()
    bed.wait_until_ready()

    with pytest.raises(bough.kube.client.Gone):
        list(client.watch(PODS, version, fresh, timeout_s=5))


def test_random_changes_during_random_failures_are_all_seen(
    bed: Bed, mirror: Mirror, client: KubeClient, fresh: str
) -> None:
    chance = random.Random(20_260_101)
    over = threading.Event()

    def disturb() -> None:
        while not over.wait(chance.uniform(0.5, 2.0)):
            victim = chance.choice([bed.apiserver, bed.apiserver, bed.etcd])
            victim.kill()
            victim.start()
            bed.wait_until_ready()
            if chance.random() < 0.5:
                bed.compact()

    disturbing = threading.Thread(target=disturb)
    disturbing.start()
    made: list[str] = []
    try:
        for number in range(60):
            name = f"p-{number}"
            wait_for(lambda name=name: _tried(lambda: client.create(PODS, pod(name), fresh)))
            made.append(name)
            if chance.random() < 0.4:
                gone = made.pop(chance.randrange(len(made)))
                wait_for(
                    lambda gone=gone: _tried(lambda: client.delete(PODS, gone, fresh, grace_s=0))
                )
    finally:
        over.set()
        disturbing.join()
    bed.wait_until_ready()

    agree(mirror, client, fresh)

    assert sorted(made) == sorted(mirror.pods)


def _tried(do: Callable[[], object]) -> bool:
    """Whether it is done; it may have been done by a try that was not answered."""
    try:
        do()
    except KubeNotFound:
        return True
    except KubeFailure as error:
        return getattr(error, "reason", "") == "AlreadyExists"
    return True
