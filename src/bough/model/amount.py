"""Exact amounts as people write them: `1500m` of CPU, `16Gi` of memory, 4 of anything else."""

from __future__ import annotations

_BINARY = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki")
_IN_BYTES = ("memory", "storage", "ephemeral-storage")


def write_amount(resource: str, amount: int) -> str:
    """Write an amount of a resource; `cpu` is counted in thousandths."""
    if resource == "cpu":
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if amount and (resource in _IN_BYTES or resource.startswith("hugepages-")):
        for power, suffix in zip(range(6, 0, -1), _BINARY, strict=True):
            if amount % 1024**power == 0:
                return f"{amount // 1024**power}{suffix}"
    return str(amount)
