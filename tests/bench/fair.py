"""What fair shares cost: Kueue's own replays with and without them, and a share in a large tree."""

from __future__ import annotations

from bough.core.quota.taken_share import Shares
from bough.core.quota.tree import QuotaTree
from bough.model.policy import KUEUE, KUEUE_FAIR
from bough.model.quota import (
    Cohort,
    FlavorQuotas,
    FlavorResource,
    NodeKind,
    Queue,
    Quota,
    ResourceGroup,
    TreeNode,
)
from tests.bench.kueue_replay import BASELINE, LARGE_SCALE, Setup, replay
from tests.bench.report import Report, cpu_seconds

GPU = FlavorResource("any", "gpu")
OPERATIONS = 5_000
#: They take turns, and the faster of so many replays of each counts.
ROUNDS = 2


def run(report: Report) -> None:
    """Report both."""
    for setup in (BASELINE, LARGE_SCALE):
        measure_replay(report, setup)
    measure_shares(report)


def measure_replay(report: Report, setup: Setup) -> None:
    """The same workloads by the classical rules and by fair shares: CPU time of one cycle."""
    costs: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for policy in (KUEUE, KUEUE_FAIR):
            played = replay(setup, policy)
            costs.setdefault(policy.name, []).append(played.planning_s / played.figures().cycles)
    plain, fair = (1e3 * min(costs[policy.name]) for policy in (KUEUE, KUEUE_FAIR))
    report.target(
        f"{setup.name}: a cycle {plain:.2f} ms without fair shares, {fair:.2f} ms with: "
        f"{fair / plain:.2f} (at most 1.5)",
        met=fair <= 1.5 * plain,
    )


def measure_shares(report: Report) -> None:
    """Add, read the share at every level, and remove again: by depth, not by size."""
    costs = {number: _share_cost(number) for number in (100, 10_000)}
    for number, cost in costs.items():
        report.line(f"{number:>6,} queues: {cost:.2f} µs to add, read the shares above, and remove")
    growth = costs[10_000] / costs[100]
    report.target(f"from 100 to 10,000 queues ×{growth:.2f} (below 3)", met=growth < 3)


def _share_cost(queues: int) -> float:
    group = (ResourceGroup(("gpu",), (FlavorQuotas("any", {"gpu": Quota(1)}),)),)
    tree = QuotaTree.of(
        [Cohort("root", None), *(Cohort(f"team-{n}", "root") for n in range(10))],
        [Queue(f"queue-{n}", f"team-{n % 10}", group) for n in range(queues)],
    )
    shares = Shares(tree)
    path = tree.path(TreeNode(NodeKind.QUEUE, "queue-0"))

    def work() -> None:
        for _ in range(OPERATIONS):
            tree.add_usage("queue-0", {GPU: 3})
            for node in path:
                shares.rank(node)
            tree.remove_usage("queue-0", {GPU: 3})

    return 1e6 * cpu_seconds(work) / OPERATIONS
