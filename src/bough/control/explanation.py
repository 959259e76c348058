"""Why a workflow waits, shown by planning: the certificate, and on request what would help.

A plan is made for whoever asks, of what the store says now; nothing of it is applied. One at a
time, so that many who ask do not keep the scheduler from its work. Must not know how to plan.
"""

from __future__ import annotations

import threading

import msgspec

from bough.control import workflows
from bough.control.gangs import gang_name
from bough.control.site import Site
from bough.control.snapshot import Photographer
from bough.control.workflows import Why
from bough.core.explain.certificate import certificate
from bough.core.explain.remedies import remedies
from bough.errors import Throttled
from bough.model.access import Actor
from bough.model.certificate import Certificate, Remedies
from bough.model.policy import OSMO
from bough.model.workflow import TaskStatus, Workflow

#: How long somebody waits for a turn, and how many plans are made to find remedies.
TURN_S = 20
MOST_PLANS = 20


class Explained(msgspec.Struct, frozen=True):
    """Why one group waits."""

    why: Why
    #: `None` where it waits for other groups, or was decided meanwhile.
    certificate: Certificate | None = None
    #: `None` unless they were asked for.
    remedies: Remedies | None = None


class Explanation(msgspec.Struct, frozen=True):
    """Why a workflow waits; no groups: nothing of it does."""

    workflow: Workflow
    groups: tuple[Explained, ...]


_TURN = threading.Lock()


def explain(site: Site, actor: Actor, name: str, *, with_remedies: bool = False) -> Explanation:
    """Why each group of a workflow that waits does."""
    view = workflows.get_workflow(site, actor, name)
    waits = workflows.why(site, actor, name)
    if not any(each.status is not TaskStatus.WAITING for each in waits):
        return Explanation(view.workflow, tuple(Explained(each) for each in waits))
    if not _TURN.acquire(timeout=TURN_S):
        raise Throttled("Too many ask why their work waits; try again.")
    try:
        snapshot = Photographer(site).take().snapshot
        gangs = {group.name: gang_name(view.workflow, group) for group in view.groups}
        found = [
            Explained(each)
            if each.status is TaskStatus.WAITING
            else Explained(
                each,
                certificate(snapshot, OSMO, gangs[each.group]),
                remedies(snapshot, OSMO, gangs[each.group], most_plans=MOST_PLANS)
                if with_remedies
                else None,
            )
            for each in waits
        ]
    finally:
        _TURN.release()
    return Explanation(view.workflow, tuple(found))
