"""Which nodes tasks select and which taints they tolerate, by pool and platform."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from bough.model.cluster import Toleration


class PodPlacement(msgspec.Struct, frozen=True):
    """What tasks of one platform of a pool select and tolerate."""

    selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()


#: By platform; tasks that name none have that of the empty name.
PoolPlacement = Mapping[str, PodPlacement]
ANYWHERE = PodPlacement()
NOTHING_SAID: PoolPlacement = MappingProxyType({})
