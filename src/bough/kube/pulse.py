"""Whether an apiserver answers at all: asked now and then, as a watch may well be silent."""

from __future__ import annotations

import threading

from bough.kube.client import KubeClient
from bough.kube.failures import KubeFailure, Unreachable

#: How often it is asked, and how long it may take.
EVERY_S = 5.0
PATIENCE_S = 10.0


class Pulse:
    """Asks an apiserver in a thread of its own."""

    def __init__(
        self, client: KubeClient, every_s: float = EVERY_S, patience_s: float = PATIENCE_S
    ) -> None:
        self._client = client
        self._every_s = every_s
        self._patience_s = patience_s
        self._stopping = threading.Event()
        #: Why it does not answer, while it does not; empty: it does.
        self.failure = ""
        self._thread = threading.Thread(target=self._run, name="kube-pulse", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; a question that is not answered is not waited for."""
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.wait(self._every_s):
            try:
                self._client.ask("GET", "/version", timeout_s=self._patience_s)
            except Unreachable as error:
                self.failure = error.message
                continue
            except KubeFailure:
                # Whatever it says, it is there.
                pass
            self.failure = ""
