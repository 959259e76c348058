"""Clusters that test their nodes by schedule: they are told of every change of the tests.

The backend runs the tests; here is decided which, and what it cannot do becomes an event.
"""

from __future__ import annotations

from bough.control.change_recording import happen
from bough.control.config.backend_tests import tests_of
from bough.control.site import Site
from bough.model.change_record import EventKind
from bough.model.node_test import KeepsTests
from bough.model.pool import BackendNotes
from bough.store import settings as setting_store


class TestWatch:
    """One cluster."""

    #: For pytest: it is no test itself.
    __test__ = False

    def __init__(self, site: Site, backend: KeepsTests) -> None:
        self._site = site
        self._backend = backend
        #: How often configuration had changed when the tests were last read.
        self._setup: int | None = None
        #: What is wrong with the tests themselves; all that was reported.
        self._faults: tuple[str, ...] = ()
        self._told: frozenset[str] = frozenset()

    def attend(self) -> None:
        """Tell what is new, and record what cannot be done."""
        name = self._backend.name
        with self._site.store.read() as connection:
            setup = setting_store.counter(connection, setting_store.SETUP)
            if setup != self._setup:
                notes = setting_store.backend_notes(connection).get(name, BackendNotes())
                tests, faults = tests_of(connection, notes.tests)
                self._backend.keep_tests(tuple(tests))
                self._setup, self._faults = setup, tuple(faults)
        troubles = frozenset((*self._faults, *self._backend.test_troubles()))
        if troubles != self._told:
            self._record(sorted(troubles - self._told))
            self._told = troubles

    def _record(self, troubles: list[str]) -> None:
        if not troubles:
            return
        name, kind = self._backend.name, EventKind.CLUSTER_TROUBLE
        with self._site.store.write() as connection:
            for text in troubles:
                data = {"backend": name}
                happen(connection, self._site, kind, name, message=text, data=data)
