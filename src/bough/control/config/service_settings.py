"""Settings of the service: versions of clients, and how long tokens may be valid.

On the wire they have the places that existing clients know: `cli_config` and `service_auth`. All
else that such clients show there is decided when the server is started; a change of it is refused
with its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from bough.control.change_recording import NO_NOTE, Note, audit, revise
from bough.control.fields import duration_text, read_address, read_duration_s
from bough.control.people.access import authorise
from bough.control.site import Site
from bough.errors import Invalid
from bough.model.access import Action, Actor
from bough.model.change_record import ConfigType
from bough.model.pool import Json
from bough.model.settings import DAY_S, ServiceSettings
from bough.store import settings as setting_store

_SETTING = setting_store.SERVICE
_SUBJECT = "config/service"
_WHERE = "Service configuration"
_PARTS = {
    "cli_config": ("latest_version", "min_supported_version", "client_install_url"),
    "service_auth": ("max_token_duration",),
}
_VERSION = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})(?:\.[A-Za-z0-9]{1,40})?")


def get_service_settings(site: Site, actor: Actor) -> ServiceSettings:
    """The settings, if the actor may read them."""
    authorise(actor, Action.CONFIG_READ, _SUBJECT, site.role_names)
    with site.store.read() as connection:
        return setting_store.service_settings(connection)


def patch_service_settings(
    site: Site,
    actor: Actor,
    changes: Json,
    started_with: Mapping[str, str],
    note: Note = NO_NOTE,
) -> ServiceSettings:
    """Change some of them. started_with: what is shown beside them, and may be sent back."""
    return _write(site, actor, changes, started_with, note, fresh=False)


def put_service_settings(
    site: Site,
    actor: Actor,
    values: Json,
    started_with: Mapping[str, str],
    note: Note = NO_NOTE,
) -> ServiceSettings:
    """Replace them; what is left out gets its default."""
    return _write(site, actor, values, started_with, note, fresh=True)


def service_document(found: ServiceSettings) -> dict[str, dict[str, str | None]]:
    """The settings as they are sent, and kept in the history."""
    longest_s = found.max_token_duration_s
    return {
        "cli_config": {name: getattr(found, name) for name in _PARTS["cli_config"]},
        "service_auth": {
            "max_token_duration": None if longest_s is None else duration_text(longest_s)
        },
    }


def read_version(text: str) -> tuple[int, int, int] | None:
    """The parts of a version such as 6.4.0; `None`: it is not a version."""
    found = _VERSION.fullmatch(text)
    return None if found is None else (int(found[1]), int(found[2]), int(found[3]))


def _write(
    site: Site,
    actor: Actor,
    changes: Json,
    started_with: Mapping[str, str],
    note: Note,
    *,
    fresh: bool,
) -> ServiceSettings:
    authorise(actor, Action.CONFIG_UPDATE, _SUBJECT, site.role_names)
    with site.store.write() as connection:
        before = setting_store.service_settings(connection)
        after = _changed(ServiceSettings() if fresh else before, changes, started_with)
        setting_store.put(connection, _SETTING, msgspec.to_builtins(after))
        revise(connection, site, actor, ConfigType.SERVICE, _SETTING, service_document(after), note)
        setting_store.raise_counter(connection, setting_store.SETUP)
        audit(connection, site, actor, "config:Update", _SUBJECT, before, after)
    return after


def _changed(
    settings: ServiceSettings, changes: Json, started_with: Mapping[str, str]
) -> ServiceSettings:
    if not isinstance(changes, Mapping):
        raise Invalid(f"{_WHERE}: expected an object with the fields to change.")
    values: dict[str, Any] = msgspec.structs.asdict(settings)
    for part, fields in changes.items():
        if part in started_with:
            if fields != started_with[part]:
                raise Invalid(
                    f"{_WHERE}: {part} is {started_with[part]!r}, as the server was started, and "
                    f"cannot be changed to {str(fields)[:60]!r} here."
                )
            continue
        if part not in _PARTS:
            known = " and ".join(_PARTS)
            raise Invalid(f"{_WHERE}: there is no field {str(part)[:60]!r}; there are {known}.")
        sent = dict.fromkeys(_PARTS[part]) if fields is None else fields
        if not isinstance(sent, Mapping):
            raise Invalid(f"{_WHERE}: {part} must be an object, not {str(sent)[:60]!r}.")
        for name, value in sent.items():
            if name not in _PARTS[part]:
                known = ", ".join(_PARTS[part])
                raise Invalid(
                    f"{_WHERE}: there is no field {part}.{str(name)[:60]}; there is {known}."
                )
            values |= _read(f"{_WHERE}: {part}.{name}", name, value)
    return ServiceSettings(**values)


def _read(where: str, name: str, value: Json) -> dict[str, Any]:
    if name == "max_token_duration":
        seconds = None if value in (None, "") else read_duration_s(where, value)
        if seconds is not None and seconds < DAY_S:
            raise Invalid(f"{where} must be at least 1d, not {value}.")
        return {"max_token_duration_s": seconds}
    if value in (None, ""):
        return {name: None}
    if name == "client_install_url":
        return {name: read_address(where, value)}
    if not isinstance(value, str) or read_version(value) is None:
        raise Invalid(f"{where} must be a version like 6.4.0, not {repr(value)[:60]}.")
    return {name: value}
