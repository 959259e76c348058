"""Removes expired data of pools, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping

from bough.control.site import Site
from bough.control.workflows.pool_files import clean_data
from bough.errors import BoughError
from bough.model.backend import TaskFiles

LOG = logging.getLogger(__name__)

#: How often to clean; data that is kept for days need not expire to the minute.
LOOK_S = 600.0


class DataCleaner:
    """Cleans the data of the pools that this server's backends keep."""

    def __init__(
        self, site: Site, backends: Mapping[str, TaskFiles], look_s: float = LOOK_S
    ) -> None:
        self._site = site
        self._backends = backends
        self._look_s = look_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="data", daemon=True)

    def start(self) -> None:
        """Start, first with what a crash has left."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while True:
            try:
                count = clean_data(self._site, self._backends)
                if count:
                    LOG.info("%d files of pools were kept long enough, and are removed", count)
            except BoughError as error:
                LOG.warning("the data of pools could not be cleaned: %s", error)
            except Exception:
                LOG.exception("the data of pools could not be cleaned")
            if self._stop.wait(self._look_s):
                return
