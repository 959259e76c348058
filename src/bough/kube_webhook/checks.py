"""What is wrong with an object that is being created or changed.

Errors refuse the object, warnings are only shown. The rules are the core's, and the sentences are
those of the commands that check files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from bough.core.gang.topology import check_topology
from bough.core.gang.validation import check_members, check_pod_group, check_pods
from bough.core.quota.fair_tree import ancestry_obstacle
from bough.core.quota.references import validate
from bough.formats.kai.objects import KaiObjects, read_kai
from bough.formats.kueue.organisation import read_organisation
from bough.formats.yaml.documents import Document
from bough.formats.yaml.from_json import Json, from_json
from bough.model.cluster import Topology
from bough.model.fair_queue import FairQueue, QueueObstacleKind
from bough.model.organisation import Organisation
from bough.model.pod_group import MemberPod, PodGroup, is_native
from bough.model.problem import Problem, Severity
from bough.model.quota import Cohort

#: The most values that a checked object may hold; the largest gangs have some ten thousand.
MOST_VALUES = 200_000
#: How many levels of a tree are followed upwards; deeper trees are refused anyway.
MOST_LEVELS = 100


class Lookups(Protocol):
    """What else in the cluster a check needs to know. `None`: it does not exist, or is unknown."""

    def pod_group(self, namespace: str, name: str, *, anew: bool = False) -> PodGroup | None:
        """The PodGroup that a pod names: possibly from the cache or, if `anew`, read again."""
        ...

    def topologies(self) -> tuple[Topology, ...] | None:
        """All topologies."""
        ...

    def queue(self, name: str) -> FairQueue | None:
        """A Queue of KAI."""
        ...

    def cohort(self, name: str) -> Cohort | None:
        """A Cohort of Kueue."""
        ...


class Checked(NamedTuple):
    """What is wrong, as sentences for people."""

    errors: tuple[str, ...]
    warnings: tuple[str, ...]


def check(written: Mapping[str, Json], lookups: Lookups) -> Checked:
    """Everything that is wrong with an object; objects of unknown kinds are not checked."""
    version, kind = written.get("apiVersion"), written.get("kind")
    group = version.rpartition("/")[0] if isinstance(version, str) else ""
    found = _CHECKS.get((group, kind if isinstance(kind, str) else ""))
    if found is None:
        return Checked((), ())
    document = Document(from_json(dict(written), MOST_VALUES), "", 0)
    problems = dict.fromkeys(_told(each) for each in found(document, lookups))
    return Checked(
        tuple(text for severity, text in problems if severity is Severity.ERROR),
        tuple(text for severity, text in problems if severity is not Severity.ERROR),
    )


def _told(problem: Problem) -> tuple[Severity, str]:
    field = problem.field
    return problem.severity, f"{field}: {problem.message}" if field else problem.message


# Objects of KAI


def _check_pod_group(document: Document, lookups: Lookups) -> list[Problem]:
    read = read_kai((document,), lenient=True)
    problems = list(read.problems)
    for pod_group in read.pod_groups:
        known = lookups.topologies() if _is_placed(pod_group) else None
        problems += check_pod_group(pod_group, known or None)
    return problems


def _is_placed(pod_group: PodGroup) -> bool:
    """Whether its constraints name levels of a topology."""
    constraints = pod_group.constraints
    return bool(
        pod_group.constraint
        or any(each.constraint for each in pod_group.subgroups)
        or constraints.fallback
        or constraints.subgroups
        or constraints.sets
    )


def _check_pod(document: Document, lookups: Lookups) -> list[Problem]:
    """Whether a pod belongs to a leaf of its gang.

    Everything else in a pod is checked by Kubernetes itself.
    """
    found: list[Problem] = []
    for member in read_kai((document,), lenient=True).pods:
        if member.group is None or is_native(member.group):
            continue
        problems = _check_member(member, lookups, anew=False)
        # The PodGroup may have changed since it was cached.
        found += _check_member(member, lookups, anew=True) if problems else ()
    return found


def _check_member(member: MemberPod, lookups: Lookups, *, anew: bool) -> tuple[Problem, ...]:
    namespace, _, name = (member.group or "").rpartition("/")
    pod_group = lookups.pod_group(namespace or "default", name, anew=anew)
    if pod_group is None:
        return check_members((member,), ())
    return check_pods(pod_group, (member.pod,))


def _check_queue(document: Document, lookups: Lookups) -> list[Problem]:
    read: KaiObjects = read_kai((document,), lenient=True)
    problems = list(read.problems)
    for queue in read.queues:
        known = {queue.name: queue}
        above = queue.parent
        while above is not None and above not in known and len(known) < MOST_LEVELS:
            parent = lookups.queue(above)
            if parent is None:
                break
            known[above], above = parent, parent.parent
        obstacle = ancestry_obstacle(queue, known)
        if obstacle is not None:
            ties = obstacle.kind is QueueObstacleKind.CYCLE
            severity = Severity.ERROR if ties else Severity.WARNING
            path = ("spec", "parentQueue")
            problems.append(Problem(path, obstacle.sentence, severity, f"Queue/{queue.name}"))
    return problems


def _check_topology(document: Document, _lookups: Lookups) -> list[Problem]:
    read = read_kai((document,), lenient=True)
    return [
        *read.problems,
        *(problem for each in read.topologies for problem in check_topology(each)),
    ]


# Objects of Kueue


def _check_quota(document: Document, lookups: Lookups) -> list[Problem]:
    """Check a Cohort or a ClusterQueue together with the cohorts above it."""
    read = read_organisation((document,), lenient=True)
    own = read.organisation
    problems = list(read.problems)
    subjects = set(read.documents)
    cohorts = {each.name: each for each in own.cohorts}
    above = next((each.parent for each in own.cohorts), None)
    while above is not None and above not in cohorts and len(cohorts) < MOST_LEVELS:
        found = lookups.cohort(above)
        if found is None:
            break
        cohorts[above], above = found, found.parent
    together = Organisation(cohorts=tuple(cohorts.values()), queues=own.queues)
    return problems + [each for each in validate(together) if each.subject in subjects]


_CHECKS: dict[tuple[str, str], Callable[[Document, Lookups], list[Problem]]] = {
    ("scheduling.run.ai", "PodGroup"): _check_pod_group,
    ("scheduling.run.ai", "Queue"): _check_queue,
    ("kai.scheduler", "Topology"): _check_topology,
    ("", "Pod"): _check_pod,
    ("kueue.x-k8s.io", "Cohort"): _check_quota,
    ("kueue.x-k8s.io", "ClusterQueue"): _check_quota,
}
