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
from bough.model.quota import FlavorResource, NodeKind, TreeNode
from bough.model.reason import Refusal
from bough.model.remedy import Remedies
from bough.model.words import OBJECT_WORDS, Words

#: Properties that are added to the fields they follow from.
_DERIVED = ("deficit", "never", "missing", "balance", "sentence")
#: Fields that name a queue.
_QUEUES = frozenset({"queue", "preemptor_queue"})


def certificate_answer(
    found: Certificate | None, words: Words = OBJECT_WORDS
) -> CertificateAnswer | None:
    """Why a workload is where it is."""
    return None if found is None else msgspec.convert(plain(found, words), CertificateAnswer)


def remedy_list(found: Remedies, words: Words = OBJECT_WORDS) -> RemedyList:
    """What would help, as changes of objects that people wrote; the steps stay inside."""
    return msgspec.convert(plain(found, words), RemedyList)


def plain(value: object, words: Words = OBJECT_WORDS) -> Any:
    """Structs and named tuples by their fields, with what follows from these."""
    if isinstance(value, msgspec.Struct):
        return _fields(value, words)
    if isinstance(value, TreeNode):
        return dict(zip(("kind", "name"), words.identity(value), strict=True))
    if isinstance(value, FlavorResource):
        return value._asdict()
    if isinstance(value, (tuple, list)):
        return [plain(part, words) for part in cast("list[object]", value)]
    if isinstance(value, Mapping):
        table = cast("Mapping[str, object]", value)
        return {str(key): plain(part, words) for key, part in table.items()}
    return value.value if isinstance(value, Enum) else value


def _fields(struct: msgspec.Struct, words: Words) -> dict[str, Any]:
    fields = {name: plain(getattr(struct, name), words) for name in struct.__struct_fields__}
    for name in _QUEUES & fields.keys():
        if fields[name]:
            fields[name] = words.identity(TreeNode(NodeKind.QUEUE, fields[name]))[1]
    for name in _DERIVED:
        if hasattr(struct, name):
            fields[name] = plain(getattr(struct, name), words)
    if isinstance(struct, Refusal):
        fields["sentence"] = struct.say(words)
    return fields
