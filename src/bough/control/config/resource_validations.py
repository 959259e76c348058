"""Resource validations: named rules for what tasks may ask for; pools and platforms name them.

Pools name them in `common_resource_validations`, platforms in `resource_validations`.
`control.workflows.resource_rules` applies the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from bough.control.change_recording import NO_NOTE, Note, audit, revise
from bough.control.config.template_variables import faults
from bough.control.people.access import authorise
from bough.control.site import Site
from bough.errors import Conflict, Invalid, NotFound
from bough.model.access import Action, Actor
from bough.model.change_record import ConfigType
from bough.model.names import plain_name_fault
from bough.model.pool import Json, Pool, ResourceAssertion
from bough.store import pools as pool_store
from bough.store import settings as setting_store
from bough.store.rows import convert

_WHERE = "config/resource_validation"
#: Limits: rules under one name, and characters of one operand or message.
MOST_RULES = 100
LONGEST_TEXT = 1_000
_MOST_NAMES = 1_000


def get_validations(site: Site, actor: Actor) -> dict[str, tuple[ResourceAssertion, ...]]:
    """All of them, by name."""
    authorise(actor, Action.CONFIG_READ, _WHERE, site.role_names)
    with site.store.read() as connection:
        return setting_store.resource_validations(connection)


def get_validation(site: Site, actor: Actor, name: str) -> tuple[ResourceAssertion, ...]:
    """The rules of one name."""
    found = get_validations(site, actor)
    if name not in found:
        raise NotFound(f"Resource validation {name[:60]} not found.")
    return found[name]


def put_validations(
    site: Site, actor: Actor, changes: Mapping[str, Json], note: Note = NO_NOTE
) -> dict[str, tuple[ResourceAssertion, ...]]:
    """Add or replace rules by name; `null` removes those of a name that no pool uses."""
    authorise(actor, Action.CONFIG_UPDATE, _WHERE, site.role_names)
    written = {name: _read(name, rules) for name, rules in changes.items()}
    with site.store.write() as connection:
        before = setting_store.resource_validations(connection)
        merged = {**before, **written}
        after = {name: rules for name in sorted(merged) if (rules := merged[name]) is not None}
        if len(after) > _MOST_NAMES:
            raise Invalid(f"Resource validations: at most {_MOST_NAMES:,} are possible.")
        _check_unused(pool_store.list_pools(connection), set(before) - set(after))
        stored = msgspec.to_builtins(after)
        setting_store.put(connection, setting_store.RESOURCE_VALIDATIONS, stored)
        setting_store.raise_version(connection)
        kind, name = ConfigType.RESOURCE_VALIDATION, setting_store.RESOURCE_VALIDATIONS
        revise(connection, site, actor, kind, name, stored, note)
        audit(connection, site, actor, "config:Update", _WHERE, before, after)
    return after


def delete_validation(site: Site, actor: Actor, name: str, note: Note = NO_NOTE) -> None:
    """Remove the rules of a name that no pool uses."""
    get_validation(site, actor, name)
    put_validations(site, actor, {name: None}, note)


def _read(name: str, rules: Json) -> tuple[ResourceAssertion, ...] | None:
    fault = plain_name_fault("Resource validation", name)
    if fault is not None:
        raise Invalid(fault)
    if rules is None:
        return None
    where = f"Resource validation {name}"
    try:
        found = convert(rules, tuple[ResourceAssertion, ...])
    except msgspec.ValidationError as error:
        raise Invalid(f"{where}: {error}") from None
    if len(found) > MOST_RULES:
        raise Invalid(f"{where}: it has {len(found)} rules; at most {MOST_RULES} are possible.")
    for number, rule in enumerate(found):
        for text in _faults(rule):
            raise Invalid(f"{where}[{number}]{text}")
    return found


def _faults(rule: ResourceAssertion) -> Iterator[str]:
    for field in ("left_operand", "right_operand", "assert_message"):
        text: str = getattr(rule, field)
        if len(text) > LONGEST_TEXT:
            yield f".{field}: has more than {LONGEST_TEXT:,} characters."
        yield from faults({field: text})


def _check_unused(pools: list[Pool], gone: set[str]) -> None:
    for pool in pools:
        platforms = pool.platforms.values()
        named = {
            *pool.common_resource_validations,
            *(each for platform in platforms for each in platform.resource_validations),
        }
        for name in sorted(named & gone):
            raise Conflict(f"Resource validation {name} is used by pool {pool.name}.")
