"""Backend tests: pods that test each node of a cluster by schedule, as a backend names them.

A test is pod templates, a schedule, and the conditions that its pods set on their nodes. What such
a condition means for a node, and how tests are run, is the backend's: `model.node_test`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from bough.control.change_recording import NO_NOTE, Note, audit, revise
from bough.control.config.pod_templates import read_templates
from bough.control.config.template_variables import CONTAINER, UnknownVariable, fill
from bough.control.fields import read_duration_s
from bough.control.people.access import authorise
from bough.control.site import Site
from bough.errors import Conflict, Invalid, NotFound
from bough.model.access import Action, Actor
from bough.model.change_record import ConfigType
from bough.model.names import plain_name_fault
from bough.model.node_test import CONDITION_PREFIX, BackendTest, NodeTest
from bough.model.pool import Json
from bough.store import settings as setting_store
from bough.store.rows import convert

_SETTING = setting_store.BACKEND_TESTS
_WHERE = "config/backend_test"
#: Shown, and so sent back when an answer is edited; never configured.
_COMPUTED = ("name", "parsed_pod_template")
_MOST_TESTS = 100
_LONGEST = 1_000
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_CONDITION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
#: The fields of a schedule, and what they can be.
_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7))
_PART = re.compile(r"(?:\*|([0-9]{1,2})(?:-([0-9]{1,2}))?)(?:/([0-9]{1,2}))?")


def get_tests(site: Site, actor: Actor) -> dict[str, BackendTest]:
    """All tests, if the actor may read them."""
    authorise(actor, Action.CONFIG_READ, _WHERE, site.role_names)
    with site.store.read() as connection:
        return setting_store.backend_tests(connection)


def get_test(site: Site, actor: Actor, name: str) -> BackendTest:
    """One test."""
    found = get_tests(site, actor)
    if name not in found:
        raise NotFound(f"Backend test {name[:60]} not found.")
    return found[name]


def put_tests(
    site: Site, actor: Actor, changes: Mapping[str, Json], note: Note = NO_NOTE
) -> dict[str, BackendTest]:
    """Add or replace tests by name; `null` removes one that no backend names."""
    authorise(actor, Action.CONFIG_UPDATE, _WHERE, site.role_names)
    written = {name: _read(name, fields) for name, fields in changes.items()}
    with site.store.write() as connection:
        return _write(site, connection, actor, written, note)


def patch_test(
    site: Site, actor: Actor, name: str, changes: Mapping[str, Json], note: Note = NO_NOTE
) -> BackendTest:
    """Change some fields of a test; `null` gives a field its default."""
    authorise(actor, Action.CONFIG_UPDATE, _WHERE, site.role_names)
    with site.store.write() as connection:
        before = setting_store.backend_tests(connection).get(name)
        if before is None:
            raise NotFound(f"Backend test {name[:60]} not found.")
        merged = {**msgspec.to_builtins(before), **changes}
        fields = {key: value for key, value in merged.items() if value is not None}
        return _write(site, connection, actor, {name: _read(name, fields)}, note)[name]


def delete_test(site: Site, actor: Actor, name: str, note: Note = NO_NOTE) -> None:
    """Remove a test that no backend names."""
    get_test(site, actor, name)
    put_tests(site, actor, {name: None}, note)


def check_named(connection: sa.Connection, names: Sequence[str]) -> None:
    """Refuse unknown and duplicate names of tests."""
    known = setting_store.backend_tests(connection)
    for number, name in enumerate(names):
        if name not in known:
            raise Invalid(f"Backend test {name[:60]!r} not found; write it first.")
        if name in names[:number]:
            raise Invalid(f"Backend test {name[:60]!r} is named twice.")


def tests_of(connection: sa.Connection, names: Sequence[str]) -> tuple[list[NodeTest], list[str]]:
    """The tests that a backend names, as it runs them; what is wrong with others."""
    found, templates = setting_store.backend_tests(connection), read_templates(connection)
    made: list[NodeTest] = []
    troubles: list[str] = []
    for name in names:
        test = found.get(name)
        if test is None:
            continue
        try:
            filled = _templates(name, test, templates)
        except Invalid as error:
            troubles.append(error.message)
            continue
        timeout_s = read_duration_s(name, test.test_timeout)
        conditions = tuple(CONDITION_PREFIX + each for each in test.node_conditions)
        made.append(NodeTest(name, test.cron_schedule, timeout_s, conditions, filled))
    return made, troubles


def _write(
    site: Site,
    connection: sa.Connection,
    actor: Actor,
    written: Mapping[str, BackendTest | None],
    note: Note,
) -> dict[str, BackendTest]:
    before = setting_store.backend_tests(connection)
    merged = {**before, **written}
    after = {name: test for name in sorted(merged) if (test := merged[name]) is not None}
    if len(after) > _MOST_TESTS:
        raise Invalid(f"Backend tests: at most {_MOST_TESTS} are possible.")
    templates = read_templates(connection)
    for name in written:
        if name in after:
            _templates(name, after[name], templates)
    _check_unused(connection, set(before) - set(after))
    stored = msgspec.to_builtins(after)
    setting_store.put(connection, _SETTING, stored)
    revise(connection, site, actor, ConfigType.BACKEND_TEST, _SETTING, stored, note)
    # What backends are told follows this counter.
    setting_store.raise_counter(connection, setting_store.SETUP)
    audit(connection, site, actor, "config:Update", _WHERE, before, after)
    site.wake()
    return after


def _check_unused(connection: sa.Connection, gone: set[str]) -> None:
    for backend, notes in setting_store.backend_notes(connection).items():
        for name in sorted(set(notes.tests) & gone):
            raise Conflict(f"Backend test {name} is used by backend {backend}.")


def _templates(
    name: str, test: BackendTest, templates: Mapping[str, Json]
) -> tuple[dict[str, Any], ...]:
    """The pod templates of a test; it has no task, and so none of a task's variables."""
    made: list[dict[str, Any]] = []
    for each in test.common_pod_template:
        if each not in templates:
            raise Invalid(f"Backend test {name}: pod template {each[:60]!r} not found.")
        try:
            made.append(fill(templates[each], {"USER_CONTAINER_NAME": CONTAINER}))
        except UnknownVariable as error:
            raise Invalid(
                f"Backend test {name}: pod template {each} has the variable {error}, which only "
                "tasks have."
            ) from None
    lists = [(each.get("spec") or {}).get("containers") for each in made]
    if not any(isinstance(each, list) and each for each in lists):
        raise Invalid(f"Backend test {name}: its pod templates have no containers to run.")
    return tuple(made)


