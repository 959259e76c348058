"""Pods as an apiserver sends them: what they ask for, their gang, and their state.

If something in a pod cannot be read (a malformed amount, say), it counts as a demand that we do not
support: that pod waits with this reason, and does not hold up any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain

from bough.errors import Invalid
from bough.formats.kai.pod import PodStanding, member_pod, member_problems, state_of
from bough.formats.kubernetes.metadata import Metadata
from bough.formats.kubernetes.pods import (
    CLAIM_DEMAND,
    MAY_SPREAD,
    affinity_demand,
    peak_requests,
    spread_demand,
)
from bough.formats.live.objects import (
    LiveAffinity,
    LiveMatch,
    LiveMetadata,
    LivePod,
    LivePodSpec,
    LiveResources,
    LiveToleration,
    Written,
)
from bough.formats.yaml.quantity import round_up_quantity
from bough.formats.yaml.times import parse_time_ms
from bough.model.cluster import Match, TaintEffect, Toleration
from bough.model.pod_group import MemberPod
from bough.model.problem import Severity, dotted
from bough.model.workload import PodTemplate

EFFECTS = {each.value: each for each in TaintEffect}
_ALWAYS = "Always"


def live_member(pod: LivePod) -> MemberPod:
    """A pod as a member of its gang, or as a gang of one."""
    metadata = live_metadata(pod.metadata)
    spec = pod.spec
    amounts = _Amounts()
    template = PodTemplate(
        requests=amounts.of_pod(spec),
        node_selector=spec.node_selector or {},
        affinity=_terms(spec.affinity),
        tolerations=tuple(_tolerations(spec.tolerations)),
        labels=metadata.labels,
        unsupported=next(chain(_not_understood(spec, metadata), amounts.wrong), ""),
    )
    standing = PodStanding(
        state_of(
            pod.status.phase,
            deleted=pod.metadata.deletion_timestamp is not None,
            bound=spec.node_name is not None,
            gated=bool(spec.scheduling_gates),
        ),
        node=spec.node_name or None,
        started_ms=live_time_ms(pod.status.start_time),
        priority_class=spec.priority_class_name,
        scheduling_group=spec.scheduling_group and spec.scheduling_group.pod_group_name,
    )
    return member_pod(metadata, template, standing)


def live_metadata(metadata: LiveMetadata) -> Metadata:
    """Read the metadata that every object has."""
    return Metadata(
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
        created_ms=live_time_ms(metadata.creation_timestamp),
        deleted_ms=live_time_ms(metadata.deletion_timestamp),
        labels=metadata.labels or {},
        annotations=metadata.annotations or {},
    )


# Pods that were made together have the same time.
@lru_cache(maxsize=256)
def live_time_ms(text: str | None) -> int | None:
    """Parse a time as an apiserver writes it; `None` if it is missing or not a time."""
    if text is None:
        return None
    try:
        return parse_time_ms(text)
    except Invalid:
        return None


class _Amounts:
    """Reads what a pod asks for, and collects what cannot be read."""

    def __init__(self) -> None:
        self.wrong: list[str] = []

    def of_pod(self, spec: LivePodSpec) -> dict[str, int]:
        """What the pod needs at its peak."""
        return peak_requests(
            [self._asked(each.resources) for each in spec.containers or ()],
            [
                (self._asked(each.resources), each.restart_policy == _ALWAYS)
                for each in spec.init_containers or ()
            ],
            self._asked(spec.resources),
            self._read(spec.overhead),
        )

    def _asked(self, resources: LiveResources | None) -> dict[str, int]:
        """The requests; where one is missing, the limit counts as the request."""
        if resources is None:
            return {}
        return {**self._read(resources.limits), **self._read(resources.requests)}

    def _read(self, written: Mapping[str, Written] | None) -> dict[str, int]:
        found: dict[str, int] = {}
        for name, value in (written or {}).items():
            try:
                amount = round_up_quantity(str(value), name)
            except Invalid as error:
                amount = 0
                self.wrong.append(f"an amount of {name} that cannot be read: {error.message}")
            if amount < 0:
                self.wrong.append(f"an amount of {name} that cannot be read: {value!r} is negative")
            found[name] = max(0, amount)
        return found


def _not_understood(spec: LivePodSpec, metadata: Metadata) -> Iterator[str]:
    """Demands of the pod that we cannot plan, in the order in which files are read."""
    affinity = spec.affinity or LiveAffinity()
    for anti, between in ((False, affinity.pod_affinity), (True, affinity.pod_anti_affinity)):
        if between is not None and between.required:
            yield affinity_demand(required=True, anti=anti)
    if any(
        each.when_unsatisfiable != MAY_SPREAD for each in spec.topology_spread_constraints or ()
    ):
        yield spread_demand(required=True)
    if spec.resource_claims:
        yield CLAIM_DEMAND
    group = spec.scheduling_group and spec.scheduling_group.pod_group_name
    for path, (severity, message) in member_problems(metadata, group).items():
        if severity is Severity.ERROR:
            yield f"something that is not understood, {dotted(path)}: {message}"


def _terms(affinity: LiveAffinity | None) -> tuple[tuple[Match, ...], ...]:
    nodes = None if affinity is None else affinity.node_affinity
    required = None if nodes is None else nodes.required
    if required is None:
        return ()
    return tuple(
        (*_matches(term.match_expressions), *_matches(term.match_fields))
        for term in required.node_selector_terms or ()
    )


def _matches(written: tuple[LiveMatch, ...] | None) -> Iterator[Match]:
    for each in written or ():
        yield Match(each.key, each.operator, each.values or ())


def _tolerations(written: tuple[LiveToleration, ...] | None) -> Iterator[Toleration]:
    """The tolerations whose effect we know: no taint that counts here has another effect."""
    for each in written or ():
        if not each.effect or each.effect in EFFECTS:
            yield Toleration(
                key=each.key or "",
                operator=each.operator or "Equal",
                value=each.value or "",
                effect=EFFECTS[each.effect] if each.effect else None,
            )
