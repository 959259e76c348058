"""The policy by which cycles decide, as configuration: show, change, roll back.

It is kept as a whole document, so that a later version of Bough whose preset has changed decides as
before. Every change raises the version that plans are made for: plans of the old policy are
discarded, and every server that shares the database reads the new one before it plans again.
"""

from __future__ import annotations

from typing import Any

import msgspec
import sqlalchemy as sa

from bough.control.change_recording import NO_NOTE, SYSTEM_ACTOR, Note, audit, revise
from bough.control.people.access import authorise
from bough.control.site import Site
from bough.errors import Invalid
from bough.formats.policy_file import (
    PRESET,
    WrittenPolicy,
    policy_document,
    read_policy_file,
    read_policy_text,
    read_policy_value,
    read_stored_policy,
    refuse_faults,
)
from bough.model.access import Action, Actor
from bough.model.change_record import ConfigType
from bough.model.policy import OSMO, Policy
from bough.model.pool import Json
from bough.model.problem import problem_line
from bough.store import change_records as record_store
from bough.store import settings as setting_store

_POLICY = "policy"
_SUBJECT = "config/policy"
_AT_FIRST = policy_document(OSMO, OSMO.name)
#: The note of the revision that holds the policy before the first change.
_FIRST_NOTE = Note("the policy at first")


class Written(msgspec.Struct, frozen=True):
    """A policy as it is sent: fields, or the text of a policy file."""

    fields: Json = None
    text: str | None = None
    #: The name of the file.
    source: str = ""


class PolicyReader:
    """The policy of the store, read again only where another one is written there."""

    def __init__(self) -> None:
        self._document: Json = None
        self._policy = OSMO

    def read(self, connection: sa.Connection) -> Policy:
        """The policy as it is."""
        document = setting_store.get(connection, _POLICY)
        if document != self._document:
            self._policy = OSMO if document is None else read_stored_policy(document).policy
            self._document = document
        return self._policy


def grace_s(policy: Policy) -> int:
    """How long a victim is given to end by itself, in whole seconds and not less than it says."""
    return -(-policy.gangs.grace_ms // 1_000)


def get_policy(site: Site, actor: Actor) -> dict[str, Any]:
    """The policy with all its fields, and the preset that it began with."""
    authorise(actor, Action.CONFIG_READ, _SUBJECT, site.role_names)
    with site.store.read() as connection:
        return _read_document(connection)


def patch_policy(
    site: Site, actor: Actor, written: Written, note: Note = NO_NOTE
) -> dict[str, Any]:
    """Change some fields: of the named preset, or else of the current policy."""
    return _write(site, actor, written, note, fresh=False)


def put_policy(site: Site, actor: Actor, written: Written, note: Note = NO_NOTE) -> dict[str, Any]:
    """Replace it; what is left out is as the preset has it, `osmo` where none is named."""
    return _write(site, actor, written, note, fresh=True)


def start_with(site: Site, path: str) -> None:
    """Set the policy to that of a file; nothing is written where it is the same."""
    after = _document(read_policy_file(path), OSMO.name)
    with site.store.write() as connection:
        if after != _read_document(connection):
            _store(site, connection, SYSTEM_ACTOR, after, Note(f"serve --policy {path}"))


def stored_faults(site: Site) -> list[str]:
    """Parts of the stored policy that this version cannot use.

    The preset decides instead.
    """
    with site.store.read() as connection:
        document = setting_store.get(connection, _POLICY)
    found = [] if document is None else read_stored_policy(document).problems
    return [f"The stored policy: {problem_line(each)}" for each in found]


def _write(
    site: Site, actor: Actor, written: Written, note: Note, *, fresh: bool
) -> dict[str, Any]:
    authorise(actor, Action.CONFIG_UPDATE, _SUBJECT, site.role_names)
    with site.store.write() as connection:
        before = _AT_FIRST if fresh else _read_document(connection)
        after = _document(_read(written, read_stored_policy(before).policy), before[PRESET])
        _store(site, connection, actor, after, note)
    site.wake()
    return after


def _store(
    site: Site, connection: sa.Connection, actor: Actor, after: dict[str, Any], note: Note
) -> None:
    before = _read_document(connection)
    setting_store.put(connection, _POLICY, after)
    if record_store.last_revision(connection, ConfigType.POLICY, _POLICY) is None:
        # So that the first change has a difference, and can be rolled back.
        revise(connection, site, SYSTEM_ACTOR, ConfigType.POLICY, _POLICY, before, _FIRST_NOTE)
    revise(connection, site, actor, ConfigType.POLICY, _POLICY, after, note)
    setting_store.raise_version(connection)
    audit(connection, site, actor, Action.CONFIG_UPDATE, _SUBJECT, before, after)


def _read(written: Written, start: Policy) -> WrittenPolicy:
    if (written.text is None) == (written.fields is None):
        raise Invalid("Send either the fields of the policy or the text of a file, not both.")
    if written.text is not None:
        return read_policy_text(written.text, written.source or "policy", start)
    return read_policy_value(written.fields, start)


def _document(found: WrittenPolicy, preset: str) -> dict[str, Any]:
    return policy_document(refuse_faults(found), found.preset or preset)


def _read_document(connection: sa.Connection) -> dict[str, Any]:
    """The policy as a document of this version, even where an older version wrote it."""
    stored = setting_store.get(connection, _POLICY)
    if stored is None:
        return _AT_FIRST
    return policy_document(read_stored_policy(stored).policy, stored.get(PRESET, OSMO.name))
