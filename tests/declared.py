"""Short ways to declare quota, and to name what is wrong with it."""

from __future__ import annotations

from bough.model.problem import Problem
from bough.model.quota import FlavorQuotas, Quota, ResourceGroup

FIRST = "spec.resourceGroups[0].flavors[0].resources[0]"


def group(quota: Quota, resource: str = "gpu", flavor: str = "f") -> ResourceGroup:
    return ResourceGroup((resource,), (FlavorQuotas(flavor, {resource: quota}),))


def found(problems: list[Problem]) -> list[tuple[str, str]]:
    return [(each.field, each.message) for each in problems]
