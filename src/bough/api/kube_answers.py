"""Answers about clusters: why something waits, what others changed, exported quota trees."""

from __future__ import annotations

import msgspec

from bough.api.common import Json
from bough.api.why import CertificateAnswer


class KubeWhyAnswer(msgspec.Struct, frozen=True):
    """Why a PodGroup, or a pod, is where it is."""

    #: `podgroup/ml/train` or `pod/ml/train-0`.
    subject: str
    #: One word that programs can rely on, and a sentence for people.
    reason: str
    sentence: str
    #: `null` where it is no gang: it cannot be read, or is not for this scheduler.
    certificate: CertificateAnswer | None = None
    #: What else keeps it waiting, as a disruption budget may.
    notes: list[str] = []


class RepairLine(msgspec.Struct, frozen=True):
    """An object that others had changed or deleted, and that was put right."""

    at: str | None
    #: As `Queue/osmo-pool-default-team`.
    subject: str
    message: str


class ClusterDrift(msgspec.Struct, frozen=True):
    """How the queues of a cluster that follows Bough differ from Bough's."""

    backend: str
    #: What cannot be repaired, in sentences.
    troubles: list[str]
    #: The last repairs, the newest first; the audit has all.
    repairs: list[RepairLine]


class DriftAnswer(msgspec.Struct, frozen=True):
    """All such clusters."""

    clusters: list[ClusterDrift]


class TreeExport(msgspec.Struct, frozen=True):
    """The quota tree as objects of another scheduler."""

    #: In the order in which to make them.
    objects: list[dict[str, Json]]
    #: What the objects cannot say, in sentences.
    warnings: list[str]
