"""An apiserver that hangs is noticed, although no connection breaks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bough.backends.kubernetes import backend as backend_module
from bough.backends.kubernetes.backend import KubernetesBackend
from bough.backends.kubernetes.options import KubernetesOptions
from bough.errors import Unavailable
from bough.kube.access import Access, FixedCredential, Text
from bough.kube.apiserver_liveness import Pulse
from bough.kube.client import KubeClient
from tests.kubernetes.pods import SITE
from tests.scripted_apiserver import Exchange, ScriptedApiserver

#: Only a bound of patience.
SOON_S = 60
EMPTY = {"metadata": {"resourceVersion": "1"}, "items": []}


class Hanging:
    """An apiserver whose watches are silent, and that answers nothing else while it hangs."""

    def __init__(self, folder: Path) -> None:
        self.hangs = threading.Event()
        self.over = threading.Event()
        self.server = ScriptedApiserver(folder, self._behave)
        access = Access(self.server.url, FixedCredential(), Text(path=str(self.server.authority)))
        self.client = KubeClient(access)

    def _behave(self, exchange: Exchange) -> None:
        if "watch=1" in exchange.path:
            exchange.begin_lines()
            self.over.wait(SOON_S)
            return
        while self.hangs.is_set() and not self.over.wait(0.01):
            pass
        exchange.answer(EMPTY)


@pytest.fixture
def hanging(tmp_path: Path):
    made = Hanging(tmp_path)
    with made.server:
        yield made
        made.over.set()
        made.client.close()


def until(so: Callable[[], bool]) -> None:
    until = time.monotonic() + SOON_S
    while not so():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_an_apiserver_that_does_not_answer_fails_until_it_does(hanging: Hanging):
    pulse = Pulse(hanging.client, every_s=0.01, patience_s=0.3)
    pulse.start()
    hanging.hangs.set()
    until(lambda: "" != pulse.failure)

    hanging.hangs.clear()

    until(lambda: "" == pulse.failure)
    pulse.stop()


def test_nothing_is_offered_by_a_cluster_whose_apiserver_hangs_while_its_watches_are_silent(
    hanging: Hanging, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(backend_module, "_AWAY_S", 0.0)
    options = KubernetesOptions(tmp_path / "logs", SITE)
    backend = KubernetesBackend(options, hanging.client, lambda: 1_000)
    backend._pulse = Pulse(hanging.client, every_s=0.01, patience_s=0.3)
    backend.begin()

    def is_away() -> bool:
        try:
            return backend.nodes() is None
        except Unavailable:
            return True

    # On a busy machine an answer may take longer than the patience, before it hangs.
    until(lambda: not is_away())

    hanging.hangs.set()

    until(is_away)
    hanging.over.set()
    backend.close()
