"""Where what a workflow wrote is kept: by a backend of this server, or on another machine."""

from __future__ import annotations

from collections.abc import Mapping

from bough.control.site import Site
from bough.model.backend import TaskFiles
from bough.model.pool import BackendRecord
from bough.store import nodes as node_store


def find_elsewhere(
    site: Site, backends: Mapping[str, TaskFiles], backend: str
) -> BackendRecord | None:
    """A backend, where it belongs to a machine that is not this server's."""
    with site.store.read() as connection:
        record = node_store.find_backend(connection, backend)
    if record is None or record.machine is None:
        return None
    own = backends.get(backend)
    machine = None if own is None else own.machine
    return None if machine is not None and machine.id == record.machine else record


def place_of(record: BackendRecord) -> str:
    """Where that is, for people."""
    at = "" if record.address is None else f" at {record.address}"
    return f"on machine {record.place}, and the server there{at} shows it"
