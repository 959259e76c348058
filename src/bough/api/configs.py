"""Settings of the whole server, the policy, the history of configuration, and the audit."""

from __future__ import annotations

import msgspec

from bough.api.common import Json

# What is sent


class PutConfigs(msgspec.Struct, frozen=True, omit_defaults=True):
    """A whole configuration: settings, a pool, a platform, or pools by name.

    What is left out of each gets its default; pools that are not named stay as they are.
    """

    configs: dict[str, Json]
    description: str = ""
    tags: list[str] = []


class PatchConfigs(msgspec.Struct, frozen=True, omit_defaults=True):
    """Fields to change in settings or in a pool; objects are merged, `null` removes a field."""

    configs_dict: dict[str, Json]
    description: str = ""
    tags: list[str] = []


class PutValidations(msgspec.Struct, frozen=True, omit_defaults=True):
    """Sets of resource validation rules by name; `null` deletes a set."""

    configs_dict: dict[str, Json]
    description: str = ""
    tags: list[str] = []


class PutValidation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One set of resource validation rules."""

    configs: list[Json]
    description: str = ""
    tags: list[str] = []


class BackendTestAnswer(msgspec.Struct, frozen=True):
    """A node test: pods that run on each node on a schedule, and set its conditions."""

    name: str
    description: str
    cron_schedule: str
    test_timeout: str
    node_conditions: list[str]
    common_pod_template: list[str]


class ResourceRule(msgspec.Struct, frozen=True):
    """A rule for task requests: `GT`, `GE`, `LT`, `LE` or `EQ` between two operands."""

    operator: str
    left_operand: str
    right_operand: str
    #: The message if the rule does not hold.
    assert_message: str


class ConfigNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """The author's description of a change."""

    description: str = ""
    tags: list[str] = []


# Settings and policy


class LabelRule(msgspec.Struct, frozen=True):
    """A label that workflows should have: `off`, `warn` or `enforce`."""

    key: str
    #: The allowed values; empty: any value.
    allow_list: list[str]
    enforcement: str
    #: Added to every message about this label.
    assert_message: str


class LabelsAnswer(msgspec.Struct, frozen=True):
    """The policy for labels of workflows."""

    policy: list[LabelRule]
    #: Prefix of the label keys on pods.
    pod_label_prefix: str


class SettingsAnswer(msgspec.Struct, frozen=True):
    """The workflow configuration; durations with a unit."""

    max_num_tasks: int
    max_num_workflows_per_user: int | None
    max_retry_per_task: int
    max_asked_retries: int
    max_preemption_retries: int | None
    max_lost_retries: int | None
    vanished_node: str
    default_exit_actions: dict[str, str]
    subpool_drain_check_interval: str
    termination_grace: str
    default_exec_timeout: str
    default_queue_timeout: str
    labels_config: LabelsAnswer
    #: `null`: nothing is archived.
    archive_after: str | None = None


class PatchPolicy(msgspec.Struct, frozen=True, omit_defaults=True):
    """Fields of the policy to change, or a policy file that contains them."""

    configs_dict: dict[str, Json] | None = None
    #: The text of a policy file and its name, so that an error names the line.
    file: str | None = None
    file_name: str = ""
    description: str = ""
    tags: list[str] = []


class PutPolicy(msgspec.Struct, frozen=True, omit_defaults=True):
    """The whole policy; absent fields are taken from its preset (default: `osmo`)."""

    configs: dict[str, Json] | None = None
    file: str | None = None
    file_name: str = ""
    description: str = ""
    tags: list[str] = []


class ClientVersions(msgspec.Struct, frozen=True):
    """The recommended and oldest supported versions of existing clients; `null`: not set."""

    latest_version: str | None = None
    #: Those that say that they are older are refused.
    min_supported_version: str | None = None
    client_install_url: str | None = None


class TokenTerms(msgspec.Struct, frozen=True):
    """Rules for tokens."""

    #: How long they may be valid, as `90d`; `null`: as long as their makers say.
    max_token_duration: str | None = None


class ServiceAnswer(msgspec.Struct, frozen=True):
    """How the server was started, and the settings of the service."""

    service_base_url: str
    namespace: str
    version: str
    cli_config: ClientVersions = ClientVersions()
    service_auth: TokenTerms = TokenTerms()


class ChangeTags(msgspec.Struct, frozen=True):
    """Tags to add to a change of the configuration, or to remove from it."""

    set_tags: list[str] | None = None
    delete_tags: list[str] | None = None


# History and audit


class FieldDifference(msgspec.Struct, frozen=True):
    """One field that a change touched."""

    field: str
    before: Json
    after: Json


class ConfigRevision(msgspec.Struct, frozen=True):
    """One change of one object of the configuration."""

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
    """Two revisions of a config type, and how they differ."""

    config_type: str
    first_revision: int
    second_revision: int
    first_data: Json
    second_data: Json
    differences: list[FieldDifference]


class Rollback(msgspec.Struct, frozen=True, omit_defaults=True):
    """The revision to roll back to."""

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
    """Entries of the audit, newest first."""

    entries: list[AuditLine]
