"""What administrators say about a backend: a description, its dashboards, tests of its nodes.

All else that existing clients show of a backend is decided where the server is started, or observed
in the cluster. It may be sent back as it was shown; a change of it is refused with its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from bough.control.change_recording import NO_NOTE, Note, audit, revise
from bough.control.config.backend_tests import check_named
from bough.control.fields import read_address
from bough.control.people.access import authorise
from bough.control.site import Site
from bough.errors import Invalid, NotFound
from bough.model.access import Action, Actor
from bough.model.change_record import ConfigType
from bough.model.pool import BackendNotes, Json
from bough.store import nodes as node_store
from bough.store import settings as setting_store

_LONGEST = 1_000
#: What is observed of it changes with every look, and is not compared.
_SEEN = (
    "name",
    "online",
    "offline",
    "last_heartbeat",
    "created_date",
    "nodes",
    "gpus",
    "version",
    "k8s_namespace",
)


def put_notes(
    site: Site,
    actor: Actor,
    backend: str,
    changes: Mapping[str, Json],
    shown: Mapping[str, Json],
    note: Note = NO_NOTE,
) -> None:
    """Change what is said about a backend; what is left out stays, `null` removes.

    shown:  all that is answered about it, which may be sent back
    """
    authorise(actor, Action.CONFIG_UPDATE, "config/backend", site.role_names)
    with site.store.write() as connection:
        if node_store.find_backend(connection, backend) is None:
            raise NotFound(f"Backend {backend} not found.")
        notes = setting_store.backend_notes(connection)
        before = notes.get(backend, BackendNotes())
        after = _changed(f"Backend {backend}", before, changes, shown)
        if after.tests != before.tests:
            _check_tests(site, connection, backend, after.tests)
        _write(connection, {**notes, backend: after})
        document = msgspec.to_builtins(after)
        revise(connection, site, actor, ConfigType.BACKEND, backend, document, note)
        # What backends are told of their tests follows this counter.
        setting_store.raise_counter(connection, setting_store.SETUP)
        subject = f"config/backend/{backend}"
        audit(connection, site, actor, "config:Update", subject, before, after)
    site.wake()


def forget_notes(connection: sa.Connection, backend: str) -> None:
    """Forget what was said about a backend that is forgotten."""
    notes = setting_store.backend_notes(connection)
    if notes.pop(backend, None) is not None:
        _write(connection, notes)


def _write(connection: sa.Connection, notes: Mapping[str, BackendNotes]) -> None:
    kept = {name: msgspec.to_builtins(notes[name]) for name in sorted(notes)}
    setting_store.put(connection, setting_store.BACKEND_NOTES, kept)


def _changed(
    where: str, before: BackendNotes, changes: Mapping[str, Json], shown: Mapping[str, Json]
) -> BackendNotes:
    values: dict[str, Any] = {}
    for name, value in changes.items():
        if name == "tests":
            values[name] = _names(f"{where}: tests", value)
        elif name in BackendNotes.__struct_fields__:
            values[name] = _text(f"{where}: {name}", name, value)
        elif name not in shown:
            known = ", ".join(BackendNotes.__struct_fields__)
            raise Invalid(f"{where}: there is no field {str(name)[:60]!r}; there is {known}.")
        elif name not in _SEEN and value is not None and value != shown[name]:
            raise Invalid(f"{where}: {name} cannot be set here; it is decided by the server.")
    return msgspec.structs.replace(before, **values)


def _check_tests(site: Site, connection: sa.Connection, backend: str, tests: Sequence[str]) -> None:
    able = site.abilities_of(backend)
    if tests and not (able.makes_pods and able.places_tasks):
        raise Invalid(
            f"Backend {backend}: tests: only a backend that makes pods, and decides where they "
            "run, tests its nodes."
        )
    check_named(connection, tests)


def _names(where: str, value: Json) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise Invalid(f"{where} must be a list of names, not {repr(value)[:60]}.")
    return tuple(value)


def _text(where: str, name: str, value: Json) -> str:
    if value in (None, ""):
        return ""
    if name != "description":
        return read_address(where, value)
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise Invalid(f"{where} must be a text of at most {_LONGEST:,} characters.")
    return value
