"""Looking back: audit, history of configuration with diffs, rollback, events.

A rollback is a change like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bough.control.change_recording import NO_NOTE, Note, audit, differences
from bough.control.config import (
    backend_tests,
    group_templates,
    pod_templates,
    policy,
    resource_validations,
    service_settings,
    settings,
)
from bough.control.fields import check_tags
from bough.control.people.access import authorise
from bough.control.pools import pools
from bough.control.pools.pools import PoolChange
from bough.control.records.event_stream import visible
from bough.control.site import Site
from bough.errors import Conflict, NotFound
from bough.model.access import Action, Actor
from bough.model.change_record import AuditEntry, ConfigType, Difference, Revision, StoredEvent
from bough.model.pool import Json
from bough.model.settings import WorkflowSettings
from bough.store import change_records as record_store
from bough.store import event_order

#: How many revisions are looked at together.
AT_ONCE = 100
#: What fits into every database.
_LARGEST = 2**53
#: Kinds that are one object with a part for each name: how they are read and written.
BY_NAME: dict[ConfigType, tuple[Callable[..., Mapping[str, Json]], Callable[..., object]]] = {
    ConfigType.POD_TEMPLATE: (pod_templates.get_templates, pod_templates.put_templates),
    ConfigType.GROUP_TEMPLATE: (group_templates.get_templates, group_templates.put_templates),
    ConfigType.BACKEND_TEST: (backend_tests.get_tests, backend_tests.put_tests),
    ConfigType.RESOURCE_VALIDATION: (
        resource_validations.get_validations,
        resource_validations.put_validations,
    ),
}


def list_audit(
    site: Site,
    actor: Actor,
    *,
    subject: str | None = None,
    who: str | None = None,
    before: int | None = None,
    limit: int = 100,
) -> list[AuditEntry]:
    """Who changed what, the latest first."""
    authorise(actor, Action.AUDIT_READ, names=site.role_names)
    with site.store.read() as connection:
        return record_store.list_audit(
            connection, subject=subject, actor=who, before=before, limit=limit
        )


def list_revisions(
    site: Site,
    actor: Actor,
    *,
    types: Sequence[ConfigType] = (),
    name: str | None = None,
    newest_first: bool = True,
    limit: int = 20,
    offset: int = 0,
) -> list[Revision]:
    """How configuration was changed."""
    authorise(actor, Action.CONFIG_READ, names=site.role_names)
    with site.store.read() as connection:
        return record_store.list_revisions(
            connection,
            types=types,
            name=name,
            newest_first=newest_first,
            limit=limit,
            offset=offset,
        )


def find_revisions(
    site: Site,
    actor: Actor,
    revision: int,
    *,
    types: Sequence[ConfigType] = (),
    name: str | None = None,
) -> list[Revision]:
    """The changes of one number, the latest first: one of each kind at most."""
    authorise(actor, Action.CONFIG_READ, names=site.role_names)
    with site.store.read() as connection:
        found = record_store.revisions_numbered(connection, revision, types)
    return [each for each in reversed(found) if name in (None, each.name)]


def config_at(site: Site, actor: Actor, config_type: ConfigType, revision: int) -> dict[str, Json]:
    """All objects of a kind as they were right after a revision, by name."""
    authorise(actor, Action.CONFIG_READ, names=site.role_names)
    _check_number(config_type, revision)
    with site.store.read() as connection:
        found = record_store.revisions_at(connection, config_type, revision)
    if not any(each.revision == revision and each.removed_ms is None for each in found):
        raise NotFound(f"{config_type} has no revision {revision}.")
    return {each.name: each.data for each in found if each.data is not None}


def revisions_at(
    site: Site, actor: Actor, at_ms: int, types: Sequence[ConfigType] = ()
) -> list[Revision]:
    """The last change of each kind up to a time, by kind."""
    authorise(actor, Action.CONFIG_READ, names=site.role_names)
    found: list[Revision] = []
    with site.store.read() as connection:
        for kind in types or tuple(ConfigType):
            page, offset = True, 0
            while page:
                page = record_store.list_revisions(
                    connection, types=(kind,), newest_first=True, limit=AT_ONCE, offset=offset
                )
                offset += AT_ONCE
                earlier = [each for each in page if each.created_ms <= at_ms]
                if earlier:
                    found.append(earlier[0])
                    break
    return found


def diff(
    site: Site, actor: Actor, config_type: ConfigType, one: int, other: int
) -> list[Difference]:
    """What is different between two revisions of a kind."""
    before = config_at(site, actor, config_type, one)
    after = config_at(site, actor, config_type, other)
    return list(differences(before, after))


def tag_revision(
    site: Site,
    actor: Actor,
    config_type: ConfigType,
    revision: int,
    add: Sequence[str] = (),
    remove: Sequence[str] = (),
) -> None:
    """Add and remove tags of a recorded change; the configuration itself stays as it is."""
    authorise(actor, Action.CONFIG_UPDATE, names=site.role_names)
    _check_number(config_type, revision)
    with site.store.write() as connection:
        found = record_store.revisions_numbered(connection, revision, (config_type,))
        if not found:
            raise NotFound(f"{config_type} has no revision {revision}.")
        before = found[0].tags
        tags = tuple(sorted(({*before} | {*add}) - {*remove}))
        check_tags(add, kept=len(tags))
        record_store.tag_revision(connection, config_type, revision, tags)
        subject = f"config/{config_type.lower()}/{revision}"
        audit(connection, site, actor, "config:Update", subject, before, tags)


def remove_revision(site: Site, actor: Actor, config_type: ConfigType, revision: int) -> None:
    """Take a change out of the history; the latest of a kind, which is how things are, stays.

    Nothing else changes: not what is configured, nor what other revisions show, nor the audit.
    The life of a subpool is never shortened: it is all that is left of one that was archived.
    """
    authorise(actor, Action.CONFIG_UPDATE, names=site.role_names)
    _check_number(config_type, revision)
    if config_type is ConfigType.SUBPOOL:
        raise Conflict(
            f"Revision {revision} of {config_type} cannot be removed: "
            "the history of subpools is kept for good."
        )
    with site.store.write() as connection:
        found = record_store.revisions_numbered(connection, revision, (config_type,))
        if not found:
            raise NotFound(f"{config_type} has no revision {revision}.")
        now_ms = site.clock.now_ms()
        if not record_store.remove_revision(connection, config_type, revision, now_ms, actor.name):
            raise Conflict(
                f"Revision {revision} of {config_type} cannot be removed: it is the latest."
            )
        subject = f"config/{config_type.lower()}/{revision}"
        audit(connection, site, actor, "config:Update", subject, found[0], None)


def rollback_settings(
    site: Site, actor: Actor, revision: int, note: Note = NO_NOTE
) -> WorkflowSettings:
    """Restore the settings of a revision."""
    authorise(actor, Action.CONFIG_UPDATE, names=site.role_names)
    (wanted,) = config_at(site, actor, ConfigType.WORKFLOW, revision).values()
    return settings.put_workflow_settings(site, actor, wanted, note)


def rollback_service(site: Site, actor: Actor, revision: int, note: Note = NO_NOTE) -> None:
    """Restore the settings of the service of a revision."""
    authorise(actor, Action.CONFIG_UPDATE, names=site.role_names)
    (wanted,) = config_at(site, actor, ConfigType.SERVICE, revision).values()
    service_settings.put_service_settings(site, actor, wanted, {}, note)


def rollback_policy(
    site: Site, actor: Actor, revision: int, note: Note = NO_NOTE
) -> dict[str, Json]:
    """Restore the policy of a revision."""
    authorise(actor, Action.CONFIG_UPDATE, names=site.role_names)
    (wanted,) = config_at(site, actor, ConfigType.POLICY, revision).values()
    return policy.put_policy(site, actor, policy.Written(fields=wanted), note)


def rollback_named(
    site: Site, actor: Actor, kind: ConfigType, revision: int, note: Note = NO_NOTE
) -> None:
    """Restore what is configured by name; names that came later are removed."""
    authorise(actor, Action.CONFIG_UPDATE, names=site.role_names)
    (wanted,) = config_at(site, actor, kind, revision).values()
    get, put = BY_NAME[kind]
    later = set(get(site, actor)) - set(wanted)
    put(site, actor, {**dict.fromkeys(later), **wanted}, note)


def rollback_pools(site: Site, actor: Actor, revision: int, note: Note = NO_NOTE) -> PoolChange:
    """Restore the pools of a revision. Subpools are not configuration and stay as they are.

    Pools that were created later stay too: deleting them is a decision of its own.
    """
    authorise(actor, Action.CONFIG_UPDATE, names=site.role_names)
    wanted = config_at(site, actor, ConfigType.POOL, revision)
    return pools.put_pools(site, actor, wanted, note)


def _check_number(config_type: ConfigType, revision: int) -> None:
    """Refuse a number that no revision has, and that no database would take."""
    if not 0 < revision <= _LARGEST:
        raise NotFound(f"{config_type} has no revision {str(revision)[:30]}.")


def events_after(site: Site, actor: Actor, number: int, limit: int = 500) -> list[StoredEvent]:
    """The events since then, of pools that the actor may read."""
    authorise(actor, Action.EVENT_READ, names=site.role_names)
    with site.store.read() as connection:
        found = event_order.events_after(connection, number, limit=limit)
        return visible(site, connection, actor, found)


def last_event(site: Site) -> int:
    """The number of the last event, to start following from."""
    with site.store.read() as connection:
        return event_order.last_event(connection)
