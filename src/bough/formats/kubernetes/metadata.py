"""The metadata of every Kubernetes object: name, labels, creation time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from bough.formats.yaml.fields import Fields


class Metadata(msgspec.Struct, frozen=True):
    """What every Kubernetes object says of itself, as far as it matters to us."""

    name: str
    namespace: str | None = None
    uid: str | None = None
    #: Milliseconds since 1970.
    created_ms: int | None = None
    #: When its deletion was requested.
    deleted_ms: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


def read_metadata(fields: Fields) -> Metadata:
    """Read `metadata` of an object.

    Accepted without a meaning for us: what the API server keeps for itself (resourceVersion,
    generation, generateName, selfLink, managedFields, finalizers, ownerReferences and
    deletionGracePeriodSeconds).
    """
    metadata = fields.child("metadata")
    metadata.ignore(
        "resourceVersion",
        "generation",
        "generateName",
        "selfLink",
        "managedFields",
        "finalizers",
        "ownerReferences",
        "deletionGracePeriodSeconds",
    )
    return Metadata(
        name=metadata.text("name"),
        namespace=metadata.optional_text("namespace"),
        uid=metadata.optional_text("uid"),
        created_ms=metadata.optional_time_ms("creationTimestamp"),
        deleted_ms=metadata.optional_time_ms("deletionTimestamp"),
        labels=metadata.text_map("labels"),
        annotations=metadata.text_map("annotations"),
    )
