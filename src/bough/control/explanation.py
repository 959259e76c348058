"""Why a workflow waits, shown by planning: the certificate, and on request what would help.

A plan is made for whoever asks, of what the store says now; nothing of it is applied. One at a
time, so that many who ask do not keep the scheduler from its work. Must not know how to plan.
"""

from __future__ import annotations

import threading

import msgspec

from bough.control import workflows
from bough.control.access import authorise
from bough.control.gangs import gang_name
from bough.control.naming import PoolNames
from bough.control.site import Site
from bough.control.snapshot import Photographer, Picture
from bough.core.cycle.memo import Memo
from bough.core.explain.certificate import certificate
from bough.core.explain.remedies import remedies
from bough.core.explain.sentences import say_remedy
from bough.errors import Throttled
from bough.model.access import Action, Actor
from bough.model.pool import Json
from bough.model.workflow import TaskStatus, Workflow

#: How long somebody waits for a turn, and how many plans are made to find remedies.
TURN_S = 20
MOST_PLANS = 20


class Explained(msgspec.Struct, frozen=True):
    """Why one group waits."""

    group: str
    status: TaskStatus
    #: One word that programs can rely on, and a sentence for people.
    reason: str | None
    message: str | None
    #: `None` where it waits for other groups, or was decided meanwhile.
    certificate: Json = None
    #: `None` unless they were asked for.
    remedies: Json = None


class Explanation(msgspec.Struct, frozen=True):
    """Why a workflow waits; no groups: nothing of it does."""

    workflow: Workflow
    groups: tuple[Explained, ...]


class Explainer:
    """Answers all who ask one server.

    What was read and made for one is kept for the next, so that only what has changed since is read
    and made again.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._turn = threading.Lock()
        self._photographer: Photographer | None = None
        self._memo = Memo()

    def explain(
        self, actor: Actor, name: str, *, with_remedies: bool = False, queues: bool = False
    ) -> Explanation:
        """Why each group of a workflow that waits does.

        It is told in the names of pools; in those of queues only to who may list them, and asks
        for it.
        """
        site = self._site
        if queues:
            authorise(actor, Action.QUEUE_LIST, names=site.role_names)
        view = workflows.get_workflow(site, actor, name)
        waits = workflows.why(site, actor, name)
        found = [Explained(each.group, each.status, each.reason, each.message) for each in waits]
        if any(each.status is not TaskStatus.WAITING for each in waits):
            gangs = {group.name: gang_name(view.workflow, group) for group in view.groups}
            found = self._plan(found, gangs, with_remedies=with_remedies)
        if not queues:
            names = PoolNames(site)
            found = [_in_pools(each, names) for each in found]
        return Explanation(view.workflow, tuple(found))

    def _plan(
        self, waits: list[Explained], gangs: dict[str, str], *, with_remedies: bool
    ) -> list[Explained]:
        """The same, with what a plan of now says about each group that is in a queue."""
        if not self._turn.acquire(timeout=TURN_S):
            raise Throttled("Too many ask why their work waits; try again.")
        try:
            picture = self._photograph()
            return [
                each
                if each.status is TaskStatus.WAITING
                else self._explained(picture, each, gangs[each.group], with_remedies=with_remedies)
                for each in waits
            ]
        except BaseException:
            # Nothing is kept that may be half done.
            self._photographer = None
            raise
        finally:
            self._turn.release()

    def _photograph(self) -> Picture:
        if self._photographer is None:
            self._photographer, self._memo = Photographer(self._site), Memo()
        self._photographer.reread_nominated()
        return self._photographer.take()

    def _explained(
        self, picture: Picture, wait: Explained, gang: str, *, with_remedies: bool
    ) -> Explained:
        snapshot, policy = picture.snapshot, picture.policy
        found = certificate(snapshot, policy, gang, self._memo)
        helpful: Json = None
        if with_remedies:
            searched = remedies(snapshot, policy, gang, most_plans=MOST_PLANS)
            helpful = msgspec.to_builtins(searched)
            for told, remedy in zip(helpful["found"], searched.found, strict=True):
                told["sentence"] = say_remedy(remedy)
        return Explained(
            wait.group,
            wait.status,
            wait.reason if found is None else found.reason,
            wait.message if found is None else found.sentence,
            msgspec.to_builtins(found),
            helpful,
        )


def _in_pools(explained: Explained, names: PoolNames) -> Explained:
    return msgspec.structs.replace(
        explained,
        message=names.in_data(explained.message),
        certificate=names.in_data(explained.certificate),
        remedies=names.in_data(explained.remedies),
    )
