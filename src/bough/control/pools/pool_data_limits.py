"""How much data a pool keeps, and for how long."""

from __future__ import annotations

from bough.control.fields import read_duration_s
from bough.errors import Invalid
from bough.formats.yaml.quantity import parse_quantity
from bough.model.pool import Pool
from bough.model.pool_data import KEEP_S, QUOTA_BYTES, PoolSpace

_HOUR_S = 3_600


def data_space(pool: Pool, identity: str) -> PoolSpace:
    """The quota and keeping time of a pool's data, from its fields; refuses wrong values."""
    where = f"Pool {pool.name}"
    quota, keep_s = QUOTA_BYTES, KEEP_S
    if pool.data_quota:
        try:
            quota = parse_quantity(pool.data_quota, "storage")
        except (Invalid, ValueError) as error:
            why = getattr(error, "message", error)
            raise Invalid(f"{where}: data_quota: {why}") from None
        if quota < 0:
            raise Invalid(
                f"{where}: data_quota must not be below 0, as {pool.data_quota[:40]!r} is."
            )
    if pool.data_keep:
        keep_s = read_duration_s(f"{where}: data_keep", pool.data_keep)
        if keep_s < _HOUR_S:
            raise Invalid(f"{where}: data_keep must be an hour or more, not {pool.data_keep!r}.")
    return PoolSpace(identity, quota, keep_s, pool.name)
