"""Tests of nodes by schedule: as administrators write them, and as a cluster runs them."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import msgspec

#: What stands before the names of conditions on nodes.
CONDITION_PREFIX = "osmo.nvidia.com/"


class BackendTest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A test as it is configured; backends name it."""

    #: Five fields as in a crontab: minute, hour, day, month, day of the week.
    cron_schedule: str
    #: Conditions of nodes that its pods set, without their prefix.
    node_conditions: tuple[str, ...]
    #: The pod templates that its pods are made of, the last on top.
    common_pod_template: tuple[str, ...]
    description: str = ""
    #: How long it may take.
    test_timeout: str = "300s"


class NodeTest(msgspec.Struct, frozen=True):
    """A test as a cluster runs it: one pod on each node."""

    name: str
    schedule: str
    timeout_s: int
    #: A node that has one of these with another status than `True` takes nothing new.
    conditions: tuple[str, ...]
    templates: tuple[dict[str, Any], ...]


@runtime_checkable
class KeepsTests(Protocol):
    """A backend whose cluster tests its nodes."""

    @property
    def name(self) -> str:
        """The name that pools refer to."""
        ...

    def keep_tests(self, tests: tuple[NodeTest, ...]) -> None:
        """Bring the cluster in step, in the background."""
        ...

    def test_troubles(self) -> tuple[str, ...]:
        """What cannot be brought in step, and why."""
        ...
