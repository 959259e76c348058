"""Questions about gangs to the loop's plan, which may be in another process, and answers."""

from __future__ import annotations

import msgspec

from bough.api.why import CertificateAnswer, RemedyList


class Question(msgspec.Struct, frozen=True):
    """Why gangs wait, or do not grow."""

    user: str
    #: By name.
    waiting: tuple[str, ...] = ()
    growing: tuple[str, ...] = ()
    #: Whether answers name queues instead of pools.
    queues: bool = False
    #: The pools that the user may submit to, for remedies; `None`: no remedies wanted.
    pools: frozenset[str] | None = None


class GangAnswer(msgspec.Struct, frozen=True):
    """What a plan says about a gang."""

    #: One word that programs can rely on, and a sentence for people.
    reason: str
    sentence: str
    certificate: CertificateAnswer | None = None
    #: `None` unless they were asked for.
    remedies: RemedyList | None = None


#: By gang; without gangs that the plan says nothing about.
Answers = dict[str, GangAnswer]
