"""What others changed of the queues that Bough keeps in clusters, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.cli.tables import render_table
from bough.cli.times import show_time

if TYPE_CHECKING:
    from bough.api.kube_answers import ClusterDrift, DriftAnswer


def render_drift(answer: DriftAnswer) -> str:
    """For each cluster, what cannot be repaired, and the latest repairs."""
    if not answer.clusters:
        return "There is no cluster whose queues follow Bough's."
    return "\n\n".join(map(_render_cluster, answer.clusters))


def _render_cluster(cluster: ClusterDrift) -> str:
    count = len(cluster.troubles)
    found = f"{count} cannot be repaired" if count else "nothing that cannot be repaired"
    lines = [f"Backend {cluster.backend}: {found}."]
    lines += [f"  {each}" for each in cluster.troubles]
    if not cluster.repairs:
        return "\n".join([*lines, "Nothing was repaired."])
    rows = [(show_time(each.at), each.subject, each.message) for each in cluster.repairs]
    return "\n".join([*lines, "", render_table(("Repaired", "Object", "It Was"), rows, cut=2)])
