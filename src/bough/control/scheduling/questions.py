"""What the plan is asked about gangs, and what it answers; it may be in another process."""

from __future__ import annotations

import msgspec

from bough.api.why import CertificateAnswer, RemedyList


class Question(msgspec.Struct, frozen=True):
    """Why gangs wait, or do not grow."""

    user: str
    #: By name.
    waiting: tuple[str, ...] = ()
    growing: tuple[str, ...] = ()
    #: Whether queues are named, and not pools.
    queues: bool = False
    #: Pools that the asker may submit to, where remedies are wanted; `None`: they are not.
    pools: frozenset[str] | None = None


class GangAnswer(msgspec.Struct, frozen=True):
    """What a plan says about a gang."""

    #: One word that programs can rely on, and a sentence for people.
    reason: str
    sentence: str
    certificate: CertificateAnswer | None = None
    #: `None` unless they were asked for.
    remedies: RemedyList | None = None


#: By gang; those of which a plan says nothing are not in it.
Answers = dict[str, GangAnswer]
