"""The quota tree: cost by depth and by size, and of building against reading."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from bough.core.quota.account import available
from bough.core.quota.tree import QuotaTree
from bough.formats.kueue.organisation import read_organisation
from bough.formats.yaml.documents import read_documents
from bough.model.quota import (
    Cohort,
    FlavorQuotas,
    FlavorResource,
    NodeKind,
    Queue,
    Quota,
    ResourceGroup,
)
from tests.bench.report import Report, cpu_seconds

GPU = FlavorResource("h100", "gpu")
OPERATIONS = 20_000


def run(report: Report) -> None:
    measure_operations(report)
    measure_building(report)


def measure_operations(report: Report) -> None:
    report.line("one operation in microseconds; levels count the queue and the root")
    report.line(f"{'levels':>6} {'leaves':>8} {'add+remove':>11} {'available':>10} {'by name':>8}")
    costs: dict[tuple[int, int], tuple[float, float, float]] = {}
    for levels in (3, 5, 7):
        for leaves in (100, 10_000, 100_000):
            costs[levels, leaves] = cost = _operation_costs(levels, leaves)
            report.line(
                f"{levels:>6} {leaves:>8,} {cost[0]:>11.2f} {cost[1]:>10.2f} {cost[2]:>8.2f}"
            )
    for levels in (3, 5, 7):
        small, large = costs[levels, 100], costs[levels, 100_000]
        ratios = [after / before for after, before in zip(large, small, strict=True)]
        report.target(
            f"{levels} levels, 100,000 to 100 leaves: add+remove ×{ratios[0]:.2f}, "
            f"available ×{ratios[1]:.2f} (below 3); with the look-up by name ×{ratios[2]:.2f}",
            met=max(ratios[:2]) < 3,
        )
    deep, flat = costs[7, 10_000], costs[3, 10_000]
    report.line(
        f"7 to 3 levels: add+remove ×{deep[0] / flat[0]:.2f}, available ×{deep[1] / flat[1]:.2f}"
    )


def measure_building(report: Report, leaves: int = 100_000) -> None:
    text = "---\n".join(_yaml_of(queue) for queue in _declarations(3, leaves)[1])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "queues.yaml"
        path.write_text(text, encoding="utf-8")
        parsing = cpu_seconds(lambda: read_documents([str(path)]), repeat=1)
        documents = read_documents([str(path)])
    reading = cpu_seconds(lambda: read_organisation(documents), repeat=1)
    objects = read_organisation(documents).organisation
    building = cpu_seconds(lambda: QuotaTree.of(objects.cohorts, objects.queues), repeat=2)
    report.line(
        f"{leaves:,} queues: parse YAML {parsing:.2f} s, read objects {reading:.2f} s, "
        f"build the tree {building:.2f} s"
    )
    report.target(
        f"building costs {building / parsing:.2f} of parsing (below 1)", met=building < parsing
    )


def _operation_costs(levels: int, leaves: int) -> tuple[float, float, float]:
    """Adding and removing; asking an account; asking by the queue's name."""
    tree = QuotaTree.of(*_declarations(levels, leaves))
    queues = [node for node in tree if node.kind is NodeKind.QUEUE]
    nodes = random.Random(1).choices(queues, k=OPERATIONS)
    accounts = [tree.account(node, GPU) for node in nodes]
    request = {GPU: 6}

    def change() -> None:
        for node in nodes:
            tree.add_usage(node.name, request)
            tree.remove_usage(node.name, request)

    def ask() -> None:
        for account in accounts:
            available(account)

    def ask_by_name() -> None:
        for node in nodes:
            tree.available(node, GPU)

    scale = 1e6 / OPERATIONS
    change_cost, ask_cost, name_cost = (
        cpu_seconds(work, repeat=5) * scale for work in (change, ask, ask_by_name)
    )
    return change_cost, ask_cost, name_cost


def _declarations(levels: int, leaves: int) -> tuple[list[Cohort], list[Queue]]:
    """A tree with so many levels whose inner nodes have about equally many children."""
    inner = levels - 1
    fanout = max(2, round(leaves ** (1 / inner)))
    cohorts, row = [Cohort("root")], ["root"]
    for level in range(1, inner):
        names = [f"cohort-{level}-{number}" for number in range(fanout**level)]
        cohorts += [
            Cohort(name, row[number // fanout], _group(Quota(1, 50, 20)))
            for number, name in enumerate(names)
        ]
        row = names
    queues = [
        Queue(f"queue-{number}", row[number % len(row)], _group(Quota(8, 16, 4)))
        for number in range(leaves)
    ]
    return cohorts, queues


def _group(quota: Quota) -> tuple[ResourceGroup, ...]:
    return (ResourceGroup(("gpu",), (FlavorQuotas("h100", {"gpu": quota}),)),)


def _yaml_of(queue: Queue) -> str:
    quota = queue.resource_groups[0].flavors[0].resources["gpu"]
    return f"""apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata:
  name: {queue.name}
spec:
  cohortName: {queue.cohort}
  namespaceSelector: {{}}
  resourceGroups:
  - coveredResources: ["gpu"]
    flavors:
    - name: h100
      resources:
      - name: gpu
        nominalQuota: {quota.nominal}
        borrowingLimit: {quota.borrowing_limit}
        lendingLimit: {quota.lending_limit}
"""
