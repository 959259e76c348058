"""Pools, subpools and their use as they are sent.

Inside, "no limit" is `None`; within `resources` it is sent as -1. The numbers of a quota are text.
"""

from __future__ import annotations

from typing import TypedDict

import msgspec
from msgspec.structs import asdict

from bough.api.pools import (
    AffectedWorkflow,
    GpuShare,
    PlatformConfig,
    PlatformSummary,
    PoolAnswer,
    PoolDocument,
    PoolResources,
    PoolsAnswer,
    PoolSummary,
    PoolTopologyLevel,
    PoolUsage,
    ResourceUsage,
    SubpoolAnswer,
)
from bough.control.pools.pools import PoolChange, PoolView
from bough.control.pools.quotas import PoolRow, Usage
from bough.control.pools.subpools import SubpoolChange
from bough.control.pools.waiting_work import Consequences
from bough.model.pool import Platform, Pool
from bough.model.subpool import Subpool


def show_pool(view: PoolView, *, verbose: bool = False) -> PoolDocument:
    """A pool, or a subpool with what it inherits, with all that is configured for it."""
    pool, subpool = view.pool, view.subpool
    return PoolDocument(
        name=view.name,
        description=pool.description,
        backend=pool.backend,
        download_type=pool.download_type,
        enable_maintenance=pool.enable_maintenance,
        default_platform=pool.default_platform,
        default_exec_timeout=pool.default_exec_timeout,
        default_queue_timeout=pool.default_queue_timeout,
        max_exec_timeout=pool.max_exec_timeout,
        max_queue_timeout=pool.max_queue_timeout,
        default_exit_actions=pool.default_exit_actions,
        topology_keys=_topology(pool),
        common_default_variables=pool.common_default_variables,
        common_resource_validations=list(pool.common_resource_validations),
        common_pod_template=list(pool.common_pod_template),
        common_group_templates=list(pool.common_group_templates),
        platforms={name: platform_config(each) for name, each in pool.platforms.items()},
        cohort=pool.cohort,
        borrowing_limit=pool.borrowing_limit,
        lending_limit=pool.lending_limit,
        user_gpu_limit=pool.user_gpu_limit,
        cancel=pool.cancel,
        data_quota=pool.data_quota,
        data_keep=pool.data_keep,
        resources=_resources(pool, subpool),
        status=view.status,
        offline=view.offline,
        parent_pool=None if subpool is None else subpool.parent,
        subpool_name=None if subpool is None else subpool.subpool,
        subpool_state=None if subpool is None else subpool.state,
        quota=None if subpool is None else subpool.counted,
        drain=view.drain,
        parsed_resource_validations=[] if verbose else None,
        parsed_pod_template={} if verbose else None,
        parsed_group_templates=[] if verbose else None,
    )


def platform_config(platform: Platform) -> PlatformConfig:
    """A platform with all that is configured for it."""
    return PlatformConfig(
        description=platform.description,
        host_network_allowed=platform.host_network_allowed,
        privileged_allowed=platform.privileged_allowed,
        allowed_mounts=list(platform.allowed_mounts),
        default_mounts=list(platform.default_mounts),
        default_variables=platform.default_variables,
        resource_validations=list(platform.resource_validations),
        override_pod_template=list(platform.override_pod_template),
    )


def pool_summary(view: PoolView) -> PoolSummary:
    """A pool or subpool as users see it."""
    pool, subpool = view.pool, view.subpool
    return PoolSummary(
        name=view.name,
        description=pool.description,
        status=view.status,
        offline=view.offline,
        download_type=pool.download_type,
        enable_maintenance=pool.enable_maintenance,
        backend=pool.backend,
        default_platform=pool.default_platform,
        default_exec_timeout=pool.default_exec_timeout,
        default_queue_timeout=pool.default_queue_timeout,
        max_exec_timeout=pool.max_exec_timeout,
        max_queue_timeout=pool.max_queue_timeout,
        default_exit_actions=pool.default_exit_actions,
        resources=_resources(pool, subpool),
        topology_keys=_topology(pool),
        platforms=_platforms(pool),
        cancel=pool.cancel,
        parent_pool=None if subpool is None else subpool.parent,
        subpool_name=None if subpool is None else subpool.subpool,
        subpool_state=None if subpool is None else subpool.state,
    )


def pool_usage(row: PoolRow) -> PoolUsage:
    """A pool or subpool with what it uses, and what can really start."""
    return PoolUsage(
        **msgspec.structs.asdict(pool_summary(row)),
        resource_usage=resource_usage(row.usage),
        quota_total=None if row.quota_total is None else str(row.quota_total),
        can_start=str(row.can_start),
        can_start_note=row.can_start_note,
        drain=row.drain,
    )


def resource_usage(usage: Usage) -> ResourceUsage:
    """Numbers as text."""
    return ResourceUsage(
        quota_used=str(usage.quota_used),
        quota_free=str(usage.quota_free),
        quota_limit=str(usage.quota_limit),
        total_usage=str(usage.total_usage),
        total_capacity=str(usage.total_capacity),
        total_free=str(usage.total_free),
    )


def subpool_answer(change: SubpoolChange) -> SubpoolAnswer:
    """A subpool after a change, or as it would be."""
    return SubpoolAnswer(
        **asdict(show_pool(change.view)),
        **_affected(change.consequences),
        planned=change.planned,
        reactivated=change.reactivated,
    )


def pool_answer(change: PoolChange) -> PoolAnswer:
    """A pool after a change, or as it would be."""
    shown = asdict(show_pool(change.views[0]))
    return PoolAnswer(**shown, **_affected(change.consequences), planned=change.planned)


def pools_answer(change: PoolChange) -> PoolsAnswer:
    """Pools after a change, or as they would be."""
    return PoolsAnswer(
        configs={view.name: show_pool(view) for view in change.views},
        planned=change.planned,
        **_affected(change.consequences),
    )


class _Affected(TypedDict):
    stranded: list[AffectedWorkflow]
    delayed: list[AffectedWorkflow]
    stranded_count: int
    delayed_count: int


def _affected(found: Consequences) -> _Affected:
    return {
        "stranded": found.stranded,
        "delayed": found.delayed,
        "stranded_count": found.stranded_count,
        "delayed_count": found.delayed_count,
    }


def _resources(pool: Pool, subpool: Subpool | None) -> PoolResources:
    guarantee = pool.gpu.guarantee if subpool is None else subpool.counted
    return PoolResources(
        GpuShare(_or_unlimited(guarantee), _or_unlimited(pool.gpu.maximum), pool.gpu.weight)
    )


def _topology(pool: Pool) -> list[PoolTopologyLevel]:
    return [PoolTopologyLevel(each.key, each.label) for each in pool.topology_keys]


def _platforms(pool: Pool) -> dict[str, PlatformSummary]:
    return {
        name: PlatformSummary(
            description=each.description,
            host_network_allowed=each.host_network_allowed,
            privileged_allowed=each.privileged_allowed,
            allowed_mounts=list(each.allowed_mounts),
            default_mounts=list(each.default_mounts),
        )
        for name, each in pool.platforms.items()
    }


def _or_unlimited(number: int | None) -> int:
    return -1 if number is None else number
