"""Which pods KAI evicted and which others deleted, by what a backend hears, in any order."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bough.backends.kubernetes.kai.backend import KaiBackend
from bough.backends.kubernetes.kai.evictions import KubeEvent, time_ms
from bough.backends.kubernetes.options import KubernetesOptions
from bough.kube.access import Access, FixedCredential
from bough.kube.client import KubeClient
from bough.kube.objects import KubePod
from bough.kube.watching import Relisted
from bough.model.backend import GangTerms, Leadership, Sight
from tests.kubernetes.pods import SITE, launch, pod, start
from tests.unit.test_kai_gangs import event

FOR_EVER_MS = 1 << 60
#: When the pods of `tests.kubernetes.pods` are deleted.
DELETED = "2026-01-31T23:59:59Z"
DAY = "2026-01-31T"


class Heard:
    """A backend that hears only what a test lets it hear."""

    def __init__(self, folder: Path) -> None:
        self.now_ms = time_ms(DELETED)
        client = KubeClient(Access("http://127.0.0.1:1", FixedCredential()))
        options = KubernetesOptions(folder, SITE)
        self.backend = KaiBackend(options, client, lambda: self.now_ms)
        self.backend.lead(Leadership(1, FOR_EVER_MS))

    def begin(self, started: str | None = None) -> None:
        """An attempt that the server has, which ran when another server last saw it."""
        started_ms = None if started is None else time_ms(started)
        order = start(launch(node="", started_ms=started_ms))
        terms = GangTerms("queue", "osmo-low", 1)
        self.backend.start(msgspec.structs.replace(order, gang=terms))

    def pods(self, *found: KubePod) -> None:
        self.backend._hear_pod(Relisted(list(found), "9"))

    def evicts(self, at: str) -> None:
        told: list[KubeEvent] = [event(f"{DAY}{at}")]
        self.backend._hear_events(Relisted(told, "9"))

    def seen(self) -> list[Sight]:
        """What is told of it, once KAI had time to say something."""
        self.now_ms += 3_000
        return [each.sight for each in self.backend.observe()]


@pytest.fixture
def heard(tmp_path: Path) -> Heard:
    return Heard(tmp_path)


def of_gang(created: str, *, deleted: bool) -> KubePod:
    found = pod("Running", deleted=deleted)
    labels = {**(found.metadata.labels or {}), "osmo.group_uuid": "g1"}
    stamp = f"{DAY}{created}"
    metadata = msgspec.structs.replace(found.metadata, labels=labels, creation_timestamp=stamp)
    return msgspec.structs.replace(found, metadata=metadata)


@pytest.mark.parametrize(
    ("evicted_at", "expected"),
    [("23:59:30Z", Sight.PREEMPTED), ("23:50:00Z", Sight.LOST), ("23:59:09Z", Sight.LOST)],
    ids=["after it came", "long before it", "just before it came"],
)
@pytest.mark.parametrize("event_first", [True, False])
def test_a_pod_that_is_deleted_was_evicted_if_kai_said_so_after_it_came(
    heard: Heard, evicted_at: str, expected: Sight, event_first: bool
):
    heard.pods(of_gang("23:59:10Z", deleted=True))
    if event_first:
        heard.evicts(evicted_at)
    heard.pods()
    if not event_first:
        heard.evicts(evicted_at)

    assert [expected] == heard.seen()


@pytest.mark.parametrize(
    ("evicted_at", "expected"), [("23:10:00Z", Sight.PREEMPTED), ("23:04:59Z", Sight.LOST)]
)
@pytest.mark.parametrize("event_first", [True, False])
def test_a_pod_that_went_while_no_server_ran_was_evicted_if_kai_said_so_since_it_started(
    heard: Heard, evicted_at: str, expected: Sight, event_first: bool
):
    if event_first:
        heard.evicts(evicted_at)
    heard.begin(started=f"{DAY}23:05:00Z")
    if not event_first:
        heard.evicts(evicted_at)

    assert [expected] == heard.seen()


def test_a_loss_is_not_told_before_kai_had_time_to_say_that_it_was_an_eviction(heard: Heard):
    heard.pods(of_gang("23:59:10Z", deleted=True))
    heard.pods()

    assert () == heard.backend.observe()
    assert [Sight.LOST] == heard.seen()
