"""Queue and Topology of KAI."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from bough.formats.kai.pod_group import read_duration_s
from bough.model.cluster import Topology, TopologyLevel
from bough.model.fair_queue import FairAmount, FairQueue

if TYPE_CHECKING:
    from bough.formats.kubernetes.metadata import Metadata
    from bough.formats.yaml.fields import Fields

_UNLIMITED = -1
DEFAULT_PRIORITY = 100
#: Bytes in the unit in which memory is written; GPUs and CPU have the units of the model.
MEMORY_UNIT = 1_000_000
#: The units that the model counts in.
_COUNTED = {"gpu": "GPUs", "cpu": "thousandths of a core", "memory": "bytes"}


def read_queue(fields: Fields, metadata: Metadata) -> FairQueue:
    """Read a Queue; its `status` says nothing that is not computed here."""
    fields.ignore("status")
    spec = fields.child("spec")
    resources = spec.child("resources")
    priority = spec.optional_integer("priority")
    return FairQueue(
        name=metadata.name,
        parent=spec.optional_text("parentQueue") or None,
        priority=DEFAULT_PRIORITY if priority is None else priority,
        gpus=_read_amount(resources, "gpu"),
        cpu_milli=_read_amount(resources, "cpu"),
        memory_bytes=_read_amount(resources, "memory", MEMORY_UNIT),
        preempt_min_runtime_s=read_duration_s(spec, "preemptMinRuntime"),
        reclaim_min_runtime_s=read_duration_s(spec, "reclaimMinRuntime"),
        display_name=spec.optional_text("displayName") or None,
        created_ms=metadata.created_ms or 0,
    )


def read_topology(fields: Fields, metadata: Metadata) -> Topology:
    """Read a Topology."""
    fields.ignore("status")
    levels = fields.child("spec").children("levels")
    return Topology(
        name=metadata.name,
        levels=tuple(
            TopologyLevel(each.text("nodeLabel"), each.optional_text("alias") or None)
            for each in levels
        ),
    )


def _read_amount(resources: Fields, name: str, unit: int = 1) -> FairAmount:
    """What is left out is zero, as the API has it: nothing deserved, nothing allowed."""
    fields = resources.optional_child(name)
    if fields is None:
        return FairAmount()
    weight = fields.optional_fraction("overQuotaWeight")
    if weight is not None and weight < 0:
        fields.error("overQuotaWeight", f"is {weight}, but must not be negative")
    return FairAmount(
        quota=_read_bound(fields, "quota", unit),
        limit=_read_bound(fields, "limit", unit),
        over_quota_weight=weight or Fraction(0),
    )


def _read_bound(fields: Fields, name: str, unit: int) -> Fraction | None:
    value = fields.optional_fraction(name)
    amount = bound(value, unit)
    if amount is None:
        return None
    if amount < 0:
        fields.error(name, f"is {value}, but must not be negative; -1 means no limit")
    if amount.denominator != 1:
        whole = _COUNTED[str(fields.path[-1])]
        shown = f"{fields.written(name)} counts as {int(amount)}"
        fields.warn(name, f"{shown}: only whole {whole} are counted")
    return amount


def bound(value: Fraction | None, unit: int) -> Fraction | None:
    """A quota or a limit, in the units of the model; `None`: there is none."""
    return None if value == _UNLIMITED else (value or Fraction(0)) * unit
