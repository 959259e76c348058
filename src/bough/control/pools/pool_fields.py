"""Pools as they are sent and kept in the history: field names, old spellings, and checks.

"No limit" is -1 on the wire and `None` inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bough.control.fields import check_exit_actions, read_duration_s, read_limit, read_weight
from bough.control.pools.pool_data_limits import data_space
from bough.errors import Invalid
from bough.model.names import plain_name_fault
from bough.model.pool import CancelRule, GpuQuota, Json, Pool
from bough.store.rows import convert

#: Shown, and so sent back when an answer is edited; never configured.
_COMPUTED = {
    "status",
    "parsed_resource_validations",
    "parsed_pod_template",
    "parsed_group_templates",
    "last_heartbeat",
    "parent_pool",
    "subpool_name",
    "subpool_state",
    "quota",
}
_LIMITS = ("borrowing_limit", "lending_limit", "user_gpu_limit")
_TIMEOUTS = (
    "default_exec_timeout",
    "default_queue_timeout",
    "max_exec_timeout",
    "max_queue_timeout",
)
_DATA = ("data_quota", "data_keep")
_SENT = {*Pool.__struct_fields__, "resources"} - {"gpu"}
_PLATFORM_COMPUTED = {"tolerations", "labels", "parsed_resource_validations", "parsed_pod_template"}


def read_pool(name: str, document: Json) -> Pool:
    """A pool from what was sent for it."""
    where = f"Pool {name}"
    if not isinstance(document, Mapping):
        raise Invalid(f"{where}: expected an object with its fields.")
    values = {key: value for key, value in document.items() if key not in _COMPUTED}
    unknown = sorted(str(key) for key in values if key not in _SENT)
    if unknown:
        raise Invalid(f"{where}: there is no field {', '.join(unknown)}.")
    if values.pop("name", name) != name:
        raise Invalid(f"{where}: its name cannot be changed here; rename it.")
    gpu = _read_gpu(where, values.pop("resources", None))
    for field in _LIMITS:
        values[field] = read_limit(f"{where}: {field}", values.get(field))
    for field in (*_TIMEOUTS, *_DATA):
        values[field] = values.get(field) or ""
    values["cancel"] = _read_cancel(where, values.get("cancel"))
    values["platforms"] = _read_platforms(where, values.get("platforms"))
    try:
        pool = convert({**values, "name": name}, Pool)
    except msgspec.ValidationError as error:
        raise Invalid(f"{where}: {error}") from None
    pool = msgspec.structs.replace(pool, gpu=gpu)
    _check(where, pool)
    return pool


def merge_pool(pool: Pool, changes: Json) -> Pool:
    """A pool with some fields changed; objects are merged, `null` removes."""
    if not isinstance(changes, Mapping):
        raise Invalid(f"Pool {pool.name}: expected an object with the fields to change.")
    return read_pool(pool.name, _merged(pool_document(pool), changes))


def pool_document(pool: Pool) -> dict[str, Any]:
    """A pool as it is configured, so that `read_pool` reads the same again."""
    document: dict[str, Any] = msgspec.to_builtins(pool)
    gpu = pool.gpu
    del document["gpu"]
    document["resources"] = {
        "gpu": {
            "guarantee": _or_unlimited(gpu.guarantee),
            "maximum": _or_unlimited(gpu.maximum),
            "weight": gpu.weight,
        }
    }
    return document


def _read_gpu(where: str, resources: Json) -> GpuQuota:
    if resources is None:
        return GpuQuota()
    gpu = resources.get("gpu") if isinstance(resources, Mapping) else resources
    if gpu is None and isinstance(resources, Mapping) and not set(resources) - {"gpu"}:
        return GpuQuota()
    if not isinstance(gpu, Mapping) or set(resources) - {"gpu"}:
        raise Invalid(f"{where}: resources must be {{gpu: {{guarantee, maximum, weight}}}}.")
    unknown = sorted(str(key) for key in gpu if key not in GpuQuota.__struct_fields__)
    if unknown:
        raise Invalid(f"{where}: there is no field resources.gpu.{unknown[0]}.")
    path = f"{where}: resources.gpu"
    return GpuQuota(
        read_limit(f"{path}.guarantee", gpu.get("guarantee")),
        read_limit(f"{path}.maximum", gpu.get("maximum")),
        read_weight(f"{path}.weight", gpu.get("weight", 1)),
    )


def _read_cancel(where: str, rule: Json) -> CancelRule:
    if rule is None:
        return CancelRule.ANY
    if rule not in tuple(CancelRule):
        raise Invalid(f"{where}: cancel must be any or own, not {str(rule)[:40]!r}.")
    return CancelRule(rule)


def _read_platforms(where: str, platforms: Json) -> Json:
    if platforms is None:
        return {}
    if not isinstance(platforms, Mapping):
        raise Invalid(f"{where}: platforms must be an object of platforms by name.")
    return {
        name: {key: value for key, value in platform.items() if key not in _PLATFORM_COMPUTED}
        if isinstance(platform, Mapping)
        else platform
        for name, platform in platforms.items()
    }


def _check(where: str, pool: Pool) -> None:
    guarantee, maximum = pool.gpu.guarantee, pool.gpu.maximum
    if guarantee is not None and maximum is not None and maximum < guarantee:
        raise Invalid(
            f"{where}: the maximum of {maximum} GPUs is below the guarantee of {guarantee}."
        )
    for name in pool.platforms:
        fault = plain_name_fault("Platform", name)
        if fault:
            raise Invalid(fault)
    if pool.default_platform and pool.default_platform not in pool.platforms:
        raise Invalid(f"Default platform {pool.default_platform} not in platforms")
    for field in _TIMEOUTS:
        text = getattr(pool, field)
        if text:
            read_duration_s(f"{where}: {field}", text)
    data_space(pool, "")
    check_exit_actions(f"{where}: default_exit_actions", pool.default_exit_actions)


def _merged(document: dict[str, Any], changes: Mapping[str, Json]) -> dict[str, Any]:
    merged = dict(document)
    for key, value in changes.items():
        before = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(before, dict):
            merged[key] = _merged(before, value)
        else:
            merged[key] = value
    return merged


def _or_unlimited(number: int | None) -> int:
    return -1 if number is None else number