def _read(name: str, fields: Json) -> BackendTest | None:
    fault = plain_name_fault("Backend test", name)
    if fault is None and not _NAME.fullmatch(name):
        fault = f"Backend test {name[:60]!r}: a name has 1 to 40 small letters, digits and dashes."
    if fault is not None:
        raise Invalid(fault)
    if fields is None:
        return None
    where = f"Backend test {name}"
    if not isinstance(fields, Mapping):
        raise Invalid(f"{where}: expected an object, not {str(fields)[:40]!r}.")
    if fields.get("name", name) != name:
        raise Invalid(f"{where}: its name cannot be {str(fields['name'])[:60]!r}.")
    sent = {key: value for key, value in fields.items() if key not in _COMPUTED}
    try:
        test = convert(sent, BackendTest)
    except msgspec.ValidationError as error:
        raise Invalid(f"{where}: {error}") from None
    _check(where, test)
    return test


def _check(where: str, test: BackendTest) -> None:
    for field in ("node_conditions", "common_pod_template"):
        if not getattr(test, field):
            raise Invalid(f"{where}: {field} must name one at least.")
    for each in test.node_conditions:
        if not _CONDITION.fullmatch(each):
            raise Invalid(
                f"{where}: node_conditions: {each[:60]!r} is not the name of a condition."
            )
    if len(test.description) > _LONGEST:
        raise Invalid(f"{where}: description has more than {_LONGEST:,} characters.")
    if not 1 <= read_duration_s(f"{where}: test_timeout", test.test_timeout) <= 86_400:
        raise Invalid(f"{where}: test_timeout must be from 1s to 1d, not {test.test_timeout}.")
    fault = schedule_fault(test.cron_schedule)
    if fault is not None:
        raise Invalid(f"{where}: cron_schedule: {fault}")


def schedule_fault(text: str) -> str | None:
    """What is wrong with a schedule of five fields; `None`: nothing. Pure."""
    given = text.split()
    if len(given) != len(_FIELDS):
        names = ", ".join(name for name, _, _ in _FIELDS)
        return f"{text[:60]!r} must have five fields: {names}; as 0 2 * * *."
    for (name, low, high), field in zip(_FIELDS, given, strict=True):
        for part in field.split(","):
            found = _PART.fullmatch(part)
            ends = () if found is None else found.groups()[:2]
            numbers = [int(each) for each in ends if each is not None]
            right = all(low <= each <= high for each in numbers) and numbers == sorted(numbers)
            if found is None or not right or int(found[3] or 1) == 0:
                return f"{name} cannot be {part[:60]!r}: it is * or from {low} to {high}."
    return None
