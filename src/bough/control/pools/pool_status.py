"""Whether a pool can run work. Must not know subpools: they are as their pool is."""

from __future__ import annotations

from collections.abc import Mapping

from bough.model.pool import Pool, PoolStatus

#: A backend that was not heard of for longer is away.
HEARTBEAT_WINDOW_MS = 2 * 60 * 1_000


def status_of(pool: Pool, heartbeats: Mapping[str, int], now_ms: int) -> PoolStatus:
    """The status of a pool, by when its backend was last heard of."""
    if pool.enable_maintenance:
        return PoolStatus.MAINTENANCE
    heard = heartbeats.get(pool.backend)
    if heard is None or now_ms - heard > HEARTBEAT_WINDOW_MS:
        return PoolStatus.OFFLINE
    return PoolStatus.ONLINE
