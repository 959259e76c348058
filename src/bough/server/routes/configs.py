"""Configuration of the whole server: workflow settings, policy, and what else clients ask for."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from litestar.params import FromPath, JSONBody

from bough.api.common import Json
from bough.api.configs import (
    ClientVersions,
    ConfigNote,
    PatchConfigs,
    PatchPolicy,
    PutConfigs,
    PutPolicy,
    PutValidation,
    PutValidations,
    ResourceRule,
    ServiceAnswer,
    SettingsAnswer,
    TokenTerms,
)
from bough.api.nodes import BackendLine, BackendList
from bough.control.config import (
    group_templates,
    pod_templates,
    policy,
    resource_validations,
    service_settings,
    settings,
)
from bough.control.nodes import backend_notes, node_cordon, node_list
from bough.control.nodes.node_list import BackendView
from bough.errors import NotFound
from bough.model.access import Action
from bough.model.pool import ResourceAssertion
from bough.model.settings import ServiceSettings
from bough.server.route_declaration import Visit, caller, route
from bough.server.values import read_note, time_text
from bough.version import VERSION

_TEMPLATES = "/api/configs/pod_template"
_GROUP_TEMPLATES = "/api/configs/group_template"
_VALIDATIONS = "/api/configs/resource_validation"


@route("GET", "/api/configs/workflow", Action.CONFIG_READ)
def get_settings(request: Visit) -> SettingsAnswer:
    """The workflow configuration, including the interval of drain checks."""
    site, actor = caller(request)
    return settings.settings_answer(settings.get_workflow_settings(site, actor))


@route("PUT", "/api/configs/workflow", Action.CONFIG_UPDATE)
def put_settings(request: Visit, data: JSONBody[PutConfigs]) -> SettingsAnswer:
    """Replace the workflow configuration; fields that are left out get their default."""
    site, actor = caller(request)
    changed = settings.put_workflow_settings(site, actor, data.configs, read_note(data))
    return settings.settings_answer(changed)


@route("PATCH", "/api/configs/workflow", Action.CONFIG_UPDATE)
def patch_settings(request: Visit, data: JSONBody[PatchConfigs]) -> SettingsAnswer:
    """Change some fields of the workflow configuration."""
    site, actor = caller(request)
    changed = settings.patch_workflow_settings(site, actor, data.configs_dict, read_note(data))
    return settings.settings_answer(changed)


@route("GET", "/api/configs/policy", Action.CONFIG_READ)
def get_policy(request: Visit) -> dict[str, Json]:
    """The scheduling policy: every field, and the preset it is based on."""
    site, actor = caller(request)
    return policy.get_policy(site, actor)


@route("PUT", "/api/configs/policy", Action.CONFIG_UPDATE)
def put_policy(request: Visit, data: JSONBody[PutPolicy]) -> dict[str, Json]:
    """Replace the policy; fields that are left out are taken from the preset."""
    site, actor = caller(request)
    written = policy.Written(data.configs, data.file, data.file_name)
    return policy.put_policy(site, actor, written, read_note(data))


@route("PATCH", "/api/configs/policy", Action.CONFIG_UPDATE)
def patch_policy(request: Visit, data: JSONBody[PatchPolicy]) -> dict[str, Json]:
    """Change some fields of the policy, or with a preset all of them, from the next cycle on."""
    site, actor = caller(request)
    written = policy.Written(data.configs_dict, data.file, data.file_name)
    return policy.patch_policy(site, actor, written, read_note(data))


@route("GET", "/api/configs/service", Action.CONFIG_READ)
def get_service(request: Visit) -> ServiceAnswer:
    """The settings of the service, and the public part of how the server was started."""
    site, actor = caller(request)
    return _service(request, service_settings.get_service_settings(site, actor))


@route("PUT", "/api/configs/service", Action.CONFIG_UPDATE)
def put_service(request: Visit, data: JSONBody[PutConfigs]) -> ServiceAnswer:
    """Replace the settings of the service; fields that are left out get their default."""
    site, actor = caller(request)
    note, started = read_note(data), _started_with(request)
    changed = service_settings.put_service_settings(site, actor, data.configs, started, note)
    return _service(request, changed)


@route("PATCH", "/api/configs/service", Action.CONFIG_UPDATE)
def patch_service(request: Visit, data: JSONBody[PatchConfigs]) -> ServiceAnswer:
    """Change some settings of the service: client versions, and how long tokens are valid."""
    site, actor = caller(request)
    note, started = read_note(data), _started_with(request)
    changed = service_settings.patch_service_settings(site, actor, data.configs_dict, started, note)
    return _service(request, changed)


@route("GET", "/api/configs/backend", Action.CONFIG_READ)
def list_backends(request: Visit) -> BackendList:
    """All backends that have ever connected."""
    site, actor = caller(request)
    return BackendList([_backend(request, each) for each in node_list.list_backends(site, actor)])


@route("GET", "/api/configs/backend/{backend:str}", Action.CONFIG_READ)
def get_backend(request: Visit, backend: FromPath[str]) -> BackendLine:
    """One backend."""
    return _get_backend(request, backend)


def _get_backend(request: Visit, backend: str) -> BackendLine:
    site, actor = caller(request)
    for each in node_list.list_backends(site, actor):
        if each.name == backend:
            return _backend(request, each)
    raise NotFound(f"Backend {backend} not found.")


@route("POST", "/api/configs/backend/{backend:str}", Action.CONFIG_UPDATE)
def change_backend(request: Visit, backend: FromPath[str], data: JSONBody[PutConfigs]) -> None:
    """Set the description, the dashboards and the node tests of a backend."""
    shown = msgspec.to_builtins(_get_backend(request, backend))
    site, actor = caller(request)
    backend_notes.put_notes(site, actor, backend, data.configs, shown, read_note(data))


@route("DELETE", "/api/configs/backend/{backend:str}", Action.CONFIG_UPDATE)
def delete_backend(
    request: Visit, backend: FromPath[str], data: JSONBody[ConfigNote | None] = None
) -> None:
    """Delete a backend and its nodes; it must be offline, and no pool may use it."""
    site, actor = caller(request)
    node_cordon.remove_backend(site, actor, backend, read_note(data))


@route("GET", _TEMPLATES, Action.CONFIG_READ)
def list_pod_templates(request: Visit) -> dict[str, Json]:
    """Pod templates by name: what pools and platforms add to the pods of their tasks."""
    site, actor = caller(request)
    return pod_templates.get_templates(site, actor)


@route("PUT", _TEMPLATES, Action.CONFIG_UPDATE)
def put_pod_templates(request: Visit, data: JSONBody[PutConfigs]) -> dict[str, Json]:
    """Add or replace pod templates by name; `null` deletes one that no pool uses."""
    site, actor = caller(request)
    return pod_templates.put_templates(site, actor, data.configs, read_note(data))


@route("GET", f"{_TEMPLATES}/{{pod_template:str}}", Action.CONFIG_READ)
def get_pod_template(request: Visit, pod_template: FromPath[str]) -> dict[str, Json]:
    """One pod template."""
    site, actor = caller(request)
    return pod_templates.get_template(site, actor, pod_template)


@route("PUT", f"{_TEMPLATES}/{{pod_template:str}}", Action.CONFIG_UPDATE)
def put_pod_template(
    request: Visit, pod_template: FromPath[str], data: JSONBody[PutConfigs]
) -> dict[str, Json]:
    """Create or replace one pod template."""
    site, actor = caller(request)
    return pod_templates.put_templates(site, actor, {pod_template: data.configs}, read_note(data))[
        pod_template
    ]


@route("DELETE", f"{_TEMPLATES}/{{pod_template:str}}", Action.CONFIG_UPDATE)
def delete_pod_template(
    request: Visit, pod_template: FromPath[str], data: JSONBody[ConfigNote | None] = None
) -> None:
    """Delete a pod template that no pool uses."""
    site, actor = caller(request)
    pod_templates.delete_template(site, actor, pod_template, read_note(data))


@route("GET", _GROUP_TEMPLATES, Action.CONFIG_READ)
def list_group_templates(request: Visit) -> dict[str, Json]:
    """Group templates by name: Kubernetes objects that are created for each group of a pool."""
    site, actor = caller(request)
    return group_templates.get_templates(site, actor)


@route("PUT", _GROUP_TEMPLATES, Action.CONFIG_UPDATE)
def put_group_templates(request: Visit, data: JSONBody[PutConfigs]) -> dict[str, Json]:
    """Add or replace group templates by name; `null` deletes one that no pool uses."""
    site, actor = caller(request)
    return group_templates.put_templates(site, actor, data.configs, read_note(data))


@route("GET", f"{_GROUP_TEMPLATES}/{{group_template:str}}", Action.CONFIG_READ)
def get_group_template(request: Visit, group_template: FromPath[str]) -> dict[str, Json]:
    """One group template."""
    site, actor = caller(request)
    return group_templates.get_template(site, actor, group_template)


@route("PUT", f"{_GROUP_TEMPLATES}/{{group_template:str}}", Action.CONFIG_UPDATE)
def put_group_template(
    request: Visit, group_template: FromPath[str], data: JSONBody[PutConfigs]
) -> dict[str, Json]:
    """Create or replace one group template."""
    site, actor = caller(request)
    changes = {group_template: data.configs}
    return group_templates.put_templates(site, actor, changes, read_note(data))[group_template]


@route("DELETE", f"{_GROUP_TEMPLATES}/{{group_template:str}}", Action.CONFIG_UPDATE)
def delete_group_template(
    request: Visit, group_template: FromPath[str], data: JSONBody[ConfigNote | None] = None
) -> None:
    """Delete a group template that no pool uses."""
    site, actor = caller(request)
    group_templates.delete_template(site, actor, group_template, read_note(data))


@route("GET", _VALIDATIONS, Action.CONFIG_READ)
def list_resource_validations(request: Visit) -> dict[str, list[ResourceRule]]:
    """Resource validation rules by name; pools and platforms refer to them."""
    site, actor = caller(request)
    return _validations(resource_validations.get_validations(site, actor))


@route("PUT", _VALIDATIONS, Action.CONFIG_UPDATE)
def put_resource_validations(
    request: Visit, data: JSONBody[PutValidations]
) -> dict[str, list[ResourceRule]]:
    """Add or replace sets of rules by name; `null` deletes a set that no pool uses."""
    site, actor = caller(request)
    changes = data.configs_dict
    return _validations(resource_validations.put_validations(site, actor, changes, read_note(data)))


@route("GET", f"{_VALIDATIONS}/{{validation:str}}", Action.CONFIG_READ)
def get_resource_validation(request: Visit, validation: FromPath[str]) -> list[ResourceRule]:
    """One set of rules."""
    site, actor = caller(request)
    return _rules(resource_validations.get_validation(site, actor, validation))


@route("PUT", f"{_VALIDATIONS}/{{validation:str}}", Action.CONFIG_UPDATE)
def put_resource_validation(
    request: Visit, validation: FromPath[str], data: JSONBody[PutValidation]
) -> list[ResourceRule]:
    """Create or replace one set of rules."""
    site, actor = caller(request)
    changes = {validation: data.configs}
    return _rules(
        resource_validations.put_validations(site, actor, changes, read_note(data))[validation]
    )


@route("DELETE", f"{_VALIDATIONS}/{{validation:str}}", Action.CONFIG_UPDATE)
def delete_resource_validation(
    request: Visit, validation: FromPath[str], data: JSONBody[ConfigNote | None] = None
) -> None:
    """Delete a set of rules that no pool uses."""
    site, actor = caller(request)
    resource_validations.delete_validation(site, actor, validation, read_note(data))


def _validations(
    found: Mapping[str, tuple[ResourceAssertion, ...]],
) -> dict[str, list[ResourceRule]]:
    return {name: _rules(rules) for name, rules in found.items()}


def _rules(found: tuple[ResourceAssertion, ...]) -> list[ResourceRule]:
    return [
        ResourceRule(
            each.operator.value, each.left_operand, each.right_operand, each.assert_message
        )
        for each in found
    ]


def _started_with(request: Visit) -> dict[str, str]:
    site, _ = caller(request)
    address = request.app.state.public_url
    return {"service_base_url": address, "namespace": site.namespace, "version": VERSION}


def _service(request: Visit, found: ServiceSettings) -> ServiceAnswer:
    document = service_settings.service_document(found)
    return ServiceAnswer(
        **_started_with(request),
        cli_config=ClientVersions(**document["cli_config"]),
        service_auth=TokenTerms(**document["service_auth"]),
    )


def _backend(request: Visit, view: BackendView) -> BackendLine:
    return BackendLine(
        name=view.name,
        online=view.offline is None,
        offline=view.offline,
        last_heartbeat=time_text(view.heard_ms),
        nodes=view.nodes,
        gpus=view.gpus,
        version=VERSION,
        router_address=request.app.state.public_url,
        created_date=time_text(view.heard_ms),
        description=view.notes.description,
        dashboard_url=view.notes.dashboard_url,
        grafana_url=view.notes.grafana_url,
        tests=list(view.notes.tests),
    )


HANDLERS = (
    get_settings,
    put_settings,
    patch_settings,
    get_policy,
    put_policy,
    patch_policy,
    get_service,
    put_service,
    patch_service,
    list_backends,
    get_backend,
    change_backend,
    delete_backend,
    list_pod_templates,
    put_pod_templates,
    get_pod_template,
    put_pod_template,
    delete_pod_template,
    list_group_templates,
    put_group_templates,
    get_group_template,
    put_group_template,
    delete_group_template,
    list_resource_validations,
    put_resource_validations,
    get_resource_validation,
    put_resource_validation,
    delete_resource_validation,
)
