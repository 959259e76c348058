"""Whether an apiserver answers at all: asked regularly, because a watch can be silent for long."""

from __future__ import annotations

import threading

from bough.kube.client import KubeClient
from bough.kube.failures import KubeFailure, Unreachable

#: How often to ask, and how long to wait for the answer.
EVERY_S = 5.0
PATIENCE_S = 10.0


class Pulse:
    """Asks an apiserver regularly, in a thread of its own."""

    def __init__(
        self, client: KubeClient, every_s: float = EVERY_S, patience_s: float = PATIENCE_S
    ) -> None:
        self._client = client
        self._every_s = every_s
        self._patience_s = patience_s
        self._stopping = threading.Event()
        #: Why it does not answer; empty while it does.
        self.failure = ""
        self._thread = threading.Thread(target=self._run, name="kube-pulse", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, without waiting for an answer in progress."""
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.wait(self._every_s):
            try:
                self._client.ask("GET", "/version", timeout_s=self._patience_s)
            except Unreachable as error:
                self.failure = error.message
                continue
            except KubeFailure:
                # Any answer shows that it is there.
                pass
            self.failure = ""
