"""A change of the organisation in one transaction: made, or only planned and taken back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from bough.control.site import Site


class _PlanOnly(Exception):
    """Leave the transaction without keeping what was done in it."""


@contextmanager
def changing(site: Site, *, plan: bool = False) -> Iterator[sa.Connection]:
    """A transaction whose end wakes the scheduler; a plan is checked, seen and taken back."""
    try:
        with site.store.write() as connection:
            yield connection
            if plan:
                raise _PlanOnly
    except _PlanOnly:
        return
    site.wake()
