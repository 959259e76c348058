"""Pods as an apiserver sends them: what they ask for, their gang, and how far they are.

What cannot be read (an amount that is none, say) is demanded and not understood: such a pod waits
with that reason, and no other is held up by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from bough.errors import Invalid
from bough.formats.kai.pod import Standing, label_problems, member_pod, state_of
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
    LiveContainer,
    LiveMatch,
    LiveMetadata,
    LivePod,
    LivePodSpec,
    LiveResources,
    LiveToleration,
    Written,
)
from bough.formats.yaml.quantity import CPU, parse_fraction
from bough.formats.yaml.times import parse_time_ms
from bough.model.cluster import Match, TaintEffect, Toleration
from bough.model.podgroup import MemberPod
from bough.model.problem import Severity, dotted
from bough.model.workload import PodTemplate

EFFECTS = {each.value: each for each in TaintEffect}
_ALWAYS = "Always"


def live_member(pod: LivePod) -> MemberPod:
    """A pod as a member of its gang, or as a gang of one."""
    metadata = live_metadata(pod.metadata)
    spec = pod.spec
    template = PodTemplate(
        requests=_requests(spec),
        node_selector=spec.node_selector or {},
        affinity=_terms(spec.affinity),
        tolerations=tuple(_tolerations(spec.tolerations)),
        labels=metadata.labels,
        unsupported=next(_not_understood(spec, metadata), ""),
    )
    standing = Standing(
        state_of(
            pod.status.phase,
            deleted=pod.metadata.deletion_timestamp is not None,
            bound=spec.node_name is not None,
            gated=bool(spec.scheduling_gates),
        ),
        node=spec.node_name or None,
        started_ms=_time_ms(pod.status.start_time),
        priority_class=spec.priority_class_name,
    )
    return member_pod(metadata, template, standing)


def live_metadata(metadata: LiveMetadata) -> Metadata:
    """What every object says of itself."""
    return Metadata(
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
        created_ms=_time_ms(metadata.creation_timestamp),
        deleted_ms=_time_ms(metadata.deletion_timestamp),
        labels=metadata.labels or {},
        annotations=metadata.annotations or {},
    )


@lru_cache(maxsize=8_192)
def amount(resource: str, written: Written) -> int:
    """An amount in the units of the model, what is finer as one more; raise Invalid if none."""
    exact = parse_fraction(str(written)) * (1_000 if resource == CPU else 1)
    if exact < 0:
        raise Invalid(f"{written!r} is negative")
    return -(-exact.numerator // exact.denominator)


def _requests(spec: LivePodSpec) -> dict[str, int]:
    return peak_requests(
        [_asked(each.resources) for each in spec.containers or ()],
        [
            (_asked(each.resources), each.restart_policy == _ALWAYS)
            for each in spec.init_containers or ()
        ],
        _asked(spec.resources),
        _amounts(spec.overhead),
    )


def _asked(resources: LiveResources | None) -> dict[str, int]:
    """What is requested; a limit counts as a request where there is none."""
    if resources is None:
        return {}
    return {**_amounts(resources.limits), **_amounts(resources.requests)}


def _amounts(written: Mapping[str, Written] | None) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, value in (written or {}).items():
        try:
            found[name] = amount(name, value)
        except Invalid:
            # The pod waits for it, see `_unreadable`.
            found[name] = 0
    return found


def _not_understood(spec: LivePodSpec, metadata: Metadata) -> Iterator[str]:
    """What the pod demands and cannot be planned, in the order in which files are read."""
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
    for path, (severity, message) in label_problems(metadata).items():
        if severity is Severity.ERROR:
            yield f"something that is not understood, {dotted(path)}: {message}"
    yield from _unreadable(spec)


def _unreadable(spec: LivePodSpec) -> Iterator[str]:
    containers: Iterable[LiveContainer] = (*(spec.containers or ()), *(spec.init_containers or ()))
    asked = [each.resources for each in containers] + [spec.resources]
    for written in (
        spec.overhead,
        *(each.limits for each in asked if each is not None),
        *(each.requests for each in asked if each is not None),
    ):
        for name, value in (written or {}).items():
            try:
                amount(name, value)
            except Invalid as error:
                yield f"an amount of {name} that cannot be read: {error.message}"


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
    """Those whose effect is known: another one is no effect of any taint that counts here."""
    for each in written or ():
        if not each.effect or each.effect in EFFECTS:
            yield Toleration(
                key=each.key or "",
                operator=each.operator or "Equal",
                value=each.value or "",
                effect=EFFECTS[each.effect] if each.effect else None,
            )


def _time_ms(text: str | None) -> int | None:
    """A time as an apiserver writes it; what is none says nothing."""
    if text is None:
        return None
    try:
        return parse_time_ms(text)
    except Invalid:
        return None
