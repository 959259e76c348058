"""Certificates, evictions and remedies as they are sent: the one serialiser of files and servers.

`bough.api.why` has the types; a field that it lacks is not sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, cast

import msgspec

from bough.api.why import CertificateAnswer, RemedyList
from bough.model.certificate import Certificate
from bough.model.quota import FlavorResource, TreeNode
from bough.model.remedy import Remedies

#: Properties that are added to the fields they follow from.
_DERIVED = ("deficit", "never", "missing", "balance", "sentence")


def certificate_answer(found: Certificate | None) -> CertificateAnswer | None:
    """Why a workload is where it is."""
    return None if found is None else msgspec.convert(plain(found), CertificateAnswer)


def remedy_list(found: Remedies) -> RemedyList:
    """What would help, as changes of objects that people wrote; the steps stay inside."""
    return msgspec.convert(plain(found), RemedyList)


def plain(value: object) -> Any:
    """Structs and named tuples by their fields, with what follows from these."""
    if isinstance(value, msgspec.Struct):
        fields = {name: plain(getattr(value, name)) for name in value.__struct_fields__}
        derived = {name: plain(getattr(value, name)) for name in _DERIVED if hasattr(value, name)}
        return fields | derived
    if isinstance(value, (FlavorResource, TreeNode)):
        return {name: plain(part) for name, part in value._asdict().items()}
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in cast("list[object]", value)]
    if isinstance(value, Mapping):
        table = cast("Mapping[str, object]", value)
        return {str(key): plain(part) for key, part in table.items()}
    return value.value if isinstance(value, Enum) else value
