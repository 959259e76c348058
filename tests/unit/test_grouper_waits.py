"""When the grouper begins to list owners: not while it needs none and pods are being bound."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bough.formats.live.objects import LiveMetadata, LiveOwnerReference, LivePod, LivePodSpec
from bough.kube.watching import Relisted
from bough.pod_grouper import grouper as module
from bough.pod_grouper.grouper import Grouper
from bough.pod_grouper.kinds import FOLLOWED, PODS
from tests.scripted_apiserver import (
    SOON_S,
    Exchange,
    ScriptedApiserver,
    client_of,
    close_connections,
    wait_for,
)


@pytest.fixture(autouse=True)
def _close_connections() -> Iterator[None]:
    yield
    close_connections()


def _no_such_kind(exchange: Exchange) -> None:
    exchange.refuse(404, "NotFound")


def _pod(*owners: LiveOwnerReference) -> LivePod:
    metadata = LiveMetadata(name="a", namespace="team", uid="1", owner_references=owners)
    return LivePod(metadata, LivePodSpec(scheduler_name="bough"))


def test_owners_are_not_listed_while_pods_without_owners_are_bound(tmp_path: Path) -> None:
    busy, looked = [True], threading.Semaphore(0)

    def is_busy() -> bool:
        looked.release()
        return busy[0]

    with ScriptedApiserver(tmp_path, _no_such_kind) as server:
        made = Grouper(client_of(server), "bough", lambda *_: None, is_busy)
        made.start()
        made.hear(PODS, Relisted([_pod()], "1"))
        assert all(looked.acquire(timeout=SOON_S) for _ in range(3))
        assert [] == server.asked
        busy[0] = False
        wait_for(lambda: len(server.asked) >= len(FOLLOWED))
        made.stop(SOON_S)


def test_a_pod_with_an_owner_has_them_listed_at_once(tmp_path: Path) -> None:
    owner = LiveOwnerReference("batch/v1", "Job", "j", "2", controller=True)
    with ScriptedApiserver(tmp_path, _no_such_kind) as server:
        made = Grouper(client_of(server), "bough", lambda *_: None, lambda: True)
        made.start()
        made.hear(PODS, Relisted([_pod(owner)], "1"))
        wait_for(lambda: len(server.asked) >= len(FOLLOWED))
        made.stop(SOON_S)


def test_owners_are_listed_after_a_while_in_any_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "YIELDS_S", 0.1)
    with ScriptedApiserver(tmp_path, _no_such_kind) as server:
        made = Grouper(client_of(server), "bough", lambda *_: None, lambda: True)
        made.start()
        wait_for(lambda: len(server.asked) >= len(FOLLOWED))
        made.stop(SOON_S)
