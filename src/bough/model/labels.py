"""Labels of workflows: the policy that an administrator sets, and how lists ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec


class LabelEnforcement(StrEnum):
    """What happens to a workflow that breaks a rule of the policy."""

    OFF = "off"
    #: It is accepted, with a warning.
    WARN = "warn"
    #: It is refused.
    ENFORCE = "enforce"


class LabelPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A label that workflows should have."""

    key: str
    #: The allowed values; empty: any value.
    allow_list: tuple[str, ...] = ()
    enforcement: LabelEnforcement = LabelEnforcement.OFF
    #: Added to every message about this label, for example where users find their value.
    assert_message: str = ""


class LabelsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The policy for labels of workflows."""

    policy: tuple[LabelPolicy, ...] = ()
    #: Prefix of the label keys on pods; it appears nowhere else.
    pod_label_prefix: str = ""


class LabelSelector(msgspec.Struct, frozen=True):
    """Selects workflows with a label whose value matches one of these patterns."""

    key: str
    #: A `*` in them stands for any text, none included.
    patterns: tuple[str, ...]

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels match."""
        value = labels.get(self.key)
        return value is not None and any(_fits(value, each) for each in self.patterns)


def _fits(value: str, pattern: str) -> bool:
    """Whether a pattern matches the whole value; part by part, so it never backtracks."""
    first, *parts = pattern.split("*")
    if not parts:
        return value == first
    last = parts.pop()
    end = len(value) - len(last)
    if end < len(first) or not (value.startswith(first) and value.endswith(last)):
        return False
    place = len(first)
    for part in parts:
        found = value.find(part, place, end)
        if found < 0:
            return False
        place = found + len(part)
    return True
