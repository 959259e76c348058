"""Where pod templates let tasks of a pool run: what they select and which taints they tolerate.

Values with variables are not known before a task has its node, and do not count here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from bough.control.config.pod_templates import names_for
from bough.core.place.node_matching import tolerates
from bough.model.cluster import Taint, TaintEffect, Toleration
from bough.model.pod_placement import ANYWHERE, PodPlacement, PoolPlacement
from bough.model.pool import Json, OfferedNode, Pool

_KEEPS_OFF = (TaintEffect.NO_SCHEDULE, TaintEffect.NO_EXECUTE)


def placements(pools: Iterable[Pool], templates: Mapping[str, Json]) -> dict[str, PoolPlacement]:
    """By pool whose templates say something about it."""
    found: dict[str, PoolPlacement] = {}
    for pool in pools if templates else ():
        of_platforms = {
            platform: _placement(names_for(pool, platform), templates)
            for platform in ("", *pool.platforms)
        }
        if any(each != ANYWHERE for each in of_platforms.values()):
            found[pool.name] = of_platforms
    return found


def within(selector: dict[str, str], placement: PoolPlacement) -> PoolPlacement:
    """The same, on nodes alone that have these labels, too."""
    return {
        "": PodPlacement(selector),
        **{
            platform: PodPlacement({**each.selector, **selector}, each.tolerations)
            for platform, each in placement.items()
        },
    }


def keeping_off(node: OfferedNode, allowed: Iterable[PoolPlacement]) -> Taint | None:
    """A taint of a node that no task of any of these tolerates."""
    sharp = [each for each in node.taints if each.effect in _KEEPS_OFF]
    everyone = [each.tolerations for pool in allowed for each in pool.values()]
    if not sharp or any(
        all(any(tolerates(one, taint) for one in tolerations) for taint in sharp)
        for tolerations in everyone
    ):
        return None
    return sharp[0]


def _placement(names: Iterable[str], templates: Mapping[str, Json]) -> PodPlacement:
    """Of templates on top of each other; what cannot be read is for the apiserver to refuse."""
    selector: dict[str, str] = {}
    tolerations: dict[Toleration, None] = {}
    for name in names:
        spec = (templates.get(name) or {}).get("spec") or {}
        chosen = spec.get("nodeSelector")
        if isinstance(chosen, Mapping):
            selector |= {key: value for key, value in chosen.items() if _is_plain(value)}
        listed = spec.get("tolerations")
        for each in listed if isinstance(listed, list) else ():
            read = _toleration(each)
            if read is not None:
                tolerations[read] = None
    return PodPlacement(selector, tuple(tolerations))


def _toleration(written: Json) -> Toleration | None:
    if not isinstance(written, Mapping) or not all(map(_is_plain, _texts(written))):
        return None
    given = {key: value for key, value in written.items() if value}
    given.pop("tolerationSeconds", None)
    try:
        return msgspec.convert(given, Toleration)
    except msgspec.ValidationError:
        return None


def _texts(written: Mapping[str, Json]) -> Iterable[Json]:
    return (value for key, value in written.items() if key != "tolerationSeconds" and value)


def _is_plain(value: Json) -> bool:
    return isinstance(value, str) and "{{" not in value and "{%" not in value
