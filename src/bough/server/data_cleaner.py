"""Removes expired data of pools, in a thread of its own."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from bough.control.site import Site
from bough.control.workflows.pool_data import clean_data
from bough.errors import BoughError
from bough.model.backend import TaskFiles
from bough.server.repeated_work import RepeatedWork

LOG = logging.getLogger(__name__)

#: How often to clean; data that is kept for days need not expire to the minute.
LOOK_S = 600.0


class DataCleaner(RepeatedWork):
    """Cleans the data of pools that this server's backends keep, first what a crash has left."""

    def __init__(
        self, site: Site, backends: Mapping[str, TaskFiles], look_s: float = LOOK_S
    ) -> None:
        super().__init__("data", self._clean, look_s)
        self._site = site
        self._backends = backends

    def _clean(self) -> None:
        try:
            count = clean_data(self._site, self._backends)
            if count:
                LOG.info("%d expired files of pools were removed", count)
        except BoughError as error:
            LOG.warning("the data of pools could not be cleaned: %s", error)
        except Exception:
            LOG.exception("the data of pools could not be cleaned")
