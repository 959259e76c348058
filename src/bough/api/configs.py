"""Settings of the whole server, the policy, the history of configuration, and the audit."""

from __future__ import annotations

import msgspec

from bough.api.common import Json

# What is sent


class PutConfigs(msgspec.Struct, frozen=True, omit_defaults=True):
    """A configuration as a whole: settings, a pool, a platform, or pools by name.

    What is left out of each gets its default; pools that are not named stay as they are.
    """

    configs: dict[str, Json]
    description: str = ""
    tags: list[str] = []


class PatchConfigs(msgspec.Struct, frozen=True, omit_defaults=True):
    """Fields of the settings or of a pool to change; objects are merged, `null` removes."""

    configs_dict: dict[str, Json]
    description: str = ""
    tags: list[str] = []


# Settings and policy


class SettingsAnswer(msgspec.Struct, frozen=True):
    """The workflow configuration; durations with a unit."""

    max_num_tasks: int
    max_num_workflows_per_user: int | None
    max_retry_per_task: int
    max_preemption_retries: int | None
    max_lost_retries: int | None
    vanished_node: str
    default_exit_actions: dict[str, str]
    subpool_drain_check_interval: str
    termination_grace: str
    default_exec_timeout: str
    default_queue_timeout: str
    #: `null`: nothing is archived.
    archive_after: str | None = None


class PatchPolicy(msgspec.Struct, frozen=True, omit_defaults=True):
    """Fields of the policy to change, or the text of a policy file with them."""

    configs_dict: dict[str, Json] | None = None
    #: The text of a policy file and its name, so that an error names the line.
    file: str | None = None
    file_name: str = ""
    description: str = ""
    tags: list[str] = []


class PutPolicy(msgspec.Struct, frozen=True, omit_defaults=True):
    """The whole policy; what is left out is as in the preset, `osmo` where none is named."""

    configs: dict[str, Json] | None = None
    file: str | None = None
    file_name: str = ""
    description: str = ""
    tags: list[str] = []


class ServiceAnswer(msgspec.Struct, frozen=True):
    """How the server was started."""

    service_base_url: str
    namespace: str
    version: str


# History and audit


class FieldDifference(msgspec.Struct, frozen=True):
    """One field that a change touched."""

    field: str
    before: Json
    after: Json


class ConfigRevision(msgspec.Struct, frozen=True):
    """One change of one configured object."""

    config_type: str
    revision: int
    name: str
    username: str
    created_at: str
    description: str
    tags: list[str]
    #: The object after the change; `null`: it was deleted, or its data was not asked for.
    data: Json
    differences: list[FieldDifference]


class ConfigHistory(msgspec.Struct, frozen=True):
    """Changes of configuration."""

    configs: list[ConfigRevision]


class ConfigDiff(msgspec.Struct, frozen=True):
    """Two revisions of a kind, and how they differ."""

    config_type: str
    first_revision: int
    second_revision: int
    first_data: Json
    second_data: Json
    differences: list[FieldDifference]


class Rollback(msgspec.Struct, frozen=True, omit_defaults=True):
    """The revision to return to."""

    config_type: str
    revision: int
    description: str = ""
    tags: list[str] = []


class AuditLine(msgspec.Struct, frozen=True):
    """One change: by which user, when, from where, before and after."""

    number: int
    at: str | None
    actor: str
    action: str
    subject: str
    origin: str
    token: str | None
    before: Json
    after: Json


class AuditPage(msgspec.Struct, frozen=True):
    """Entries of the audit, the latest first."""

    entries: list[AuditLine]
