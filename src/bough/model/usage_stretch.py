"""What was held, and for how long."""

from __future__ import annotations

from typing import NamedTuple


class Stretch(NamedTuple):
    """GPUs that were held from one moment to another."""

    pool: str
    user: str
    gpus: int
    #: Counts against the quota: HIGH or NORMAL, up to the minimum of its gang.
    guaranteed: bool
    submitted_ms: int
    start_ms: int
    end_ms: int
    #: The identity of the workflow, by which ties are broken.
    workflow: str
