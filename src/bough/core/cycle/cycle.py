"""What one cycle works with: the working copy, what was decided so far, what must not be passed."""

from __future__ import annotations

from collections.abc import Set

from bough.core.cycle.claim import Claim
from bough.core.cycle.offers import Offer
from bough.core.cycle.outcome import Outcome
from bough.core.cycle.working_copy import WorkingCopy
from bough.model.quota import FlavorResource


class Blocker:
    """A gang that waits for quota, and is not passed by those behind it that want the same."""

    __slots__ = ("claim", "wanted")

    def __init__(self, claim: Claim, wanted: frozenset[FlavorResource]) -> None:
        self.claim = claim
        #: What there is not enough of; a gang that asks for none of it may pass.
        self.wanted = wanted


class Cycle:
    """One cycle, from its first decision to its last."""

    def __init__(self, copy: WorkingCopy) -> None:
        self.copy = copy
        self.outcome = Outcome()
        #: By queue and rank.
        self.blockers: dict[tuple[str, bool], list[Blocker]] = {}
        #: By queue in which everything waits for the first gang: that gang.
        self.first_in_line: dict[str, Claim] = {}
        #: Gangs with a guarantee that only lack a place, with what they want most.
        self.unplaced: dict[str, Offer] = {}
        #: GPUs that owners hold, by the node of the quota tree that limits them; see gates.
        self.owned: dict[tuple[str, str], int] | None = None
        #: Owners at such a limit, with the gang that waits for it.
        self.owners_waiting: dict[tuple[str, str], Claim] = {}

    def no_victims_of(self, name: str) -> Set[str]:
        """The gangs that one may not take from: something of them starts, or it spares them."""
        spared = self.copy.spared_by(name)
        return self.outcome.served | spared if spared else self.outcome.served

    def block(self, claim: Claim, wanted: frozenset[FlavorResource]) -> None:
        """Keep gangs of the same queue and rank that want the same from passing this one."""
        rank = (claim.queue, claim.preemptible)
        self.blockers.setdefault(rank, []).append(Blocker(claim, wanted))

    def blocker_of(self, claim: Claim, wanted: frozenset[FlavorResource]) -> Claim | None:
        """The gang that must be served before this one."""
        for each in self.blockers.get((claim.queue, claim.preemptible), ()):
            if each.claim.standing < claim.standing and not each.wanted.isdisjoint(wanted):
                return each.claim
        return None
